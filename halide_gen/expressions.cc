#include "halide_gen/expressions.h"

#include <iterator>
#include <limits>
#include <map>

#include "halide_gen/plan/rules.h"

namespace dalsegno::halide_gen {
namespace {

using namespace Halide;
using Internal::const_false;
using Internal::const_true;
using Internal::make_const;
using Internal::make_one;
using Internal::make_zero;
using F = ArrayFn;
using Operands = std::vector<Expr>;
using Builder = Expr (*)(const Operands&);

Type unsigned_of(const Expr& x) { return UInt(x.type().bits()); }
Expr bits(const Expr& x) { return reinterpret(unsigned_of(x), x); }
Expr from_bits(Type t, const Expr& x) { return reinterpret(t, x); }
Expr sign_mask(const Expr& x) { return cast(unsigned_of(x), 1) << cast(unsigned_of(x), x.type().bits() - 1); }
Expr magnitude(const Expr& x) { return bits(x) & ~sign_mask(x); }
Expr zero(const Expr& x) { return make_zero(x.type()); }
Expr one(const Expr& x) { return make_one(x.type()); }

// Exponent bits all set: infinities and NaNs. Integer tests raise no flags where comparisons would.
Expr exponent_mask(const Expr& x) {
  return x.type().bits() == 64 ? make_const(UInt(64), uint64_t{0x7ff0000000000000}) : make_const(UInt(32), uint64_t{0x7f800000});
}

// Signed overflow is undefined to Halide and wraps in NumPy: integers are added as unsigned ones.
Expr wrap(const Expr& a, const Expr& b, Expr (*f)(Expr, Expr)) { return from_bits(a.type(), f(bits(a), bits(b))); }
Expr plus(Expr a, Expr b) { return std::move(a) + std::move(b); }
Expr minus(Expr a, Expr b) { return std::move(a) - std::move(b); }
Expr times(Expr a, Expr b) { return std::move(a) * std::move(b); }
Expr wrapping_negative(const Expr& a) { return from_bits(a.type(), make_zero(unsigned_of(a)) - bits(a)); }

// Shifts by the width or more, or by negative numbers, give what shifting by one place at a time would.
Expr shift_in_range(const Operands& v) { return bits(v[1]) < cast(unsigned_of(v[1]), v[1].type().bits()); }
Expr safe_shift(const Operands& v) { return select(shift_in_range(v), v[1], zero(v[1])); }

// Machines' < raises "invalid" on a NaN, and NumPy's comparisons raise nothing; == and != are quiet in both. So what is compared in place
// of a NaN is no NaN, and gives false: a scalar is looked at once, and an element becomes the scalar itself; of two elements both become
// zero.
bool is_scalar(const Expr& x) {
  const auto* variable = x.as<Internal::Variable>();
  return variable != nullptr && variable->param.defined();
}
Expr unless_nan(const Expr& x, const Expr& otherwise) { return select(is_nan(x), otherwise, x); }
Expr less(const Expr& a, const Expr& b) {
  if (is_scalar(b)) {
    const Expr limit = unless_nan(b, a.type().min());
    return unless_nan(a, limit) < limit;
  }
  if (is_scalar(a)) {
    const Expr limit = unless_nan(a, a.type().max());
    return limit < unless_nan(b, limit);
  }
  const Expr ordered = !is_nan(a) && !is_nan(b);
  return select(ordered, a, zero(a)) < select(ordered, b, zero(b));
}
Expr less_equal(const Expr& a, const Expr& b) { return less(a, b) || a == b; }

Expr sign(const Operands& v) {
  const Expr& a = v[0];
  return select(a > zero(a), one(a), a < zero(a), -one(a), zero(a));
}
Expr float_sign(const Operands& v) {
  const Expr& a = v[0];
  const Expr b = select(is_nan(a), zero(a), a);
  return select(b > zero(a), one(a), b < zero(a), -one(a), a == zero(a), zero(a), a);
}

Expr copysign(const Operands& v) { return from_bits(v[0].type(), magnitude(v[0]) | (bits(v[1]) & sign_mask(v[1]))); }

// clang-format off
#define RULE(expression) +[](const Operands& v) -> Expr { return expression; }
const std::map<F, Builder> kFloatRules = {
    {F::add, RULE(v[0] + v[1])},
    {F::subtract, RULE(v[0] - v[1])},
    {F::multiply, RULE(v[0] * v[1])},
    {F::divide, RULE(strict_float(v[0] / v[1]))},  // a plain division by what turns out to be a constant zero is refused
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
    {F::maximum, RULE(select(less(v[1], v[0]) || is_nan(v[0]), v[0], v[1]))},
    {F::minimum, RULE(select(less(v[0], v[1]) || is_nan(v[0]), v[0], v[1]))},
    {F::less, RULE(less(v[0], v[1]))},
    {F::greater, RULE(less(v[1], v[0]))},
    {F::less_equal, RULE(less_equal(v[0], v[1]))},
    {F::greater_equal, RULE(less_equal(v[1], v[0]))},
    {F::equal, RULE(v[0] == v[1])},
    {F::not_equal, RULE(v[0] != v[1])},
    {F::isnan, RULE(magnitude(v[0]) > exponent_mask(v[0]))},
    {F::isinf, RULE(magnitude(v[0]) == exponent_mask(v[0]))},
    {F::isfinite, RULE(magnitude(v[0]) < exponent_mask(v[0]))},
    {F::signbit, RULE((bits(v[0]) & sign_mask(v[0])) != make_zero(unsigned_of(v[0])))},
};

const std::map<F, Builder> kIntRules = {
    {F::add, RULE(wrap(v[0], v[1], plus))},
    {F::subtract, RULE(wrap(v[0], v[1], minus))},
    {F::multiply, RULE(wrap(v[0], v[1], times))},
    {F::square, RULE(wrap(v[0], v[0], times))},
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
    {F::right_shift, RULE(select(shift_in_range(v), v[0] >> bits(safe_shift(v)), select(v[0] < zero(v[0]), -one(v[0]), zero(v[0]))))},
    {F::isnan, RULE(const_false())},
    {F::isinf, RULE(const_false())},
    {F::isfinite, RULE(const_true())},
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
    {F::isnan, RULE(const_false())},
    {F::isinf, RULE(const_false())},
    {F::isfinite, RULE(const_true())},
};
#undef RULE
// clang-format on

// C's compilers turn floats into integers of 32 bits first. (A cast to the narrow type may become one instruction, which saturates.)
Expr lowest_bits(Type to, const Expr& x) {
  const Type narrow = UInt(to.bits());
  return from_bits(to, cast(narrow, bits(x) & make_const(UInt(32), narrow.max().as<Internal::UIntImm>()->value)));
}

// The C rules; a float out of the integer's range raises "invalid", and the kernel is left.
Expr convert(const Expr& x, DType from, DType to) {
  if (from == to) return x;
  if (to == DType::kBool) return x != zero(x);
  if (from == DType::kBool) return select(x, make_one(value_type(to)), make_zero(value_type(to)));
  if (is_float(from) && is_int(to) && dtype_size(to) < 4) return lowest_bits(value_type(to), cast(Int(32), x));
  return cast(value_type(to), x);
}

bool logical(F fn) { return fn == F::logical_and || fn == F::logical_or || fn == F::logical_xor || fn == F::logical_not; }

}  // namespace

Type value_type(DType dtype) {
  static const Type types[] = {Bool(), Int(32), Int(64), Float(32), Float(64), Int(8), UInt(8), Int(16), UInt(16), UInt(32), UInt(64)};
  static_assert(std::size(types) == static_cast<size_t>(DType::kCount));
  return types[static_cast<int>(dtype)];
}
Type memory_type(DType dtype) { return dtype == DType::kBool ? UInt(8) : value_type(dtype); }
Expr load(const Expr& stored, DType dtype) { return dtype == DType::kBool ? stored != make_zero(UInt(8)) : stored; }
Expr store(const Expr& value, DType dtype) { return dtype == DType::kBool ? select(value, make_one(UInt(8)), make_zero(UInt(8))) : value; }

Expr build(ArrayFn fn, DType loop, DType result, const Operands& operands) {
  if (fn == F::where) return select(operands[0], operands[1], operands[2]);
  if (fn == F::astype) return convert(operands[0], loop, result);
  Operands v = operands;
  if (logical(fn)) {
    for (Expr& x : v) x = convert(x, loop, DType::kBool);
    loop = DType::kBool;
  }
  const auto& rules = loop == DType::kBool ? kBoolRules : is_float(loop) ? kFloatRules : kIntRules;
  const auto rule = rules.find(fn);
  return rule == rules.end() ? Expr() : rule->second(v);
}

}  // namespace dalsegno::halide_gen
