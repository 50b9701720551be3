#include "halide_gen/plan/avx512_code.h"

namespace dalsegno::halide_gen {
namespace {

using Xbyak::Xmm;
using Xbyak::Zmm;

}  // namespace

void Avx512Code::number_of(const Value& value, int out, const Operands& in) {
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
  arithmetic(value, value.type.is_float() ? where(to) : to, a, b);
}

// Those at even places and those at odd ones, as the low bytes of products of 16 bits.
void Avx512Code::multiply_bytes(const Xmm& to, const Xmm& a, const Xmm& b) {
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

void Avx512Code::round(const Value& value, const Xmm& to, const Xmm& x) {
  constexpr uint8_t kQuietly = 8;  // "inexact" is not raised
  const uint8_t how = value.node == Node::kFloor ? 1 : value.node == Node::kCeil ? 2 : value.node == Node::kTrunc ? 3 : 0;
  value.type.bits == 64 ? c_.vrndscalepd(where(to), x, how | kQuietly) : c_.vrndscaleps(where(to), x, how | kQuietly);
}

void Avx512Code::shift(const Value& value, const Xmm& to, const Xmm& x, const Xmm& by) {
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

void Avx512Code::select(const Value& value, int out, const Operands& in) {
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

void Avx512Code::convert(const Value& value, int out, int in) {
  const ValueType &to = value.type, &from = value.of;
  const Xmm y = where(vector(out, to)), x = vector(in, from);
  if (to.is_float() && from.is_float()) return to.bits == 64 ? c_.vcvtps2pd(y, x) : c_.vcvtpd2ps(y, x);
  if (to.is_float()) return to_float(value, out, in);
  if (from.is_float()) return from_float(value, y, x);
  to.bits > from.bits ? widen(vector(out, to), x, from, to) : narrow(vector(out, to), x, from, to);
}

void Avx512Code::to_float(const Value& value, int out, int in) {
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

void Avx512Code::from_float(const Value& value, const Xmm& y, const Xmm& x) {
  const bool sign = value.type.is_int(), wide_float = value.of.bits == 64;
  if (value.type.bits == 64) {
    if (wide_float) return sign ? c_.vcvttpd2qq(y, x) : c_.vcvttpd2uqq(y, x);
    return sign ? c_.vcvttps2qq(y, x) : c_.vcvttps2uqq(y, x);
  }
  if (value.type.bits != 32) throw NotCovered();
  if (wide_float) return sign ? c_.vcvttpd2dq(y, x) : c_.vcvttpd2udq(y, x);
  sign ? c_.vcvttps2dq(y, x) : c_.vcvttps2udq(y, x);
}

void Avx512Code::narrow(const Xmm& y, const Xmm& x, const ValueType& from, const ValueType& to) {
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

void Avx512Code::truth(const Value& value, int out, const Operands& in) {
  const Opmask k(out);
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

void Avx512Code::select_truth(const Opmask& k, const Operands& in) {
  const int other = free_mask();
  if (other == kNowhere) throw NotCovered();
  c_.kandnq(k, Opmask(in[0]), Opmask(in[2]));
  c_.kandq(Opmask(other), Opmask(in[0]), Opmask(in[1]));
  c_.korq(k, k, Opmask(other));
}

void Avx512Code::compare(const Value& value, const Opmask& k, const Operands& in) {
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
