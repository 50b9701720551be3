#include "halide_gen/plan/rules.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>

namespace dalsegno::halide_gen {
namespace {

using F = ArrayFn;
using D = DType;

// Which dtypes a function has loops for, what it makes of the others, and what comes out.
enum class Family : uint8_t {
  kNone,
  kArithmetic,   // bool, integer and float loops; the result has the loop's dtype
  kNumber,       // as arithmetic, without bool
  kFloatOnly,    // float loops; integers go to the float that holds them; of bool and 8 bits that is float16, which kernels do not know
  kDivide,       // float loops; bool and integers go to float64
  kIntOnly,      // integer loops
  kBits,         // bool and integer loops
  kCount,        // integer loops; the result is uint8
  kCompare,      // any loop; the result is bool
  kFloatTest,    // as kFloatOnly; the result is bool
  kAnyTest,      // any loop; the result is bool
  kFloatNoCast,  // float loops; other operands are left to NumPy
  kClip,         // integer and float loops, without casts, and numbers as bounds: with an array NumPy's loop is another one
  kWhere,
  kAstype,
};

// clang-format off
Family family(ArrayFn fn) {
  switch (fn) {
    case F::add: case F::multiply: case F::maximum: case F::minimum: case F::fmax: case F::fmin: case F::absolute:
    case F::floor: case F::ceil: case F::trunc:
      return Family::kArithmetic;
    case F::subtract: case F::negative: case F::positive: case F::square: case F::sign: case F::floor_divide: case F::remainder:
    case F::fmod: case F::reciprocal:
      return Family::kNumber;
    case F::divide:
      return Family::kDivide;
    case F::bitwise_and: case F::bitwise_or: case F::bitwise_xor: case F::invert:
      return Family::kBits;
    case F::left_shift: case F::right_shift: case F::gcd: case F::lcm:
      return Family::kIntOnly;
    case F::less: case F::less_equal: case F::greater: case F::greater_equal: case F::equal: case F::not_equal:
    case F::logical_and: case F::logical_or: case F::logical_xor: case F::logical_not:
      return Family::kCompare;
    case F::isnan: case F::isinf: case F::isfinite:
      return Family::kAnyTest;
    case F::signbit:
      return Family::kFloatTest;
    case F::where:
      return Family::kWhere;
    case F::clip:
      return Family::kClip;
    case F::astype:
      return Family::kAstype;
    case F::power: case F::float_power:
      return Family::kFloatNoCast;  // integer power takes the GIL; a cast operand may get another stride, which power looks at
    case F::bitwise_count:
      return Family::kCount;
    case F::roll: case F::none: case F::kCount:
      return Family::kNone;
    default:
      return Family::kFloatOnly;
  }
}
// clang-format on

struct Common {
  bool known = false, has_strong = false;
  D dtype = D::kBool;
};

// NEP 50: Python numbers adapt to the strong operands' common dtype, and raise its kind where they must.
Common common_dtype(const std::vector<OperandType>& operands, size_t first) {
  Common c;
  Weak weak = Weak::kNo;
  for (size_t i = first; i < operands.size(); ++i) {
    if (operands[i].weak != Weak::kNo) {
      if (operands[i].weak > weak) weak = operands[i].weak;
      continue;
    }
    c.dtype = c.has_strong ? promoted(c.dtype, operands[i].dtype) : operands[i].dtype;
    c.has_strong = true;
  }
  c.known = c.has_strong || weak != Weak::kNo;
  if (!c.has_strong) c.dtype = weak == Weak::kInt ? D::kInt64 : D::kFloat64;
  if (c.dtype == D::kBool && weak == Weak::kInt) c.dtype = D::kInt64;
  if (!is_float(c.dtype) && weak == Weak::kFloat) c.dtype = D::kFloat64;
  return c;
}

// The float in which NumPy computes a function that has loops for floats only.
D float_of(D common) { return is_float(common) ? common : casts_safely(common, D::kFloat32) ? D::kFloat32 : D::kFloat64; }

// clang-format off
LoopTypes loop_types(Family f, D common) {
  const LoopTypes same{true, common, common}, to_double{true, D::kFloat64, D::kFloat64}, test{true, common, D::kBool};
  const bool float16 = dtype_size(common) == 1;
  switch (f) {
    case Family::kArithmetic: return same;
    case Family::kNumber: case Family::kClip: return common == D::kBool ? LoopTypes{} : same;
    case Family::kFloatOnly: return float16 ? LoopTypes{} : LoopTypes{true, float_of(common), float_of(common)};
    case Family::kDivide: return is_float(common) ? same : to_double;
    case Family::kIntOnly: return is_int(common) ? same : LoopTypes{};
    case Family::kBits: return is_float(common) ? LoopTypes{} : same;
    case Family::kCompare: case Family::kAnyTest: return test;
    case Family::kCount: return is_int(common) ? LoopTypes{true, common, D::kUint8} : LoopTypes{};
    case Family::kFloatTest: return float16 ? LoopTypes{} : LoopTypes{true, float_of(common), D::kBool};
    case Family::kFloatNoCast: return is_float(common) ? same : LoopTypes{};
    default: return LoopTypes{};
  }
}
// clang-format on

bool in(ArrayFn fn, std::initializer_list<ArrayFn> list) {
  for (ArrayFn f : list) {
    if (f == fn) return true;
  }
  return false;
}

// Functions that are float arithmetic in themselves: their flags are eager's flags.
bool float_arithmetic(ArrayFn fn) { return in(fn, {F::add, F::subtract, F::multiply, F::divide, F::square, F::reciprocal, F::sqrt}); }

bool all_whole(const std::vector<OperandType>& operands) {
  return std::all_of(operands.begin(), operands.end(), [](const OperandType& o) { return o.weak != Weak::kFloat && !is_float(o.dtype); });
}

// Floats become unsigned integers of 32 and 64 bits by other instructions on other processors.
bool casts_alike(D from, D to) { return !is_float(from) || (to != D::kUint32 && to != D::kUint64); }

}  // namespace

LoopTypes resolve(ArrayFn fn, const std::vector<OperandType>& operands, DType wanted) {
  const Family f = family(fn);
  if (f == Family::kNone || static_cast<int>(operands.size()) != array_fn_inputs(fn) || !is_known(wanted)) return {};
  for (const OperandType& o : operands)
    if (o.weak == Weak::kNo && !is_known(o.dtype)) return {};
  const Common c = common_dtype(operands, f == Family::kWhere ? 1 : 0);
  if (!c.known) return {};
  if (f == Family::kWhere) return {true, c.dtype, c.dtype};
  if (f == Family::kAstype) return {operands[0].weak == Weak::kNo, c.dtype, wanted};
  if (fn == F::float_power && c.dtype != D::kFloat64) return {};
  if (f == Family::kFloatNoCast || f == Family::kClip) {
    for (const OperandType& o : operands) {
      if (o.weak == Weak::kNo && o.dtype != c.dtype) return {};
    }
  }
  // An int64 with an uint64 is compared by a loop of its own, though their common dtype is float64.
  if (f == Family::kCompare && is_float(c.dtype) && all_whole(operands)) return {};
  LoopTypes t = loop_types(f, c.dtype);
  if (fn == F::invert && c.dtype == D::kBool) t = {true, D::kBool, D::kBool};
  return t;
}

Treatment treatment(ArrayFn fn, DType loop, DType result) {
  if (!is_known(loop) || !is_known(result)) return Treatment::kNone;
  if (fn == F::where) return loop == result ? Treatment::kExpr : Treatment::kNone;
  if (fn == F::astype) return casts_alike(loop, result) ? Treatment::kExpr : Treatment::kNone;
  const LoopTypes t = resolve(fn, std::vector<OperandType>(static_cast<size_t>(array_fn_inputs(fn)), OperandType{loop, Weak::kNo}));
  if (!t.known || t.loop != loop || t.result != result) return Treatment::kNone;
  // Division: NumPy's loops set the flags for zero divisors, and never trap. Float remainders need fmod.
  if (in(fn, {F::floor_divide, F::remainder})) return Treatment::kLoop;
  if (fn == F::reciprocal && is_int(loop)) return Treatment::kLoop;
  if (looks_at_position(fn, loop)) return Treatment::kLoop;
  return array_fn_is_expr(fn) ? Treatment::kExpr : Treatment::kLoop;
}

bool float_to_int(ArrayFn fn, DType loop, DType result) { return fn == F::astype && is_float(loop) && is_int(result); }

bool raises_flags(ArrayFn fn, DType loop, DType result) {
  if (!is_float(loop)) return false;
  if (fn == F::astype) return float_to_int(fn, loop, result) || (loop == D::kFloat64 && result == D::kFloat32);
  return float_arithmetic(fn);
}

bool anchors(ArrayFn fn, DType loop, DType result, int k) {
  if (!is_float(loop) || !is_float(result)) return false;
  if (fn == F::copysign) return k == 0;
  return float_arithmetic(fn) || in(fn, {F::negative, F::positive, F::absolute, F::fabs, F::floor, F::ceil, F::trunc, F::rint, F::astype});
}

bool copies_bools(ArrayFn fn, DType loop, DType result) {
  return loop == D::kBool && result == D::kBool && in(fn, {F::where, F::floor, F::ceil, F::trunc, F::astype});
}

bool looks_at_position(ArrayFn fn, DType loop) { return is_float(loop) && in(fn, {F::fmax, F::fmin}); }

bool looks_at_strides(ArrayFn fn) { return in(fn, {F::power, F::float_power}); }

}  // namespace dalsegno::halide_gen
