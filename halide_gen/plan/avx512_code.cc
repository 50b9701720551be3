#include "halide_gen/plan/avx512_code.h"

#include "trace/fault.h"

namespace dalsegno::halide_gen {
namespace {

using Xbyak::Reg64;
using Xbyak::Zmm;
using Generator = Xbyak::CodeGenerator;

}  // namespace

Avx512Code::Avx512Code(const KernelSpec& spec, const Stage& stage, int rank, Generator* to)
    : StageCode(spec, stage, rank, kRegisters, to), offsets_(operands(), -1) {}

// ---- loops

void Avx512Code::one_row(const Xbyak::Label& done) {
  Xbyak::Label ordinary, rest;
  stream(ordinary, rest);
  c_.L(ordinary);
  whole_vectors(rest);
  c_.L(rest);
  c_.sub(c_.rdx, c_.rcx);
  c_.jz(done, Generator::T_NEAR);
  if (planted(Fault::short_rest)) c_.dec(c_.rdx);
  mask_first(c_.rdx);
  masked_body();
}

void Avx512Code::mask_first(const Reg64& count) {
  c_.mov(c_.rax, -1);
  c_.bzhi(c_.rax, c_.rax, count);
  c_.kmovq(c_.k1, c_.rax);
}

void Avx512Code::masked_body() {
  masked_ = true;
  body();
  masked_ = false;
}

void Avx512Code::begin_stream(const Xbyak::Label& ordinary) {
  c_.cmp(c_.rax, c_.rdx);
  c_.jge(ordinary, Generator::T_NEAR);
  c_.mov(c_.rcx, c_.rax);
  mask_first(c_.rcx);
  c_.xor_(c_.ecx, c_.ecx);
  masked_body();
}

// ---- registers

void Avx512Code::spill(int v, int reg, const Xbyak::Address& to) { is_mask(v) ? c_.kmovq(to, Opmask(reg)) : c_.vmovdqu64(to, Zmm(reg)); }

void Avx512Code::reload(int v, int reg, const Xbyak::Address& from) {
  is_mask(v) ? c_.kmovq(Opmask(reg), from) : c_.vmovdqu64(Zmm(reg), from);
}

void Avx512Code::make_truth(int reg, bool value) {
  const Opmask k(reg);
  value ? c_.kxnorq(k, k, k) : c_.kxorq(k, k, k);
}

}  // namespace dalsegno::halide_gen
