#include "halide_gen/plan/avx2_code.h"

#include <algorithm>
#include <array>

#include "trace/fault.h"

namespace dalsegno::halide_gen {
namespace {

using Xbyak::Ymm;
using Generator = Xbyak::CodeGenerator;

}  // namespace

Avx2Code::Avx2Code(const KernelSpec& spec, const Stage& stage, int rank, Generator* to) : StageCode(spec, stage, rank, kRegisters, to) {}

// ---- loops

void Avx2Code::one_row(const Xbyak::Label& done) {
  Xbyak::Label few, ordinary, rest, one;
  c_.cmp(c_.rdx, lanes_);
  c_.jl(few, Generator::T_NEAR);
  stream(ordinary, rest);
  c_.L(ordinary);
  whole_vectors(rest);
  c_.L(rest);
  c_.cmp(c_.rcx, c_.rdx);
  c_.jge(done, Generator::T_NEAR);
  if (planted(Fault::short_rest)) c_.jmp(done, Generator::T_NEAR);
  c_.mov(c_.rcx, c_.rdx);
  c_.sub(c_.rcx, lanes_);
  c_.jmp(ordinary, Generator::T_NEAR);
  c_.L(few);
  single_ = true;
  c_.L(one);
  body();
  single_ = false;
  c_.inc(c_.rcx);
  c_.cmp(c_.rcx, c_.rdx);
  c_.jl(one, Generator::T_NEAR);
}

// ---- registers

void Avx2Code::spill(int, int reg, const Xbyak::Address& to) { c_.vmovdqu(to, Ymm(reg)); }

void Avx2Code::reload(int, int reg, const Xbyak::Address& from) { c_.vmovdqu(Ymm(reg), from); }

void Avx2Code::make_truth(int reg, bool value) {
  const Ymm x(reg);
  value ? c_.vpcmpeqd(x, x, x) : c_.vpxor(x, x, x);
}

// ---- memory

void Avx2Code::load(size_t i, int reg) {
  const ValueType t = type_of(i);
  if (is_apart(i)) {
    find_row_element(i);
    return single_ ? repeat(t, reg, c_.ptr[c_.rax]) : load_apart(i, reg);
  }
  const Xbyak::Address from = at(i);
  if (is_still(i) || single_) return repeat(t, reg, from);
  const Xmm x = vector(reg, t);
  const int bits = t.bits * lanes_;
  bits >= 128 ? c_.vmovdqu(x, from) : bits == 64 ? c_.vmovq(x, from) : c_.vmovd(x, from);
}

// Elements that lie apart, from rax on, one after the other. (Instructions that gather take longer on many processors.)
void Avx2Code::load_apart(size_t i, int reg) {
  const ValueType t = type_of(i);
  const std::array<Xbyak::Address, 4> from = four_apart(i);
  const int group = std::min(lanes_, 128 / t.bits);
  for (int lane = 0; lane < lanes_; ++lane) {
    if (lane > 0 && lane % 4 == 0) next_four();
    const Xmm x(lane < group ? reg : kFirst);
    const Xbyak::Address& one = from[static_cast<size_t>(lane % 4)];
    const auto k = static_cast<uint8_t>(lane % group);
    if (k == 0 && t.bits < 32) c_.vpxor(x, x, x);
    switch (t.bits) {
      case 64:
        k == 0 ? c_.vmovq(x, one) : c_.vpinsrq(x, x, one, k);
        break;
      case 32:
        k == 0 ? c_.vmovd(x, one) : c_.vpinsrd(x, x, one, k);
        break;
      case 16:
        c_.vpinsrw(x, x, one, k);
        break;
      default:
        c_.vpinsrb(x, x, one, k);
    }
  }
  if (lanes_ > group) c_.vinserti128(Ymm(reg), Ymm(reg), Xmm(kFirst), 1);
}

void Avx2Code::put(const ValueType& t, const Xbyak::Address& to, const Xmm& x) {
  if (single_) return put_one(t, to, Xmm(x.getIdx()));
  const int bits = t.bits * lanes_;
  bits >= 128 ? c_.vmovdqu(to, x) : bits == 64 ? c_.vmovq(to, x) : c_.vmovd(to, x);
}

void Avx2Code::put_one(const ValueType& t, const Xbyak::Address& to, const Xmm& x) {
  switch (t.bits) {
    case 64:
      return c_.vmovq(to, x);
    case 32:
      return c_.vmovd(to, x);
    case 16:
      return c_.vpextrw(to, x, 0);
    default:
      return c_.vpextrb(to, x, 0);
  }
}

}  // namespace dalsegno::halide_gen
