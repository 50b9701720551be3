// Typed steps on unboxed int, float and bool. Each gives CPython's result, bit for bit, or leaves before the instruction.
#include <bit>
#include <cerrno>
#include <cmath>
#include <functional>

#include "replay/machine/scalars.h"
#include "trace/fault.h"

namespace dalsegno::replay {

PyObject* box(Rep rep, Reg value) {
  if (typed::is_numpy_scalar(rep)) return box_numpy(rep, value);
  if (rep == Rep::kFloat) return PyFloat_FromDouble(value.f);
  if (rep == Rep::kComplex) return PyComplex_FromCComplex(value.c);
  if (rep == Rep::kNatural) return PyLong_FromUnsignedLongLong(static_cast<uint64_t>(value.i));
  return rep == Rep::kBool ? PyBool_FromLong(value.i != 0) : PyLong_FromLongLong(value.i);
}

bool unbox(Rep rep, PyObject* object, Reg* out) {
  if (typed::is_numpy_scalar(rep)) return unbox_numpy(rep, object, out);
  if (rep == Rep::kFloat) {
    if (!PyFloat_CheckExact(object)) return false;
    out->f = PyFloat_AS_DOUBLE(object);
    return true;
  }
  if (rep == Rep::kComplex) {
    if (!PyComplex_CheckExact(object)) return false;
    out->c = reinterpret_cast<PyComplexObject*>(object)->cval;
    return true;
  }
  if (rep == Rep::kBool) {
    out->i = object == Py_True;
    return PyBool_Check(object);
  }
  if (!PyLong_CheckExact(object)) return false;
  if (rep == Rep::kWrapped) return out->i = static_cast<int64_t>(PyLong_AsUnsignedLongLongMask(object)), true;
  int over = 0;
  if (rep == Rep::kNatural && _PyLong_Sign(object) >= 0 && _PyLong_NumBits(object) <= 64)
    return out->i = static_cast<int64_t>(PyLong_AsUnsignedLongLongMask(object)), true;
  if (rep == Rep::kNatural) return false;
  out->i = PyLong_AsLongLongAndOverflow(object, &over);
  return over == 0;
}

namespace {

using typed::exact_in_double;

// What a typed operation came to.
enum class OpResult { kOk, kOverflow, kLeave };

// -- int

struct IntAdd {
  static OpResult apply(int64_t a, int64_t b, int64_t* out) {
    return __builtin_add_overflow(a, b, out) ? OpResult::kOverflow : OpResult::kOk;
  }
};
struct IntSub {
  static OpResult apply(int64_t a, int64_t b, int64_t* out) {
    return __builtin_sub_overflow(a, b, out) ? OpResult::kOverflow : OpResult::kOk;
  }
};
struct IntMul {
  static OpResult apply(int64_t a, int64_t b, int64_t* out) {
    return __builtin_mul_overflow(a, b, out) ? OpResult::kOverflow : OpResult::kOk;
  }
};
struct IntAnd {
  static OpResult apply(int64_t a, int64_t b, int64_t* out) { return *out = a & b, OpResult::kOk; }
};
struct IntOr {
  static OpResult apply(int64_t a, int64_t b, int64_t* out) { return *out = a | b, OpResult::kOk; }
};
struct IntXor {
  static OpResult apply(int64_t a, int64_t b, int64_t* out) { return *out = a ^ b, OpResult::kOk; }
};
struct IntFloorDiv {
  static OpResult apply(int64_t a, int64_t b, int64_t* out) {
    if (b == 0) return OpResult::kLeave;
    if (b == -1) return __builtin_sub_overflow(int64_t{0}, a, out) ? OpResult::kOverflow : OpResult::kOk;
    int64_t q = a / b;
    *out = q - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
    return OpResult::kOk;
  }
};
// By an exponent that is not negative.
struct IntPow {
  static OpResult apply(int64_t a, int64_t b, int64_t* out) {
    if (b < 0) return OpResult::kLeave;
    int64_t product = 1;
    for (;;) {  // a square that is too large has a power to be part of that is, too
      if ((b & 1) != 0 && __builtin_mul_overflow(product, a, &product)) return OpResult::kOverflow;
      if ((b >>= 1) == 0) return *out = product, OpResult::kOk;
      if (__builtin_mul_overflow(a, a, &a)) return OpResult::kOverflow;
    }
  }
};
struct IntLshift {
  static OpResult apply(int64_t a, int64_t b, int64_t* out) {
    if (b < 0) return OpResult::kLeave;
    if (a == 0) return *out = 0, OpResult::kOk;
    if (b > 62) return OpResult::kOverflow;
    *out = static_cast<int64_t>(static_cast<uint64_t>(a) << b);
    return (*out >> b) == a ? OpResult::kOk : OpResult::kOverflow;
  }
};
struct IntRshift {
  static OpResult apply(int64_t a, int64_t b, int64_t* out) {
    if (b < 0) return OpResult::kLeave;
    *out = a >> (b > 63 ? 63 : b);
    return OpResult::kOk;
  }
};
// int / int is correctly rounded in CPython, and so is the division of doubles as long as both operands are exact in one.
struct IntTrueDiv {
  static OpResult apply(int64_t a, int64_t b, double* out) {
    if (b == 0) return OpResult::kLeave;
    if (!exact_in_double(a) || !exact_in_double(b)) return OpResult::kOverflow;
    *out = static_cast<double>(a) / static_cast<double>(b);
    return OpResult::kOk;
  }
};

// -- modulo 2**64 (replay/typed/modular.h); shifts by 0 to 63

template <class F>
struct Modular {
  static OpResult apply(int64_t a, int64_t b, int64_t* out) {
    *out = static_cast<int64_t>(F{}(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
    return OpResult::kOk;
  }
};
struct ShiftLeft {
  uint64_t operator()(uint64_t a, uint64_t b) const { return a << b; }
};
struct ShiftRight {
  uint64_t operator()(uint64_t a, uint64_t b) const { return a >> b; }
};

// -- float

struct FloatAdd {
  static OpResult apply(double a, double b, double* out) { return *out = a + b, OpResult::kOk; }
};
struct FloatSub {
  static OpResult apply(double a, double b, double* out) { return *out = a - b, OpResult::kOk; }
};
struct FloatMul {
  static OpResult apply(double a, double b, double* out) { return *out = a * b, OpResult::kOk; }
};
struct FloatTrueDiv {
  static OpResult apply(double a, double b, double* out) {
    if (b == 0.0) return OpResult::kLeave;
    *out = a / b;
    return OpResult::kOk;
  }
};
// As float_rem() and _float_div_mod() of Objects/floatobject.c.
double python_mod(double a, double b) {
  double mod = std::fmod(a, b);
  if (mod == 0.0) return std::copysign(0.0, b);
  return (b < 0) != (mod < 0) ? mod + b : mod;
}
struct FloatMod {
  static OpResult apply(double a, double b, double* out) {
    if (b == 0.0) return OpResult::kLeave;
    *out = python_mod(a, b);
    return OpResult::kOk;
  }
};
struct FloatFloorDiv {
  static OpResult apply(double a, double b, double* out) {
    if (b == 0.0) return OpResult::kLeave;
    double mod = std::fmod(a, b);
    double div = (a - mod) / b;
    if (mod != 0.0 && (b < 0) != (mod < 0)) div -= 1.0;
    if (div == 0.0) {
      *out = std::copysign(0.0, a / b);
      return OpResult::kOk;
    }
    double floordiv = std::floor(div);
    *out = div - floordiv > 0.5 ? floordiv + 1.0 : floordiv;
    return OpResult::kOk;
  }
};
// The ordinary part of float_pow(): finite operands, base not 0, no complex result. The rest is left to the interpreter.
struct FloatPow {
  static OpResult apply(double a, double b, double* out) {
    if (b == 0.0 || a == 1.0) return *out = 1.0, OpResult::kOk;
    if (!std::isfinite(a) || !std::isfinite(b) || a == 0.0) return OpResult::kLeave;
    bool negate = false;
    if (a < 0.0) {
      if (b != std::floor(b)) return OpResult::kLeave;
      negate = std::fmod(std::fabs(b), 2.0) == 1.0;
      a = -a;
    }
    if (a == 1.0) return *out = negate ? -1.0 : 1.0, OpResult::kOk;
    errno = 0;
    double x = std::pow(a, b);
    if (std::isinf(x) || (errno != 0 && x != 0.0)) return OpResult::kLeave;
    *out = negate ? -x : x;
    return OpResult::kOk;
  }
};

template <class T>
T& as(Reg& r);
template <>
int64_t& as<int64_t>(Reg& r) {
  return r.i;
}
template <>
double& as<double>(Reg& r) {
  return r.f;
}
template <>
float& as<float>(Reg& r) {
  return r.s;
}

template <class F, class In, class Out>
const Step* binary(const Step* s, Reg* r, Machine& m) {
  Out out = {};
  OpResult did = F::apply(as<In>(r[s->a]), as<In>(r[s->b]), &out);
  if (did == OpResult::kOk || (did == OpResult::kOverflow && planted(Fault::ignored_overflow))) [[likely]] {
    as<Out>(r[s->dst]) = out;
    return go_on(s + 1, r, m);
  }
  return did == OpResult::kOverflow ? overflow(m, s->exit) : refuse(m, s->exit);
}

// Whether CPython hands back the left operand itself as the remainder: long_rem() of Objects/longobject.c looks at the number of digits
// (of 30 bits) and at the first ones only; two ints of one digit each give a new one.
inline bool is_its_own_remainder(int64_t a, int64_t b) {
  constexpr int kDigit = 30;
  const uint64_t x = a < 0 ? 0 - static_cast<uint64_t>(a) : static_cast<uint64_t>(a);
  const uint64_t y = b < 0 ? 0 - static_cast<uint64_t>(b) : static_cast<uint64_t>(b);
  const int n = (std::bit_width(x) + kDigit - 1) / kDigit, m = (std::bit_width(y) + kDigit - 1) / kDigit;
  return n < m || (n == m && m > 1 && x >> kDigit * (n - 1) < y >> kDigit * (m - 1));
}

// Then the result shares its box (other: the operand's object register, or -1: nobody ever sees it; c: the result's).
const Step* int_remainder(const Step* s, Reg* r, Machine& m) {
  int64_t a = r[s->a].i, b = r[s->b].i;
  if (b == 0) return refuse(m, s->exit);
  int64_t rest = b == -1 ? 0 : a % b;
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  r[s->dst].i = rest;
  if (rest == a && s->other >= 0 && is_its_own_remainder(a, b)) [[unlikely]] {
    if (!r[s->other].o && !(r[s->other].o = PyLong_FromLongLong(a))) return fail(m, s->exit, false);
    r[s->c].o = Py_NewRef(r[s->other].o);
  }
  return go_on(s + 1, r, m);
}

// -- comparisons

template <int op, class T>
bool holds(T a, T b) {
  if constexpr (op == Py_LT) return a < b;
  if constexpr (op == Py_LE) return a <= b;
  if constexpr (op == Py_EQ) return a == b;
  if constexpr (op == Py_NE) return a != b;
  if constexpr (op == Py_GT) return a > b;
  return a >= b;
}
template <int op, class T>
const Step* compare(const Step* s, Reg* r, Machine& m) {
  r[s->dst].i = holds<op, T>(as<T>(r[s->a]), as<T>(r[s->b]));
  return go_on(s + 1, r, m);
}

// Compared, and guarded to be `wanted`.
template <int op, class T, bool wanted>
const Step* compare_guard(const Step* s, Reg* r, Machine& m) {
  bool truth = holds<op, T>(as<T>(r[s->a]), as<T>(r[s->b]));
  r[s->dst].i = truth;
  if (truth == wanted) [[likely]]
    return go_on(s + 1, r, m);
  count_guard_failure();
  return leave(m, s->exit);
}

// -- unary

const Step* int_negative(const Step* s, Reg* r, Machine& m) {
  int64_t out;
  if (__builtin_sub_overflow(int64_t{0}, r[s->a].i, &out)) return overflow(m, s->exit);
  r[s->dst].i = out;
  return go_on(s + 1, r, m);
}
const Step* wrapped_negative(const Step* s, Reg* r, Machine& m) {
  r[s->dst].i = static_cast<int64_t>(0 - static_cast<uint64_t>(r[s->a].i));
  return go_on(s + 1, r, m);
}
const Step* int_invert(const Step* s, Reg* r, Machine& m) {
  r[s->dst].i = ~r[s->a].i;
  return go_on(s + 1, r, m);
}
const Step* float_negative(const Step* s, Reg* r, Machine& m) {
  r[s->dst].f = -r[s->a].f;
  return go_on(s + 1, r, m);
}

constexpr int kOps = static_cast<int>(BinaryOp::xor_) + 1;
#define INT(F) binary<F, int64_t, int64_t>
#define FLT(F) binary<F, double, double>
// In the order of BinaryOp: add and floor_divide lshift matmul multiply remainder or power rshift subtract true_divide xor
constexpr StepFn kIntOps[kOps] = {INT(IntAdd), INT(IntAnd),    INT(IntFloorDiv), INT(IntLshift),
                                  nullptr,     INT(IntMul),    int_remainder,    INT(IntOr),
                                  INT(IntPow), INT(IntRshift), INT(IntSub),      binary<IntTrueDiv, int64_t, double>,
                                  INT(IntXor)};
constexpr StepFn kFloatOps[kOps] = {FLT(FloatAdd), nullptr, FLT(FloatFloorDiv), nullptr, nullptr,       FLT(FloatMul),
                                    FLT(FloatMod), nullptr, FLT(FloatPow),      nullptr, FLT(FloatSub), FLT(FloatTrueDiv),
                                    nullptr};
constexpr StepFn kModularOps[kOps] = {INT(Modular<std::plus<>>),
                                      INT(IntAnd),
                                      nullptr,
                                      INT(Modular<ShiftLeft>),
                                      nullptr,
                                      INT(Modular<std::multiplies<>>),
                                      nullptr,
                                      INT(IntOr),
                                      nullptr,
                                      INT(Modular<ShiftRight>),
                                      INT(Modular<std::minus<>>),
                                      nullptr,
                                      INT(IntXor)};
#undef INT
#undef FLT
// In the order Py_LT Py_LE Py_EQ Py_NE Py_GT Py_GE.
#define SIX(F, ...) \
  { F<0, __VA_ARGS__>, F<1, __VA_ARGS__>, F<2, __VA_ARGS__>, F<3, __VA_ARGS__>, F<4, __VA_ARGS__>, F<5, __VA_ARGS__> }
constexpr StepFn kIntCompare[] = SIX(compare, int64_t);
constexpr StepFn kFloatCompare[] = SIX(compare, double);
constexpr StepFn kSingleCompare[] = SIX(compare, float);
constexpr StepFn kIntGuard[2][6] = {SIX(compare_guard, int64_t, false), SIX(compare_guard, int64_t, true)};
constexpr StepFn kFloatGuard[2][6] = {SIX(compare_guard, double, false), SIX(compare_guard, double, true)};
constexpr StepFn kSingleGuard[2][6] = {SIX(compare_guard, float, false), SIX(compare_guard, float, true)};
#undef SIX

StepFn unary_step(UnaryOp op, Rep operand) {
  if (op == UnaryOp::invert) return int_invert;
  if (operand == Rep::kWrapped) return wrapped_negative;
  return operand == Rep::kFloat ? float_negative : int_negative;
}

}  // namespace

namespace {
template <class F>
int32_t float_result(double a, double b, double* out) {
  return F::apply(a, b, out) == OpResult::kOk;
}
int32_t int_power(int64_t a, int64_t b, int64_t* out) { return IntPow::apply(a, b, out) == OpResult::kOk; }
}  // namespace

const void* operator_function(BinaryOp op, Rep rep) {
  if (rep == Rep::kInt) return op == BinaryOp::power ? reinterpret_cast<const void*>(int_power) : nullptr;
  if (rep == Rep::kNpFloat64) return numpy_operator_function(op);
  if (rep != Rep::kFloat) return nullptr;
  if (op == BinaryOp::floor_divide) return reinterpret_cast<const void*>(float_result<FloatFloorDiv>);
  if (op == BinaryOp::remainder) return reinterpret_cast<const void*>(float_result<FloatMod>);
  return op == BinaryOp::power ? reinterpret_cast<const void*>(float_result<FloatPow>) : nullptr;
}

static StepFn complex_step(const Op& op, const typed::Operator& how) {
  if (op.kind == OpKind::compare) return complex_compare_step(op.imm);
  if (op.kind == OpKind::unary) return step_complex_negative;
  const auto binary = how.operand == Rep::kComplex ? complex_binary_step : numpy_complex_step;
  return binary(static_cast<BinaryOp>(op.imm), how.real);
}

StepFn operator_step(const Op& op, const typed::Operator& how) {
  const typed::Bits bits = typed::bits_of(how.operand);
  if (bits == typed::Bits::kComplex) return complex_step(op, how);
  if (op.kind == OpKind::compare)
    return (bits == typed::Bits::kDouble ? kFloatCompare : bits == typed::Bits::kFloat ? kSingleCompare : kIntCompare)[op.imm];
  const bool numpy = typed::is_numpy_scalar(how.operand), unary = op.kind == OpKind::unary;
  if (unary) return (numpy ? numpy_unary_step : unary_step)(static_cast<UnaryOp>(op.imm), how.operand);
  if (numpy) return numpy_binary_step(static_cast<BinaryOp>(op.imm), how.operand);
  if (typed::is_modular(how.operand)) return kModularOps[op.imm];
  return (bits == typed::Bits::kDouble ? kFloatOps : kIntOps)[op.imm];
}

StepFn masked_step() { return kModularOps[static_cast<size_t>(BinaryOp::and_)]; }

StepFn guarded_compare(StepFn compare, bool wanted) {
  for (int op = 0; op < 6; ++op) {
    if (compare == kIntCompare[op]) return kIntGuard[wanted][op];
    if (compare == kFloatCompare[op]) return kFloatGuard[wanted][op];
    if (compare == kSingleCompare[op]) return kSingleGuard[wanted][op];
  }
  return nullptr;
}

const Step* step_not(const Step* s, Reg* r, Machine& m) {
  r[s->dst].i = !r[s->a].i;
  return go_on(s + 1, r, m);
}

namespace {
template <Rep rep>
const Step* box_once(const Step* s, Reg* r, Machine& m) {
  if (r[s->dst].o) return go_on(s + 1, r, m);
  r[s->dst].o = box(rep, r[s->a]);
  return r[s->dst].o ? s + 1 : fail(m, s->exit, false);
}
}  // namespace

StepFn box_step(Rep rep) {
  static constexpr auto kSteps = by_rep([]<Rep rep>() -> StepFn { return box_once<rep>; });
  return kSteps[static_cast<size_t>(rep)];
}

}  // namespace dalsegno::replay
