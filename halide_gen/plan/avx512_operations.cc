#include "halide_gen/plan/avx512_code.h"

namespace dalsegno::halide_gen {
namespace {

using Xbyak::Xmm;
using Xbyak::Zmm;

}  // namespace

void Avx512Code::bitwise(Node node, int out, const Operands& in) {
  const Zmm to(out), a(in[0]), b(in[1]);
  switch (node) {
    case Node::kBitAnd:
      return c_.vpandq(to, a, b);
    case Node::kBitOr:
      return c_.vporq(to, a, b);
    case Node::kBitXor:
      return c_.vpxorq(to, a, b);
    default:  // not (all three operands are waited for)
      if (out != in[0]) c_.vmovdqa64(to, a);
      c_.vpternlogq(to, to, to, 0x55);
  }
}

void Avx512Code::multiply(const Value& value, const Xmm& to, const Xmm& a, const Xmm& b) {
  value.type.bits == 8 ? multiply_bytes(to, a, b) : arithmetic(value, to, a, b);
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

void Avx512Code::round(const ValueType& t, const Xmm& to, const Xmm& x, uint8_t how) {
  t.bits == 64 ? c_.vrndscalepd(where(to), x, how) : c_.vrndscaleps(where(to), x, how);
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

void Avx512Code::to_float(const ValueType& from, const ValueType& to, int out, int in) {
  const Xmm y = where(vector(out, to)), x = vector(in, from);
  if (to.bits == 64 && from.bits == 64) return from.is_int() ? c_.vcvtqq2pd(y, x) : c_.vcvtuqq2pd(y, x);
  if (to.bits == 64) return from.is_int() ? c_.vcvtdq2pd(y, x) : c_.vcvtudq2pd(y, x);
  if (from.bits == 64) return from.is_int() ? c_.vcvtqq2ps(y, x) : c_.vcvtuqq2ps(y, x);
  from.is_int() ? c_.vcvtdq2ps(y, x) : c_.vcvtudq2ps(y, x);
}

void Avx512Code::from_float(const Value& value, int out, int in) {
  const Xmm y = where(vector(out, value.type)), x = vector(in, value.of);
  const bool sign = value.type.is_int(), wide_float = value.of.bits == 64;
  if (value.type.bits == 64) {
    if (wide_float) return sign ? c_.vcvttpd2qq(y, x) : c_.vcvttpd2uqq(y, x);
    return sign ? c_.vcvttps2qq(y, x) : c_.vcvttps2uqq(y, x);
  }
  if (value.type.bits != 32) throw NotCovered();
  if (wide_float) return sign ? c_.vcvttpd2dq(y, x) : c_.vcvttpd2udq(y, x);
  sign ? c_.vcvttps2dq(y, x) : c_.vcvttps2udq(y, x);
}

void Avx512Code::narrow(const ValueType& from, const ValueType& to, int out, int in) {
  const Xmm y = vector(out, to), x = vector(in, from);
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
