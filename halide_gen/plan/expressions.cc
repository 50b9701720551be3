#include "halide_gen/plan/expressions.h"

#include <iterator>
#include <map>

#include "halide_gen/plan/rules.h"

namespace dalsegno::halide_gen {
namespace {

using F = ArrayFn;
using Operands = std::vector<Expr>;
using Builder = Expr (*)(const Operands&);

constexpr ValueType int_of(int bits) { return {ValueType::kInt, static_cast<uint8_t>(bits)}; }
constexpr ValueType uint_of(int bits) { return {ValueType::kUint, static_cast<uint8_t>(bits)}; }
constexpr ValueType float_of(int bits) { return {ValueType::kFloat, static_cast<uint8_t>(bits)}; }
constexpr ValueType kBoolType{ValueType::kBool, 1};

ValueType unsigned_of(const Expr& x) { return uint_of(x.type().bits); }
Expr bits(const Expr& x) { return x.type() == unsigned_of(x) ? x : reinterpret(unsigned_of(x), x); }
Expr from_bits(const ValueType& t, const Expr& x) { return x.type() == t ? x : reinterpret(t, x); }
Expr sign_mask(const Expr& x) { return number(unsigned_of(x), static_cast<int64_t>(uint64_t{1} << (x.type().bits - 1))); }
Expr magnitude(const Expr& x) { return bits(x) & ~sign_mask(x); }
Expr zero(const Expr& x) { return number(x.type(), 0); }
Expr one(const Expr& x) { return number(x.type(), 1); }
Expr minus_one(const Expr& x) { return number(x.type(), -1); }
Expr always(bool value) { return number(kBoolType, value); }

// Exponent bits all set: infinities and NaNs. Integer tests raise no flags where comparisons would.
Expr exponent_mask(const Expr& x) {
  return x.type().bits == 64 ? number(uint_of(64), 0x7ff0000000000000) : number(uint_of(32), 0x7f800000);
}

// Signed overflow is undefined to Halide and wraps in NumPy: integers are added as unsigned ones.
Expr wrap(const Expr& a, const Expr& b, Expr (*f)(const Expr&, const Expr&)) { return from_bits(a.type(), f(bits(a), bits(b))); }
Expr wrapping_negative(const Expr& a) { return from_bits(a.type(), number(unsigned_of(a), 0) - bits(a)); }

// Shifts by the width or more, or by negative numbers, give what shifting by one place at a time would.
Expr shift_in_range(const Operands& v) { return bits(v[1]) < number(unsigned_of(v[1]), v[1].type().bits); }
Expr safe_shift(const Operands& v) { return select(shift_in_range(v), v[1], zero(v[1])); }

Expr sign(const Operands& v) {
  const Expr& a = v[0];
  return select(a > zero(a), one(a), select(a < zero(a), minus_one(a), zero(a)));
}
Expr float_sign(const Operands& v) {
  const Expr& a = v[0];
  return select(quiet_less(zero(a), a), one(a), select(quiet_less(a, zero(a)), minus_one(a), select(a == zero(a), zero(a), a)));
}

// By numbers (NumPy: _npy_clip_const_minmax_ in clip.cpp). Neither comparison is true of a NaN.
Expr clip(const Operands& v) {
  const Expr &low = v[1], &high = v[2];
  const Expr from_low = select(v[0] < low, low, v[0]);
  return select(high < from_low, high, from_low);
}
Expr float_clip(const Operands& v) {
  const Expr &low = v[1], &high = v[2];
  const Expr from_low = select(quiet_less(v[0], low), low, v[0]);
  return select(is_nan(low), low, select(is_nan(high), high, select(quiet_less(high, from_low), high, from_low)));
}

// The quotient is in the operand's precision (npy_deg2rad and npy_deg2radf of numpy/_core/src/npymath/npy_math_internal.h.src).
constexpr double kPi = 3.141592653589793238462643383279502884;
constexpr float kPiFloat = 3.141592653589793238462643383279502884F;
Expr by_quotient(const Expr& x, double by, float by_float) { return x * real_number(x.type(), x.type().bits == 64 ? by : by_float); }
Expr to_radians(const Operands& v) { return by_quotient(v[0], kPi / 180.0, kPiFloat / 180.0F); }
Expr to_degrees(const Operands& v) { return by_quotient(v[0], 180.0 / kPi, 180.0F / kPiFloat); }

Expr heaviside(const Operands& v) {
  const Expr beside = select(quiet_less(v[0], zero(v[0])), zero(v[0]), one(v[0]));
  return select(is_nan(v[0]), v[0], select(v[0] == zero(v[0]), v[1], beside));
}

Expr copysign(const Operands& v) { return from_bits(v[0].type(), magnitude(v[0]) | (bits(v[1]) & sign_mask(v[1]))); }

// clang-format off
#define RULE(expression) +[](const Operands& v) -> Expr { return expression; }
const std::map<F, Builder> kFloatRules = {
    {F::add, RULE(v[0] + v[1])},
    {F::subtract, RULE(v[0] - v[1])},
    {F::multiply, RULE(v[0] * v[1])},
    {F::divide, RULE(v[0] / v[1])},
    {F::square, RULE(v[0] * v[0])},
    {F::reciprocal, RULE(one(v[0]) / v[0])},
    {F::sqrt, RULE(sqrt(v[0]))},
    {F::negative, RULE(from_bits(v[0].type(), bits(v[0]) ^ sign_mask(v[0])))},  // 0 - x loses the sign of zero
    {F::positive, RULE(v[0])},
    {F::absolute, RULE(from_bits(v[0].type(), magnitude(v[0])))},
    {F::fabs, RULE(from_bits(v[0].type(), magnitude(v[0])))},
    {F::floor, RULE(floor(v[0]))},
    {F::ceil, RULE(ceil(v[0]))},
    {F::trunc, RULE(trunc(v[0]))},
    {F::rint, RULE(round(v[0]))},
    {F::sign, float_sign},
    {F::copysign, copysign},
    {F::deg2rad, to_radians},
    {F::radians, to_radians},
    {F::rad2deg, to_degrees},
    {F::degrees, to_degrees},
    {F::heaviside, heaviside},
    {F::maximum, RULE(select(quiet_less(v[1], v[0]) || is_nan(v[0]), v[0], v[1]))},
    {F::minimum, RULE(select(quiet_less(v[0], v[1]) || is_nan(v[0]), v[0], v[1]))},
    {F::clip, float_clip},
    {F::less, RULE(quiet_less(v[0], v[1]))},
    {F::greater, RULE(quiet_less(v[1], v[0]))},
    {F::less_equal, RULE(quiet_less_equal(v[0], v[1]))},
    {F::greater_equal, RULE(quiet_less_equal(v[1], v[0]))},
    {F::equal, RULE(v[0] == v[1])},
    {F::not_equal, RULE(v[0] != v[1])},
    {F::isnan, RULE(magnitude(v[0]) > exponent_mask(v[0]))},
    {F::isinf, RULE(magnitude(v[0]) == exponent_mask(v[0]))},
    {F::isfinite, RULE(magnitude(v[0]) < exponent_mask(v[0]))},
    {F::signbit, RULE((bits(v[0]) & sign_mask(v[0])) != number(unsigned_of(v[0]), 0))},
};

const std::map<F, Builder> kIntRules = {
    {F::add, RULE(wrap(v[0], v[1], operator+))},
    {F::subtract, RULE(wrap(v[0], v[1], operator-))},
    {F::multiply, RULE(wrap(v[0], v[1], operator*))},
    {F::square, RULE(wrap(v[0], v[0], operator*))},
    {F::negative, RULE(wrapping_negative(v[0]))},
    {F::positive, RULE(v[0])},
    {F::absolute, RULE(select(v[0] < zero(v[0]), wrapping_negative(v[0]), v[0]))},
    {F::floor, RULE(v[0])},
    {F::ceil, RULE(v[0])},
    {F::trunc, RULE(v[0])},
    {F::sign, sign},
    {F::maximum, RULE(select(v[0] > v[1], v[0], v[1]))},
    {F::minimum, RULE(select(v[0] < v[1], v[0], v[1]))},
    {F::fmax, RULE(select(v[0] > v[1], v[0], v[1]))},
    {F::fmin, RULE(select(v[0] < v[1], v[0], v[1]))},
    {F::clip, clip},
    {F::less, RULE(v[0] < v[1])},
    {F::greater, RULE(v[1] < v[0])},
    {F::less_equal, RULE(v[0] <= v[1])},
    {F::greater_equal, RULE(v[1] <= v[0])},
    {F::equal, RULE(v[0] == v[1])},
    {F::not_equal, RULE(v[0] != v[1])},
    {F::bitwise_and, RULE(v[0] & v[1])},
    {F::bitwise_or, RULE(v[0] | v[1])},
    {F::bitwise_xor, RULE(v[0] ^ v[1])},
    {F::invert, RULE(~v[0])},
    {F::left_shift, RULE(select(shift_in_range(v), from_bits(v[0].type(), bits(v[0]) << bits(safe_shift(v))), zero(v[0])))},
    {F::right_shift, RULE(select(shift_in_range(v), v[0] >> bits(safe_shift(v)), select(v[0] < zero(v[0]), minus_one(v[0]), zero(v[0]))))},
    {F::isnan, RULE(always(false))},
    {F::isinf, RULE(always(false))},
    {F::isfinite, RULE(always(true))},
};

const std::map<F, Builder> kBoolRules = {
    {F::add, RULE(v[0] || v[1])},
    {F::multiply, RULE(v[0] && v[1])},
    {F::absolute, RULE(v[0])},
    {F::floor, RULE(v[0])},
    {F::ceil, RULE(v[0])},
    {F::trunc, RULE(v[0])},
    {F::maximum, RULE(v[0] || v[1])},
    {F::minimum, RULE(v[0] && v[1])},
    {F::fmax, RULE(v[0] || v[1])},
    {F::fmin, RULE(v[0] && v[1])},
    {F::less, RULE(!v[0] && v[1])},
    {F::greater, RULE(v[0] && !v[1])},
    {F::less_equal, RULE(!v[0] || v[1])},
    {F::greater_equal, RULE(v[0] || !v[1])},
    {F::equal, RULE((v[0] && v[1]) || (!v[0] && !v[1]))},
    {F::not_equal, RULE((v[0] && !v[1]) || (!v[0] && v[1]))},
    {F::bitwise_and, RULE(v[0] && v[1])},
    {F::bitwise_or, RULE(v[0] || v[1])},
    {F::bitwise_xor, RULE((v[0] && !v[1]) || (!v[0] && v[1]))},
    {F::invert, RULE(!v[0])},
    {F::logical_and, RULE(v[0] && v[1])},
    {F::logical_or, RULE(v[0] || v[1])},
    {F::logical_xor, RULE((v[0] && !v[1]) || (!v[0] && v[1]))},
    {F::logical_not, RULE(!v[0])},
    {F::isnan, RULE(always(false))},
    {F::isinf, RULE(always(false))},
    {F::isfinite, RULE(always(true))},
};
#undef RULE
// clang-format on

// C's compilers turn floats into integers of 32 bits first. (A conversion to the narrow type may become one instruction, which saturates.)
Expr lowest_bits(const ValueType& to, const Expr& x) {
  const ValueType narrow = uint_of(to.bits);
  const Expr low = bits(x) & number(uint_of(32), (int64_t{1} << to.bits) - 1);
  return from_bits(to, convert(narrow, low));
}

// The C rules; a float out of the integer's range raises "invalid", and the kernel is left.
Expr converted(const Expr& x, DType from, DType to) {
  if (from == to) return x;
  if (to == DType::kBool) return x != zero(x);
  if (from == DType::kBool) return select(x, number(value_type(to), 1), number(value_type(to), 0));
  if (is_float(from) && is_int(to) && dtype_size(to) < 4) return lowest_bits(value_type(to), convert(int_of(32), x));
  return convert(value_type(to), x);
}

bool logical(F fn) { return fn == F::logical_and || fn == F::logical_or || fn == F::logical_xor || fn == F::logical_not; }

}  // namespace

ValueType value_type(DType dtype) {
  static constexpr ValueType kTypes[] = {kBoolType,  int_of(32), int_of(64),  float_of(32), float_of(64), int_of(8),
                                         uint_of(8), int_of(16), uint_of(16), uint_of(32),  uint_of(64)};
  static_assert(std::size(kTypes) == static_cast<size_t>(DType::kComplex64));
  return kTypes[static_cast<int>(dtype)];
}
ValueType memory_type(DType dtype) { return dtype == DType::kBool ? uint_of(8) : value_type(dtype); }
Expr load(const Expr& stored, DType dtype) { return dtype == DType::kBool ? stored != zero(stored) : stored; }
Expr store(const Expr& value, DType dtype) {
  return dtype == DType::kBool ? select(value, number(uint_of(8), 1), number(uint_of(8), 0)) : value;
}

Expr build(ArrayFn fn, DType loop, DType result, const Operands& operands) {
  if (fn == F::where) return select(operands[0], operands[1], operands[2]);
  if (fn == F::astype) return converted(operands[0], loop, result);
  Operands v = operands;
  if (logical(fn)) {
    for (Expr& x : v) x = converted(x, loop, DType::kBool);
    loop = DType::kBool;
  }
  const auto& rules = loop == DType::kBool ? kBoolRules : is_float(loop) ? kFloatRules : kIntRules;
  const auto rule = rules.find(fn);
  return rule == rules.end() ? Expr() : rule->second(v);
}

}  // namespace dalsegno::halide_gen
