#include "halide_gen/plan/avx512_code.h"

#include <HalideRuntime.h>

#include <bit>

#include "halide_gen/plan/stage_frame.h"
#include "trace/fault.h"

namespace dalsegno::halide_gen {
namespace {

using Xbyak::Reg64;
using Xbyak::Zmm;
using Generator = Xbyak::CodeGenerator;
using namespace frame;

}  // namespace

Avx512Code::Avx512Code(const KernelSpec& spec, const Stage& stage, int rank, Generator* to)
    : StageCode(spec, stage, rank, kRegisters, to), offsets_(operands(), -1) {}

// ---- loops

void Avx512Code::one_row(const Xbyak::Label& done) {
  Xbyak::Label ordinary, rest;
  if (may_stream()) stream(ordinary, rest);
  c_.L(ordinary);
  whole_vectors(rest);
  c_.L(rest);
  c_.sub(c_.rdx, c_.rcx);
  c_.jz(done, Generator::T_NEAR);
  if (planted(Fault::short_rest)) c_.dec(c_.rdx);
  mask_first(c_.rdx);
  body_of(true);
}

void Avx512Code::body_of(bool masked) {
  masked_ = masked;
  body();
}

// From element rcx of a row of rdx on. Whoever has no room for one more goes to `rest`, or on.
void Avx512Code::whole_vectors(const Xbyak::Label& rest) {
  Xbyak::Label whole;
  const auto compare_end = [&] { c_.lea(c_.rax, c_.ptr[c_.rcx + lanes_]), c_.cmp(c_.rax, c_.rdx); };
  compare_end();
  c_.jg(rest, Generator::T_NEAR);
  c_.L(whole);
  body_of(false);
  c_.add(c_.rcx, lanes_);
  compare_end();
  c_.jle(whole, Generator::T_NEAR);
}

void Avx512Code::mask_first(const Reg64& count) {
  c_.mov(c_.rax, -1);
  c_.bzhi(c_.rax, c_.rax, count);
  c_.kmovq(c_.k1, c_.rax);
}

// What is larger than the caches is written without being read into them before: whole vectors of memory, and what comes before the first
// one under a mask.
void Avx512Code::stream(const Xbyak::Label& ordinary, const Xbyak::Label& rest) {
  Xbyak::Label aligned;
  c_.cmp(c_.qword[c_.rsp + kStreaming], 0);
  c_.je(ordinary, Generator::T_NEAR);
  c_.mov(c_.rax, row(reads()));
  c_.neg(c_.rax);
  c_.and_(c_.rax, 63);
  c_.shr(c_.rax, std::countr_zero(static_cast<unsigned>(type_of(reads()).bytes())));
  c_.mov(in_frame(kHead), c_.rax);
  c_.jz(aligned, Generator::T_NEAR);
  c_.cmp(c_.rax, c_.rdx);
  c_.jge(ordinary, Generator::T_NEAR);
  c_.mov(c_.rcx, c_.rax);
  mask_first(c_.rcx);
  c_.xor_(c_.ecx, c_.ecx);
  body_of(true);
  c_.mov(c_.rcx, in_frame(kHead));
  c_.L(aligned);
  streaming_ = true;
  whole_vectors(rest);
  streaming_ = false;
  c_.jmp(rest, Generator::T_NEAR);
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
