// Typed steps for calls of builtins and of math on unboxed operands. Each gives CPython's result, bit for bit, or leaves before the
// instruction. list: the operands' registers; n: how many.
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <numbers>
#include <numeric>

#include "hook/random_numbers.h"
#include "numpy/random.h"
#include "replay/machine/scalars.h"

namespace dalsegno::replay {
namespace {

using typed::Callee;

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
  T found = part_of<T>(r[s->list[0]]);
  for (int32_t k = 1; k < s->n; ++k) {
    const T next = part_of<T>(r[s->list[k]]);
    if (largest ? next > found : next < found) found = next, chosen = k;
  }
  return share(s, r, m, chosen);
}

// The same for two that nobody sees the objects of.
template <class T, bool largest>
const Step* extreme_of_two(const Step* s, Reg* r, Machine& m) {
  const T a = part_of<T>(r[s->a]), b = part_of<T>(r[s->b]);
  part_of<T>(r[s->dst]) = (largest ? b > a : b < a) ? b : a;
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
  part_of<T>(r[s->dst]) = std::fabs(part_of<T>(r[s->a]));
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

// Two finite numbers, and a finite result: the C library's.
template <double (*F)(double, double)>
const Step* of_two(const Step* s, Reg* r, Machine& m) {
  const double x = r[s->list[0]].f, y = r[s->list[1]].f;
  if (!std::isfinite(x) || !std::isfinite(y)) [[unlikely]]
    return refuse(m, s->exit);
  const double out = F(x, y);
  if (!std::isfinite(out)) [[unlikely]]
    return refuse(m, s->exit);
  r[s->dst].f = out;
  return go_on(s + 1, r, m);
}

double pow_(double x, double y) { return std::pow(x, y); }
double fmod_(double x, double y) { return std::fmod(x, y); }
double copysign_(double x, double y) { return std::copysign(x, y); }
double atan2__(double x, double y) { return std::atan2(x, y); }
// As PyArray_Round() of NumPy's calculation.c, which the ufuncs do for it.
double round_to(double x, double places) {
  constexpr double kPowers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8};
  static_assert(std::size(kPowers) == typed::kMostPlaces + 1);
  const double power = kPowers[static_cast<size_t>(places)];
  return std::rint(x * power) / power;
}
const Step* rounded(const Step* s, Reg* r, Machine& m) {
  const double x = r[s->list[0]].f, out = round_to(x, r[s->list[1]].f);
  if (std::isfinite(x) && !std::isfinite(out)) [[unlikely]]
    return refuse(m, s->exit);
  r[s->dst].f = out;
  return go_on(s + 1, r, m);
}

// As NumPy's clip.cpp where the bounds are no arrays, none of them NaN. (What is NaN stays that, and no flag is told of.)
template <class T>
const Step* clip(const Step* s, Reg* r, Machine& m) {
  T x = part_of<T>(r[s->list[0]]);
  const T least = part_of<T>(r[s->list[1]]), most = part_of<T>(r[s->list[2]]);
  if (least != least || most != most) [[unlikely]]
    return refuse(m, s->exit);
  if (x < least) x = least;
  if (x > most) x = most;
  part_of<T>(r[s->dst]) = x;
  return go_on(s + 1, r, m);
}

// Ints of two digits at most are always new ones (_PyLong_GCD of Objects/longobject.c).
const Step* gcd_(const Step* s, Reg* r, Machine& m) {
  const int64_t a = r[s->list[0]].i, b = r[s->list[1]].i;
  constexpr int64_t kLimit = int64_t{1} << 60;
  if (a <= -kLimit || a >= kLimit || b <= -kLimit || b >= kLimit) [[unlikely]]
    return refuse(m, s->exit);
  r[s->dst].i = std::gcd(a, b);
  return go_on(s + 1, r, m);
}

// (Of the least int the interpreter says 64, too.)
const Step* bit_length(const Step* s, Reg* r, Machine& m) {
  const int64_t a = r[s->list[0]].i;
  r[s->dst].i = std::bit_width(a < 0 ? uint64_t{0} - static_cast<uint64_t>(a) : static_cast<uint64_t>(a));
  return go_on(s + 1, r, m);
}

// One name a function: the library's are overloaded.
#define C_FUNCTION(name) \
  double name##_(double x) { return std::name(x); }
C_FUNCTION(floor)
C_FUNCTION(ceil)
C_FUNCTION(trunc)
C_FUNCTION(log)
C_FUNCTION(log1p)
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
C_FUNCTION(erf)
C_FUNCTION(erfc)
#undef C_FUNCTION
// As Modules/mathmodule.c has them.
double radians_(double x) { return x * (std::numbers::pi / 180.0); }
double degrees_(double x) { return x * (180.0 / std::numbers::pi); }
bool isnan_(double x) { return std::isnan(x); }
bool isinf_(double x) { return std::isinf(x); }
bool isfinite_(double x) { return std::isfinite(x); }

// ---- the steps of a callee ----------------------------------------------------------------------------------------------------------

// What they are chosen by: the operands' representation; is the result's object an operand's, are there two of which nobody sees that?
struct Operands {
  Rep rep;
  bool shares, two;
};

template <bool largest>
StepFn extreme_step(const Operands& of) {
  const typed::Bits bits = typed::bits_of(of.rep);
  if (bits == typed::Bits::kDouble) return of.two ? extreme_of_two<double, largest> : extreme<double, largest>;
  if (bits == typed::Bits::kFloat) return of.two ? extreme_of_two<float, largest> : extreme<float, largest>;
  return of.two ? extreme_of_two<int64_t, largest> : extreme<int64_t, largest>;
}

template <DType dtype>
constexpr StepFn numpy_abs_step() {
  using T = typename numpy::Element<dtype>::Type;
  if constexpr (std::is_floating_point_v<T>) return float_abs<T>;
  if constexpr (std::is_unsigned_v<T>) return copy;
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) return numpy_int_abs<T>;
}

template <Callee callee>
StepFn complex_step(const Operands&) {
  return complex_call_step(callee);
}

StepFn make_complex_step(const Operands& of) { return typed::is_pair(of.rep) ? copy : complex_call_step(Callee::kComplex); }

StepFn abs_step(const Operands& of) {
  if (of.rep == Rep::kComplex) return complex_call_step(Callee::kAbs);
  if (of.rep == Rep::kNpComplex128) return step_numpy_complex_abs;
  static constexpr auto kSteps = numpy::by_dtype([]<DType dtype>() { return numpy_abs_step<dtype>(); });
  if (typed::is_numpy_scalar(of.rep)) return kSteps[static_cast<size_t>(typed::dtype_of_rep(of.rep))];
  return of.rep == Rep::kFloat ? float_abs<double> : int_abs;
}

StepFn same_step(const Operands& of) { return of.shares ? same : copy; }

StepFn int_step(const Operands& of) { return typed::bits_of(of.rep) == typed::Bits::kDouble ? to_int<trunc_> : same_step(of); }

StepFn clip_step(const Operands& of) { return typed::bits_of(of.rep) == typed::Bits::kDouble ? clip<double> : clip<int64_t>; }

StepFn bool_step(const Operands& of) { return of.rep == Rep::kBool ? copy : truth_step(of.rep); }

// A callee has one step, or chooses.
struct CalleeSteps {
  StepFn step = nullptr;
  StepFn (*choose)(const Operands&) = nullptr;
};
struct Row {
  Callee callee;
  CalleeSteps steps;
};
constexpr Row kRows[] = {
    {Callee::kMin, {nullptr, extreme_step<false>}},
    {Callee::kMax, {nullptr, extreme_step<true>}},
    {Callee::kAbs, {nullptr, abs_step}},
    {Callee::kInt, {nullptr, int_step}},
    {Callee::kFloat, {nullptr, same_step}},
    {Callee::kBool, {nullptr, bool_step}},
    {Callee::kScalar, {copy}},
    {Callee::kClip, {nullptr, clip_step}},
    {Callee::kRoundTo, {rounded}},
    {Callee::kComplex, {nullptr, make_complex_step}},
    {Callee::kReal, {nullptr, complex_step<Callee::kReal>}},
    {Callee::kImag, {nullptr, complex_step<Callee::kImag>}},
    {Callee::kConjugate, {nullptr, complex_step<Callee::kConjugate>}},
    {Callee::kScalarConjugate, {nullptr, complex_step<Callee::kConjugate>}},
    {Callee::kRound, {to_int<round_half_even>}},
    {Callee::kFloor, {to_int<floor_>}},
    {Callee::kCeil, {to_int<ceil_>}},
    {Callee::kTrunc, {to_int<trunc_>}},
    {Callee::kIsnan, {test<isnan_>}},
    {Callee::kIsinf, {test<isinf_>}},
    {Callee::kIsfinite, {test<isfinite_>}},
    {Callee::kLog, {logarithm<log_>}},
    {Callee::kLog2, {logarithm<log2_>}},
    {Callee::kLog10, {logarithm<log10_>}},
    {Callee::kAtan2, {atan2_}},
    {Callee::kPow, {of_two<pow_>}},
    {Callee::kFmod, {of_two<fmod_>}},
    {Callee::kCopysign, {of_two<copysign_>}},
    {Callee::kLog1p, {math<log1p_>}},
    {Callee::kGcd, {gcd_}},
    {Callee::kBitLength, {bit_length}},
    {Callee::kAcos, {math<acos_>}},
    {Callee::kAcosh, {math<acosh_>}},
    {Callee::kAsin, {math<asin_>}},
    {Callee::kAsinh, {math<asinh_>}},
    {Callee::kAtan, {math<atan_>}},
    {Callee::kAtanh, {math<atanh_>}},
    {Callee::kCbrt, {math<cbrt_>}},
    {Callee::kCos, {math<cos_>}},
    {Callee::kCosh, {math<cosh_>}},
    {Callee::kExp, {math<exp_>}},
    {Callee::kExp2, {math<exp2_>}},
    {Callee::kExpm1, {math<expm1_>}},
    {Callee::kFabs, {math<fabs_>}},
    {Callee::kSin, {math<sin_>}},
    {Callee::kSinh, {math<sinh_>}},
    {Callee::kSqrt, {math<sqrt_>}},
    {Callee::kTan, {math<tan_>}},
    {Callee::kTanh, {math<tanh_>}},
    {Callee::kErf, {math<erf_>}},
    {Callee::kErfc, {math<erfc_>}},
    {Callee::kRadians, {math<radians_>}},
    {Callee::kDegrees, {math<degrees_>}},
};

// These have ops, or steps, of their own.
constexpr Callee kElsewhere[] = {Callee::kNone,         Callee::kLen,           Callee::kRange,         Callee::kItem,
                                 Callee::kAppend,       Callee::kPop,           Callee::kDot,           Callee::kMatmul,
                                 Callee::kDotMethod,    Callee::kOrd,           Callee::kSum,           Callee::kSumMethod,
                                 Callee::kLargest,      Callee::kLargestMethod, Callee::kLeast,         Callee::kLeastMethod,
                                 Callee::kMean,         Callee::kMeanMethod,    Callee::kArgmax,        Callee::kArgmaxMethod,
                                 Callee::kArgmin,       Callee::kArgminMethod,  Callee::kNorm,          Callee::kArray,
                                 Callee::kEye,          Callee::kZerosLike,     Callee::kEmptyLike,     Callee::kConcatenate,
                                 Callee::kRoll,         Callee::kOuter,         Callee::kCross,         Callee::kStack,
                                 Callee::kVstack,       Callee::kHstack,        Callee::kColumnStack,   Callee::kCumsum,
                                 Callee::kCumsumMethod, Callee::kCumprod,       Callee::kCumprodMethod, Callee::kInv,
                                 Callee::kSolve,        Callee::kDet,           Callee::kUfunc,         Callee::kStd,
                                 Callee::kStdMethod,    Callee::kVar,           Callee::kVarMethod,     Callee::kGet,
                                 Callee::kAdd,          Callee::kHeappush,      Callee::kHeappop,       Callee::kRandom,
                                 Callee::kRandomBits,   Callee::kNumpyRandom,   Callee::kBoundRandom,   Callee::kUniform,
                                 Callee::kBoundUniform, Callee::kIntegers,      Callee::kRandint,       Callee::kBoundRandint,
                                 Callee::kAnyOf,        Callee::kAnyMethod,     Callee::kAllOf,         Callee::kAllMethod,
                                 Callee::kCountNonzero, Callee::kWhere,         Callee::kNonzero,       Callee::kFlatnonzero,
                                 Callee::kArgwhere,     Callee::kHistogram,     Callee::kSearchsorted,  Callee::kSearchsortedMethod,
                                 Callee::kDigitize,     Callee::kInterp,        Callee::kOnes,          Callee::kFull,
                                 Callee::kArange,       Callee::kCopyMethod,    Callee::kMedian,        Callee::kPtp,
                                 Callee::kProd,         Callee::kSort,          Callee::kTrace,         Callee::kArrayEqual};

consteval auto by_callee() {
  std::array<CalleeSteps, static_cast<size_t>(Callee::kCount)> table{};
  for (const Row& row : kRows) table[static_cast<size_t>(row.callee)] = row.steps;
  for (size_t i = 0; i < table.size(); ++i) {
    const auto callee = static_cast<Callee>(i);
    const bool elsewhere = typed::is_text_test(callee) || typed::draws_by_distribution(callee) ||
                           std::find(std::begin(kElsewhere), std::end(kElsewhere), callee) != std::end(kElsewhere);
    if (!elsewhere && !table[i].step && !table[i].choose) throw "a callee without steps";
  }
  return table;
}
constexpr auto kSteps = by_callee();

}  // namespace

StepFn call_step(Callee callee, const typed::Operator& how, bool shares, int32_t n) {
  const CalleeSteps& steps = kSteps[static_cast<size_t>(callee)];
  return steps.choose ? steps.choose({how.operand, shares, !shares && n == 2}) : steps.step;
}

const void* c_function(Callee callee) {
  using F1 = double (*)(double);
  using F2 = double (*)(double, double);
  static constexpr std::pair<Callee, F1> kOfOne[] = {
      {Callee::kLog, log_},     {Callee::kLog2, log2_}, {Callee::kLog10, log10_},     {Callee::kLog1p, log1p_},    {Callee::kAcos, acos_},
      {Callee::kAcosh, acosh_}, {Callee::kAsin, asin_}, {Callee::kAsinh, asinh_},     {Callee::kAtan, atan_},      {Callee::kAtanh, atanh_},
      {Callee::kCbrt, cbrt_},   {Callee::kCos, cos_},   {Callee::kCosh, cosh_},       {Callee::kExp, exp_},        {Callee::kExp2, exp2_},
      {Callee::kExpm1, expm1_}, {Callee::kSin, sin_},   {Callee::kSinh, sinh_},       {Callee::kTan, tan_},        {Callee::kTanh, tanh_},
      {Callee::kErf, erf_},     {Callee::kErfc, erfc_}, {Callee::kRadians, radians_}, {Callee::kDegrees, degrees_}};
  static constexpr std::pair<Callee, F2> kOfTwo[] = {{Callee::kAtan2, atan2__},
                                                     {Callee::kPow, pow_},
                                                     {Callee::kFmod, fmod_},
                                                     {Callee::kCopysign, copysign_},
                                                     {Callee::kRoundTo, round_to}};
  for (const auto& [one, function] : kOfOne)
    if (one == callee) return reinterpret_cast<const void*>(function);
  for (const auto& [one, function] : kOfTwo)
    if (one == callee) return reinterpret_cast<const void*>(function);
  return nullptr;
}

// a: an array. One without dimensions is asked for its length in vain.
const Step* step_extent(const Step* s, Reg* r, Machine& m) {
  auto* array = reinterpret_cast<PyArrayObject*>(r[s->a].o);
  if (PyArray_NDIM(array) <= s->imm) [[unlikely]]
    return refuse(m, s->exit);
  r[s->dst].i = PyArray_DIM(array, s->imm);
  return go_on(s + 1, r, m);
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

bool draw(PyObject* object, bool bound, double* out) {
  return hook::draw_random_number(object, bound, out) || numpy::draw_number(object, bound, out);
}

// a: the callee, bound to its generator, or (n) the generator.
const Step* step_draw(const Step* s, Reg* r, Machine& m) {
  if (!draw(r[s->a].o, s->n == 0, &r[s->dst].f)) [[unlikely]]
    return refuse(m, s->exit);
  return go_on(s + 1, r, m);
}

// a: as above (n: there is a generator); b: the least number, c: what is above the greatest one; or only that in b.
const Step* step_draw_whole(const Step* s, Reg* r, Machine& m) {
  const int64_t low = s->c >= 0 ? r[s->b].i : 0, high = s->c >= 0 ? r[s->c].i : r[s->b].i;
  if (!numpy::draw_whole_number(r[s->a].o, s->n == 0, low, high, &r[s->dst].i)) [[unlikely]]
    return refuse(m, s->exit);
  return go_on(s + 1, r, m);
}

// a: as above; imm: the distribution (numpy::Draws); b and c: its parameters, where they are given.
const Step* step_draw_by(const Step* s, Reg* r, Machine& m) {
  const double a = s->b >= 0 ? r[s->b].f : 0.0, b = s->c >= 0 ? r[s->c].f : 0.0;
  const int n = (s->b >= 0) + (s->c >= 0);
  if (!numpy::draw_by(static_cast<numpy::Draws>(s->imm), r[s->a].o, s->n == 0, n, a, b, &r[s->dst].f)) [[unlikely]]
    return refuse(m, s->exit);
  return go_on(s + 1, r, m);
}

// b: how many bits.
const Step* step_draw_bits(const Step* s, Reg* r, Machine& m) {
  if (!hook::draw_random_bits(r[s->a].o, s->n == 0, r[s->b].i, &r[s->dst].i)) [[unlikely]]
    return refuse(m, s->exit);
  return go_on(s + 1, r, m);
}

}  // namespace dalsegno::replay
