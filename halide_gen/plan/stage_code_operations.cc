#include "halide_gen/plan/stage_code.h"

namespace dalsegno::halide_gen {
namespace {

using Xbyak::Operand;
using Xbyak::Xmm;
using Xbyak::Zmm;
using G = Xbyak::CodeGenerator;

using OfFloats = void (G::*)(const Xmm&, const Operand&, const Operand&);
using OfIntegers = void (G::*)(const Xmm&, const Xmm&, const Operand&);
// By kind and by bits: 8, 16, 32, 64; null: there is no such instruction.
struct Binary {
  Node node;
  OfFloats of_float[2];
  OfIntegers of_integer[4];
};

constexpr Binary kBinaries[] = {
    {Node::kAdd, {&G::vaddps, &G::vaddpd}, {&G::vpaddb, &G::vpaddw, &G::vpaddd, &G::vpaddq}},
    {Node::kSub, {&G::vsubps, &G::vsubpd}, {&G::vpsubb, &G::vpsubw, &G::vpsubd, &G::vpsubq}},
    {Node::kMul, {&G::vmulps, &G::vmulpd}, {nullptr, &G::vpmullw, &G::vpmulld, &G::vpmullq}},
    {Node::kDiv, {&G::vdivps, &G::vdivpd}, {}},
};

int by_bits(const ValueType& t) { return t.bits == 8 ? 0 : t.bits == 16 ? 1 : t.bits == 32 ? 2 : 3; }

// What the instructions call a comparison.
uint8_t predicate(Node node, bool of_floats) {
  switch (node) {
    case Node::kEq:
      return 0;  // (of floats: ordered, quiet)
    case Node::kNe:
      return 4;  // (unordered, quiet)
    case Node::kIsNan:
      return 3;  // (quiet)
    case Node::kQuietLt:
      return 17;
    case Node::kQuietLe:
      return 18;
    case Node::kLt:
      return 1;
    case Node::kLe:
      return 2;
    case Node::kGt:
      if (of_floats) throw NotCovered();
      return 6;
    case Node::kGe:
      if (of_floats) throw NotCovered();
      return 5;
    default:
      throw NotCovered();
  }
}

}  // namespace

void StageCode::compute(const Value& value) {
  Operands in{};
  for (size_t k = 0; k < in.size() && value.operands[k] >= 0; ++k) in[k] = found(value.operands[k]);
  // An operand's register may be the result's, but for what is made of several instructions.
  if (!value.type.is_bool()) release_dead();
  const int out = take(now_);
  value.type.is_bool() ? truth(value, Opmask(out), in) : number_of(value, out, in);
  release_dead();
}

void StageCode::number_of(const Value& value, int out, const Operands& in) {
  const Xmm to = vector(out, value.type), a = vector(in[0], value.of), b = vector(in[1], value.of);
  switch (value.node) {
    case Node::kSelect:
      return select(value, out, in);
    case Node::kConvert:
      return convert(value, out, in[0]);
    case Node::kSqrt:
      return value.type.bits == 64 ? c_.vsqrtpd(where(to), a) : c_.vsqrtps(where(to), a);
    case Node::kFloor:
    case Node::kCeil:
    case Node::kTrunc:
    case Node::kRound:
      return round(value, to, a);
    case Node::kBitNot:  // (all three operands are waited for)
      if (out != in[0]) c_.vmovdqa64(Zmm(out), Zmm(in[0]));
      return c_.vpternlogq(Zmm(out), Zmm(out), Zmm(out), 0x55);
    case Node::kBitAnd:
      return c_.vpandq(Zmm(out), Zmm(in[0]), Zmm(in[1]));
    case Node::kBitOr:
      return c_.vporq(Zmm(out), Zmm(in[0]), Zmm(in[1]));
    case Node::kBitXor:
      return c_.vpxorq(Zmm(out), Zmm(in[0]), Zmm(in[1]));
    case Node::kShiftLeft:
    case Node::kShiftRight:
      return shift(value, to, a, b);
    default:
      break;
  }
  if (value.node == Node::kMul && value.type.bits == 8) return multiply_bytes(to, a, b);
  for (const Binary& known : kBinaries) {
    if (known.node != value.node) continue;
    if (value.type.is_float()) return (c_.*known.of_float[value.type.bits == 64])(where(to), a, b);
    const OfIntegers f = known.of_integer[by_bits(value.type)];
    if (f == nullptr) throw NotCovered();
    return (c_.*f)(to, a, b);
  }
  throw NotCovered();
}

// Those at even places and those at odd ones, as the low bytes of products of 16 bits.
void StageCode::multiply_bytes(const Xmm& to, const Xmm& a, const Xmm& b) {
  const auto other = [&](int from) {  // than the operands', which are read twice
    while ((from = free_vector(from)) != kNowhere && (from == a.getIdx() || from == b.getIdx())) ++from;
    return from;
  };
  const int first = other(0), second = first == kNowhere ? kNowhere : other(first + 1);
  const int odd = free_mask();
  if (first == kNowhere || second == kNowhere || odd == kNowhere) throw NotCovered();
  const Xmm x = vector(first, {ValueType::kUint, 8}), y = vector(second, {ValueType::kUint, 8});
  c_.vpsrlw(x, a, 8);
  c_.vpsrlw(y, b, 8);
  c_.vpmullw(x, x, y);
  c_.vpsllw(x, x, 8);
  c_.vpmullw(to, a, b);
  c_.mov(c_.rax, 0xaaaaaaaaaaaaaaaa);
  c_.kmovq(Opmask(odd), c_.rax);
  c_.vmovdqu8(to | Opmask(odd), x);
}

void StageCode::round(const Value& value, const Xmm& to, const Xmm& x) {
  constexpr uint8_t kQuietly = 8;  // "inexact" is not raised
  const uint8_t how = value.node == Node::kFloor ? 1 : value.node == Node::kCeil ? 2 : value.node == Node::kTrunc ? 3 : 0;
  value.type.bits == 64 ? c_.vrndscalepd(where(to), x, how | kQuietly) : c_.vrndscaleps(where(to), x, how | kQuietly);
}

void StageCode::shift(const Value& value, const Xmm& to, const Xmm& x, const Xmm& by) {
  const bool left = value.node == Node::kShiftLeft, sign = value.type.is_int();
  switch (value.type.bits) {
    case 16:
      return left ? c_.vpsllvw(to, x, by) : sign ? c_.vpsravw(to, x, by) : c_.vpsrlvw(to, x, by);
    case 32:
      return left ? c_.vpsllvd(to, x, by) : sign ? c_.vpsravd(to, x, by) : c_.vpsrlvd(to, x, by);
    case 64:
      return left ? c_.vpsllvq(to, x, by) : sign ? c_.vpsravq(to, x, by) : c_.vpsrlvq(to, x, by);
    default:
      throw NotCovered();
  }
}

void StageCode::select(const Value& value, int out, const Operands& in) {
  const Xmm to = vector(out, value.type) | Opmask(in[0]), yes = vector(in[1], value.type), no = vector(in[2], value.type);
  switch (value.type.bits) {
    case 64:
      return c_.vpblendmq(to, no, yes);
    case 32:
      return c_.vpblendmd(to, no, yes);
    case 16:
      return c_.vpblendmw(to, no, yes);
    default:
      return c_.vpblendmb(to, no, yes);
  }
}

void StageCode::convert(const Value& value, int out, int in) {
  const ValueType &to = value.type, &from = value.of;
  const Xmm y = where(vector(out, to)), x = vector(in, from);
  if (to.is_float() && from.is_float()) return to.bits == 64 ? c_.vcvtps2pd(y, x) : c_.vcvtpd2ps(y, x);
  if (to.is_float()) return to_float(value, out, in);
  if (from.is_float()) return from_float(value, y, x);
  to.bits > from.bits ? widen(vector(out, to), x, from, to) : narrow(vector(out, to), x, from, to);
}

void StageCode::to_float(const Value& value, int out, int in) {
  ValueType from = value.of;
  if (from.bits < 32) {
    const ValueType wider{ValueType::kInt, 32};
    widen(vector(out, wider), vector(in, from), from, wider);
    from = wider, in = out;
  }
  const Xmm y = where(vector(out, value.type)), x = vector(in, from);
  if (value.type.bits == 64 && from.bits == 64) return from.is_int() ? c_.vcvtqq2pd(y, x) : c_.vcvtuqq2pd(y, x);
  if (value.type.bits == 64) return from.is_int() ? c_.vcvtdq2pd(y, x) : c_.vcvtudq2pd(y, x);
  if (from.bits == 64) return from.is_int() ? c_.vcvtqq2ps(y, x) : c_.vcvtuqq2ps(y, x);
  from.is_int() ? c_.vcvtdq2ps(y, x) : c_.vcvtudq2ps(y, x);
}

void StageCode::from_float(const Value& value, const Xmm& y, const Xmm& x) {
  const bool sign = value.type.is_int(), wide_float = value.of.bits == 64;
  if (value.type.bits == 64) {
    if (wide_float) return sign ? c_.vcvttpd2qq(y, x) : c_.vcvttpd2uqq(y, x);
    return sign ? c_.vcvttps2qq(y, x) : c_.vcvttps2uqq(y, x);
  }
  if (value.type.bits != 32) throw NotCovered();
  if (wide_float) return sign ? c_.vcvttpd2dq(y, x) : c_.vcvttpd2udq(y, x);
  sign ? c_.vcvttps2dq(y, x) : c_.vcvttps2udq(y, x);
}

void StageCode::widen(const Xmm& y, const Xmm& x, const ValueType& from, const ValueType& to) {
  const bool sign = from.is_int();
  switch (from.bits * 100 + to.bits) {
    case 816:
      return sign ? c_.vpmovsxbw(y, x) : c_.vpmovzxbw(y, x);
    case 832:
      return sign ? c_.vpmovsxbd(y, x) : c_.vpmovzxbd(y, x);
    case 864:
      return sign ? c_.vpmovsxbq(y, x) : c_.vpmovzxbq(y, x);
    case 1632:
      return sign ? c_.vpmovsxwd(y, x) : c_.vpmovzxwd(y, x);
    case 1664:
      return sign ? c_.vpmovsxwq(y, x) : c_.vpmovzxwq(y, x);
    case 3264:
      return sign ? c_.vpmovsxdq(y, x) : c_.vpmovzxdq(y, x);
    default:
      throw NotCovered();
  }
}

void StageCode::narrow(const Xmm& y, const Xmm& x, const ValueType& from, const ValueType& to) {
  switch (from.bits * 100 + to.bits) {
    case 6432:
      return c_.vpmovqd(y, x);
    case 6416:
      return c_.vpmovqw(y, x);
    case 6408:
      return c_.vpmovqb(y, x);
    case 3216:
      return c_.vpmovdw(y, x);
    case 3208:
      return c_.vpmovdb(y, x);
    case 1608:
      return c_.vpmovwb(y, x);
    default:
      throw NotCovered();
  }
}

// ---- truth values: bits of a mask register

void StageCode::truth(const Value& value, const Opmask& k, const Operands& in) {
  switch (value.node) {
    case Node::kAnd:
      return c_.kandq(k, Opmask(in[0]), Opmask(in[1]));
    case Node::kOr:
      return c_.korq(k, Opmask(in[0]), Opmask(in[1]));
    case Node::kNot:
      return c_.knotq(k, Opmask(in[0]));
    case Node::kSelect:
      return select_truth(k, in);
    default:
      return compare(value, k, in);
  }
}

void StageCode::select_truth(const Opmask& k, const Operands& in) {
  const int other = free_mask();
  if (other == kNowhere) throw NotCovered();
  c_.kandnq(k, Opmask(in[0]), Opmask(in[2]));
  c_.kandq(Opmask(other), Opmask(in[0]), Opmask(in[1]));
  c_.korq(k, k, Opmask(other));
}

void StageCode::compare(const Value& value, const Opmask& k, const Operands& in) {
  const ValueType& t = value.of;
  if (t.is_bool()) throw NotCovered();
  const uint8_t how = predicate(value.node, t.is_float());
  const Xmm a = vector(in[0], t), b = vector(value.node == Node::kIsNan ? in[0] : in[1], t);
  const Opmask to = where(k);
  if (t.is_float()) return t.bits == 64 ? c_.vcmppd(to, a, b, how) : c_.vcmpps(to, a, b, how);
  const bool sign = t.is_int();
  switch (t.bits) {
    case 64:
      return sign ? c_.vpcmpq(to, a, b, how) : c_.vpcmpuq(to, a, b, how);
    case 32:
      return sign ? c_.vpcmpd(to, a, b, how) : c_.vpcmpud(to, a, b, how);
    case 16:
      return sign ? c_.vpcmpw(to, a, b, how) : c_.vpcmpuw(to, a, b, how);
    default:
      return sign ? c_.vpcmpb(to, a, b, how) : c_.vpcmpub(to, a, b, how);
  }
}

}  // namespace dalsegno::halide_gen
