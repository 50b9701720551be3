#include <bit>
#include <cstdint>

#include "halide_gen/plan/avx2_code.h"

namespace dalsegno::halide_gen {
namespace {

using Xbyak::Operand;
using Xbyak::Xmm;
using Xbyak::Ymm;
using G = Xbyak::CodeGenerator;

using OfIntegers = void (G::*)(const Xmm&, const Xmm&, const Operand&);
// By bits: 8, 16, 32, 64.
constexpr OfIntegers kEqual[] = {&G::vpcmpeqb, &G::vpcmpeqw, &G::vpcmpeqd, &G::vpcmpeqq};
constexpr OfIntegers kGreater[] = {&G::vpcmpgtb, &G::vpcmpgtw, &G::vpcmpgtd, &G::vpcmpgtq};
constexpr OfIntegers kLeast[] = {&G::vpminub, &G::vpminuw, &G::vpminud};
constexpr OfIntegers kMost[] = {&G::vpmaxub, &G::vpmaxuw, &G::vpmaxud};

}  // namespace

void Avx2Code::bitwise(Node node, int out, const Operands& in) {
  const Ymm to(out), a(in[0]), b(in[1]);
  switch (node) {
    case Node::kBitAnd:
      return c_.vpand(to, a, b);
    case Node::kBitOr:
      return c_.vpor(to, a, b);
    case Node::kBitXor:
      return c_.vpxor(to, a, b);
    default:
      return invert(to, a);
  }
}

void Avx2Code::multiply(const Value& value, const Xmm& to, const Xmm& a, const Xmm& b) {
  if (value.type.bits == 8) return multiply_bytes(to, a, b);
  value.type.bits == 64 ? multiply_wide(to, a, b) : arithmetic(value, to, a, b);
}

void Avx2Code::invert(const Xmm& to, const Xmm& x) {
  const Ymm ones(kSecond);
  c_.vpcmpeqd(ones, ones, ones);
  c_.vpxor(Ymm(to.getIdx()), Ymm(x.getIdx()), ones);
}

// Those at even places and those at odd ones, as the low bytes of products of 16 bits.
void Avx2Code::multiply_bytes(const Xmm& to, const Xmm& a, const Xmm& b) {
  const Ymm x(kFirst), y(kSecond), all(to.getIdx()), left(a.getIdx()), right(b.getIdx());
  c_.vpsrlw(x, left, 8);
  c_.vpsrlw(y, right, 8);
  c_.vpmullw(x, x, y);
  c_.vpsllw(x, x, 8);
  c_.vpmullw(all, left, right);
  c_.vpcmpeqd(y, y, y);
  c_.vpsrlw(y, y, 8);
  c_.vpand(all, all, y);
  c_.vpor(all, all, x);
}

// Of 64 bits, by products of 32.
void Avx2Code::multiply_wide(const Xmm& to, const Xmm& a, const Xmm& b) {
  const Ymm x(kFirst), y(kSecond);
  c_.vpsrlq(x, a, 32);
  c_.vpmuludq(x, x, b);
  c_.vpsrlq(y, b, 32);
  c_.vpmuludq(y, y, a);
  c_.vpaddq(x, x, y);
  c_.vpsllq(x, x, 32);
  c_.vpmuludq(to, a, b);
  c_.vpaddq(to, to, x);
}

void Avx2Code::round(const ValueType& t, const Xmm& to, const Xmm& x, uint8_t how) {
  t.bits == 64 ? c_.vroundpd(to, x, how) : c_.vroundps(to, x, how);
}

void Avx2Code::shift(const Value& value, const Xmm& to, const Xmm& x, const Xmm& by) {
  const bool left = value.node == Node::kShiftLeft, sign = value.type.is_int();
  if (value.type.bits == 32) return left ? c_.vpsllvd(to, x, by) : sign ? c_.vpsravd(to, x, by) : c_.vpsrlvd(to, x, by);
  if (value.type.bits != 64) throw NotCovered();
  if (left || !sign) return left ? c_.vpsllvq(to, x, by) : c_.vpsrlvq(to, x, by);
  const Ymm negative(kFirst), bits(kSecond);  // of those the complement is shifted
  c_.vpxor(negative, negative, negative);
  c_.vpcmpgtq(negative, negative, x);
  c_.vpxor(bits, negative, x);
  c_.vpsrlvq(bits, bits, by);
  c_.vpxor(to, bits, negative);
}

void Avx2Code::select(const Value& value, int out, const Operands& in) {
  const ValueType& t = value.type;
  const bool narrower = t.bits < truth_type().bits;
  if (narrower) narrow(truth_type(), t, kSecond, in[0]);
  c_.vpblendvb(vector(out, t), vector(in[2], t), vector(in[1], t), vector(narrower ? kSecond : in[0], t));
}

Xbyak::Address Avx2Code::in_all_lanes(double x) { return table(std::vector(4, std::bit_cast<uint64_t>(x))); }

void Avx2Code::to_float(const ValueType& from, const ValueType& to, int out, int in) {
  const Xmm y = vector(out, to), x = vector(in, from);
  const bool wide = to.bits == 64;
  if (from.bits == 32 && from.is_int()) return wide ? c_.vcvtdq2pd(y, x) : c_.vcvtdq2ps(y, x);
  if (!wide) throw NotCovered();  // (twice rounded)
  if (from.bits == 64) return wide_to_double(from.is_int(), out, in);
  const Ymm natural(kFirst);  // as the low bits of 2 ** 52 and more
  c_.vpmovzxdq(natural, x);
  c_.vpor(natural, natural, in_all_lanes(0x1p52));
  c_.vsubpd(y, natural, in_all_lanes(0x1p52));
}

// The high part and the low one, each as the low bits of a large power of two; their sum is the only one that rounds. (As LLVM does it.)
void Avx2Code::wide_to_double(bool sign, int out, int in) {
  const Ymm high(kFirst), low(kSecond), x(in);
  if (sign) {  // 48 bits and 16
    c_.vpsrad(high, x, 16);
    c_.vpxor(low, low, low);
    c_.vpblendw(high, high, low, 0x33);
    c_.vpaddq(high, high, in_all_lanes(0x1.8p68));
    c_.vsubpd(high, high, in_all_lanes(0x1.8p68 + 0x1p52));
  } else {  // 32 and 32
    c_.vpsrlq(high, x, 32);
    c_.vpor(high, high, in_all_lanes(0x1p84));
    c_.vsubpd(high, high, in_all_lanes(0x1p84 + 0x1p52));
  }
  c_.vpblendw(low, x, in_all_lanes(0x1p52), sign ? 0x88 : 0xcc);
  c_.vaddpd(Ymm(out), high, low);
}

void Avx2Code::from_float(const Value& value, int out, int in) {
  const bool wide_float = value.of.bits == 64;
  if (!value.type.is_int() || value.type.bits < 32) throw NotCovered();
  const Xmm y = vector(out, value.type), x = vector(in, value.of);
  if (value.type.bits == 32) return wide_float ? c_.vcvttpd2dq(y, x) : c_.vcvttps2dq(y, x);
  if (!wide_float) c_.vcvtps2pd(y, x), in = out;
  double_to_wide(out, in);
}

// One after the other: there is no such instruction of vectors.
void Avx2Code::double_to_wide(int out, int in) {
  const Xmm high(kFirst), next(kSecond), low(out), x(in);
  c_.vextracti128(next, Ymm(in), 1);
  c_.vcvttsd2si(c_.rax, next);
  c_.vmovq(high, c_.rax);
  c_.vpermilpd(next, next, 1);
  c_.vcvttsd2si(c_.rax, next);
  c_.vpinsrq(high, high, c_.rax, 1);
  c_.vcvttsd2si(c_.rax, x);
  c_.vpermilpd(next, x, 1);
  c_.vmovq(low, c_.rax);
  c_.vcvttsd2si(c_.rax, next);
  c_.vpinsrq(low, low, c_.rax, 1);
  c_.vinserti128(Ymm(out), Ymm(out), high, 1);
}

// The low bits of each element, which are no more than 128 in all.
void Avx2Code::narrow(const ValueType& from, const ValueType& to, int out, int in) {
  const bool halves = from.bits * lanes_ > 128;
  const int in_half = halves ? lanes_ / 2 : lanes_;
  constexpr uint64_t kNothing = 0x8080808080808080;
  std::vector<uint64_t> bytes(halves ? 4 : 2, kNothing);
  for (int lane = 0; lane < lanes_; ++lane)
    for (int k = 0; k < to.bytes(); ++k) {
      const int at = 16 * (lane / in_half) + lane * to.bytes() + k, shift = at % 8 * 8;
      uint64_t& eight = bytes[static_cast<size_t>(at / 8)];
      eight = (eight & ~(uint64_t{0xff} << shift)) | static_cast<uint64_t>(lane % in_half * from.bytes() + k) << shift;
    }
  if (!halves) return c_.vpshufb(Xmm(out), Xmm(in), table(bytes));
  c_.vpshufb(Ymm(out), Ymm(in), table(bytes));
  c_.vextracti128(Xmm(kFirst), Ymm(out), 1);
  c_.vpor(Xmm(out), Xmm(out), Xmm(kFirst));
}

// ---- truth values

void Avx2Code::truth(const Value& value, int out, const Operands& in) {
  const Ymm to(out), a(in[0]);
  switch (value.node) {
    case Node::kAnd:
      return c_.vpand(to, a, Ymm(in[1]));
    case Node::kOr:
      return c_.vpor(to, a, Ymm(in[1]));
    case Node::kNot:
      return invert(to, a);
    case Node::kSelect:
      return c_.vpblendvb(to, Ymm(in[2]), Ymm(in[1]), a);
    default:
      return compare(value, out, in);
  }
}

void Avx2Code::compare(const Value& value, int out, const Operands& in) {
  const ValueType &t = value.of, as_wide = truth_type();
  if (t.is_bool()) throw NotCovered();
  const Xmm to = vector(out, t), a = vector(in[0], t), b = vector(value.node == Node::kIsNan ? in[0] : in[1], t);
  if (!t.is_float())
    compare_integers(value, to, a, b);
  else
    t.bits == 64 ? c_.vcmppd(to, a, b, predicate(value.node, true)) : c_.vcmpps(to, a, b, predicate(value.node, true));
  if (t.bits < as_wide.bits) widen(Ymm(out), to, {ValueType::kInt, t.bits}, as_wide);
}

// `to` is none of the operands.
void Avx2Code::compare_integers(const Value& value, const Xmm& to, const Xmm& a, const Xmm& b) {
  const ValueType& t = value.of;
  const int k = std::countr_zero(static_cast<unsigned>(t.bits) / 8);
  const bool equal = value.node == Node::kEq || value.node == Node::kNe;
  const bool less = value.node == Node::kLt || value.node == Node::kGe;  // or not
  bool inverted = value.node == Node::kNe || value.node == Node::kLe || value.node == Node::kGe;
  if (equal) {
    (c_.*kEqual[k])(to, a, b);
  } else if (t.is_int()) {
    less ? (c_.*kGreater[k])(to, b, a) : (c_.*kGreater[k])(to, a, b);
  } else if (t.bits == 64) {
    const Ymm x(kFirst), sign(kSecond);
    c_.vpbroadcastq(sign, number(uint64_t{1} << 63));
    c_.vpxor(x, a, sign);
    c_.vpxor(to, b, sign);
    less ? c_.vpcmpgtq(to, to, x) : c_.vpcmpgtq(to, x, to);
  } else {  // the larger one of the two, or the smaller one, is the first
    (c_.*(less ? kMost : kLeast)[k])(to, a, b);
    (c_.*kEqual[k])(to, to, a);
    inverted = !inverted;
  }
  if (inverted) invert(to, to);
}

}  // namespace dalsegno::halide_gen
