// Typed steps for calls of builtins and of math on unboxed operands. Each gives CPython's result, bit for bit, or leaves before the
// instruction. list: the operands' registers; n: how many.
#include <cerrno>
#include <cmath>

#include "replay/machine/scalars.h"

namespace dalsegno::replay {
namespace {

using typed::Callee;

template <class T>
T& as(Reg& r) {
  if constexpr (std::is_same_v<T, double>) return r.f;
  if constexpr (std::is_same_v<T, float>) return r.s;
  if constexpr (std::is_same_v<T, int64_t>) return r.i;
}

// ---- what gives one of its arguments -----------------------------------------------------------------------------------------------

// list has a second half: per operand the register of its object, or -1 if nobody ever sees it. The result shares the chosen one's.
const Step* share(const Step* s, Reg* r, Machine& m, int32_t chosen) {
  r[s->dst] = r[s->list[chosen]];
  const int32_t object = s->list[s->n + chosen];
  if (s->c < 0 || object < 0) return go_on(s + 1, r, m);
  if (!r[object].o && !(r[object].o = box(static_cast<Rep>(s->imm), r[s->list[chosen]]))) return fail(m, s->exit, false);
  r[s->c].o = Py_NewRef(r[object].o);
  return go_on(s + 1, r, m);
}

// As builtins.min and max do it: an argument that compares less (greater) than the best so far takes its place. NaN never does.
template <class T, bool largest>
const Step* extreme(const Step* s, Reg* r, Machine& m) {
  int32_t chosen = 0;
  T found = as<T>(r[s->list[0]]);
  for (int32_t k = 1; k < s->n; ++k) {
    const T next = as<T>(r[s->list[k]]);
    if (largest ? next > found : next < found) found = next, chosen = k;
  }
  return share(s, r, m, chosen);
}

// The same for two that nobody sees the objects of.
template <class T, bool largest>
const Step* extreme_of_two(const Step* s, Reg* r, Machine& m) {
  const T a = as<T>(r[s->a]), b = as<T>(r[s->b]);
  as<T>(r[s->dst]) = (largest ? b > a : b < a) ? b : a;
  return go_on(s + 1, r, m);
}

const Step* same(const Step* s, Reg* r, Machine& m) { return share(s, r, m, 0); }

const Step* int_abs(const Step* s, Reg* r, Machine& m) {
  const int64_t a = r[s->list[0]].i;
  if (a >= 0) return share(s, r, m, 0);
  if (a == std::numeric_limits<int64_t>::min()) return overflow(m, s->exit);
  r[s->dst].i = -a;
  return go_on(s + 1, r, m);
}

// ---- what gives a new number -------------------------------------------------------------------------------------------------------

template <class T>
const Step* numpy_int_abs(const Step* s, Reg* r, Machine& m) {
  const auto a = static_cast<T>(r[s->a].i);
  if (a == std::numeric_limits<T>::min()) [[unlikely]]
    return refuse(m, s->exit);
  r[s->dst].i = a < 0 ? -a : a;
  return go_on(s + 1, r, m);
}

template <class T>
const Step* float_abs(const Step* s, Reg* r, Machine& m) {
  as<T>(r[s->dst]) = std::fabs(as<T>(r[s->a]));
  return go_on(s + 1, r, m);
}

const Step* copy(const Step* s, Reg* r, Machine& m) {
  r[s->dst] = r[s->a];
  return go_on(s + 1, r, m);
}

// As the language rounds: to the nearest, halves to the even one (float.__round__).
double round_half_even(double x) {
  const double rounded = std::round(x);
  return std::fabs(x - rounded) == 0.5 ? 2.0 * std::round(x / 2.0) : rounded;
}

// To an int; what is no number, or does not fit, is the interpreter's.
template <double (*F)(double)>
const Step* to_int(const Step* s, Reg* r, Machine& m) {
  const double whole = F(r[s->a].f);
  constexpr double kLimit = 9223372036854775808.0;
  if (!(whole >= -kLimit && whole < kLimit)) [[unlikely]]
    return refuse(m, s->exit);
  r[s->dst].i = static_cast<int64_t>(whole);
  return go_on(s + 1, r, m);
}

template <bool (*F)(double)>
const Step* test(const Step* s, Reg* r, Machine& m) {
  r[s->dst].i = F(r[s->a].f);
  return go_on(s + 1, r, m);
}

// ---- math --------------------------------------------------------------------------------------------------------------------------

// As math_1() and is_error() of Modules/mathmodule.c: underflow is no error.
bool says_error(double result) { return errno != 0 && !(errno == ERANGE && std::fabs(result) < 1.5); }

template <double (*F)(double)>
const Step* math(const Step* s, Reg* r, Machine& m) {
  const double x = r[s->a].f;
  errno = 0;
  const double y = F(x);
  const bool error = std::isnan(y) ? !std::isnan(x) : std::isinf(y) ? std::isfinite(x) : says_error(y);
  if (error) [[unlikely]]
    return refuse(m, s->exit);
  r[s->dst].f = y;
  return go_on(s + 1, r, m);
}

// m_log(), m_log2(), m_log10(): the C library's for what is positive and finite.
template <double (*F)(double)>
const Step* logarithm(const Step* s, Reg* r, Machine& m) {
  const double x = r[s->a].f;
  if (!(x > 0.0 && std::isfinite(x))) [[unlikely]]
    return refuse(m, s->exit);
  r[s->dst].f = F(x);
  return go_on(s + 1, r, m);
}

// m_atan2(): the C library's but on the axes and at infinity.
const Step* atan2_(const Step* s, Reg* r, Machine& m) {
  const double y = r[s->list[0]].f, x = r[s->list[1]].f;
  if (!std::isfinite(x) || !std::isfinite(y) || y == 0.0) [[unlikely]]
    return refuse(m, s->exit);
  errno = 0;
  const double out = std::atan2(y, x);
  if (says_error(out)) return refuse(m, s->exit);
  r[s->dst].f = out;
  return go_on(s + 1, r, m);
}

// One name a function: the library's are overloaded.
#define C_FUNCTION(name) \
  double name##_(double x) { return std::name(x); }
C_FUNCTION(floor)
C_FUNCTION(ceil)
C_FUNCTION(trunc)
C_FUNCTION(log)
C_FUNCTION(log2)
C_FUNCTION(log10)
C_FUNCTION(acos)
C_FUNCTION(acosh)
C_FUNCTION(asin)
C_FUNCTION(asinh)
C_FUNCTION(atan)
C_FUNCTION(atanh)
C_FUNCTION(cbrt)
C_FUNCTION(cos)
C_FUNCTION(cosh)
C_FUNCTION(exp)
C_FUNCTION(exp2)
C_FUNCTION(expm1)
C_FUNCTION(fabs)
C_FUNCTION(sin)
C_FUNCTION(sinh)
C_FUNCTION(sqrt)
C_FUNCTION(tan)
C_FUNCTION(tanh)
#undef C_FUNCTION
bool isnan_(double x) { return std::isnan(x); }
bool isinf_(double x) { return std::isinf(x); }
bool isfinite_(double x) { return std::isfinite(x); }

constexpr StepFn kMath[] = {math<acos_>, math<acosh_>, math<asin_>, math<asinh_>, math<atan_>, math<atanh_>,
                            math<cbrt_>, math<cos_>,   math<cosh_>, math<exp_>,   math<exp2_>, math<expm1_>,
                            math<fabs_>, math<sin_>,   math<sinh_>, math<sqrt_>,  math<tan_>,  math<tanh_>};
static_assert(std::size(kMath) == static_cast<size_t>(Callee::kCount) - static_cast<size_t>(Callee::kAcos));

template <bool largest>
StepFn extreme_step(typed::Bits bits, bool two) {
  if (bits == typed::Bits::kDouble) return two ? extreme_of_two<double, largest> : extreme<double, largest>;
  if (bits == typed::Bits::kFloat) return two ? extreme_of_two<float, largest> : extreme<float, largest>;
  return two ? extreme_of_two<int64_t, largest> : extreme<int64_t, largest>;
}

StepFn abs_step(Rep operand) {
  switch (operand) {
    case Rep::kInt:
      return int_abs;
    case Rep::kNpInt8:
      return numpy_int_abs<int8_t>;
    case Rep::kNpInt16:
      return numpy_int_abs<int16_t>;
    case Rep::kNpUint8:
    case Rep::kNpUint16:
    case Rep::kNpUint32:
    case Rep::kNpUint64:
      return copy;
    case Rep::kNpInt32:
      return numpy_int_abs<int32_t>;
    case Rep::kNpInt64:
      return numpy_int_abs<int64_t>;
    case Rep::kNpFloat32:
      return float_abs<float>;
    default:
      return float_abs<double>;
  }
}

}  // namespace

StepFn call_step(Callee callee, const typed::Operator& how, bool shares, int32_t n) {
  const bool two = !shares && n == 2;
  switch (callee) {
    case Callee::kMin:
      return extreme_step<false>(typed::bits_of(how.operand), two);
    case Callee::kMax:
      return extreme_step<true>(typed::bits_of(how.operand), two);
    case Callee::kAbs:
      return abs_step(how.operand);
    case Callee::kInt:
      if (typed::bits_of(how.operand) == typed::Bits::kDouble) return to_int<trunc_>;
      return shares ? same : copy;
    case Callee::kFloat:
      return shares ? same : copy;
    case Callee::kBool:
      return how.operand == Rep::kBool ? copy : truth_step(how.operand);
    case Callee::kRound:
      return to_int<round_half_even>;
    case Callee::kFloor:
      return to_int<floor_>;
    case Callee::kCeil:
      return to_int<ceil_>;
    case Callee::kTrunc:
      return to_int<trunc_>;
    case Callee::kIsnan:
      return test<isnan_>;
    case Callee::kIsinf:
      return test<isinf_>;
    case Callee::kIsfinite:
      return test<isfinite_>;
    case Callee::kLog:
      return logarithm<log_>;
    case Callee::kLog2:
      return logarithm<log2_>;
    case Callee::kLog10:
      return logarithm<log10_>;
    case Callee::kAtan2:
      return atan2_;
    default:
      return kMath[static_cast<size_t>(callee) - static_cast<size_t>(Callee::kAcos)];
  }
}

// a: an object of a plain type.
const Step* step_length(const Step* s, Reg* r, Machine& m) {
  PyObject* o = r[s->a].o;
  const Py_ssize_t n = PyList_CheckExact(o) || PyTuple_CheckExact(o) ? Py_SIZE(o) : PyObject_Size(o);
  if (n < 0) [[unlikely]]
    return fail(m, s->exit, s->pure);
  r[s->dst].i = n;
  return go_on(s + 1, r, m);
}

}  // namespace dalsegno::replay
