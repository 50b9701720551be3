// Typed steps on NumPy's scalars: what NumPy's scalarmath gives, bit for bit, or the run leaves before the instruction and NumPy does it.
//
// Flags. NumPy clears the floating-point flags, computes, and warns (or raises, or not: np.errstate) of those that came up. A result that
// is finite and no underflow has raised nothing that np.errstate could be asked about; any other is computed once more with the flags
// looked at (`quiet`), so that NaN and infinity in the data cost a little and do not leave.

#include <cfenv>
#include <cmath>
#include <cstring>

#include "numpy/errstate.h"
#include "replay/machine/scalars.h"
#include "trace/fault.h"
// clang-format off
#include <numpy/arrayscalars.h>  // needs Python.h before it
// clang-format on

namespace dalsegno::replay {

// ---- boxes -----------------------------------------------------------------------------------------------------------------------

namespace {

// How NumPy's scalars of a dtype stand in memory.
template <DType dtype>
struct Scalar;
#define X(dtype, number, T, name)                                   \
  template <>                                                       \
  struct Scalar<DType::dtype> {                                     \
    using Object = Py##name##ScalarObject;                          \
    static PyTypeObject* type() { return &Py##name##ArrType_Type; } \
    static_assert(std::is_same_v<decltype(Object::obval), T>);      \
  };
DALSEGNO_DTYPES(X)
#undef X

template <DType dtype>
PyObject* box_scalar(Reg value) {
  using T = typename numpy::Element<dtype>::Type;
  if constexpr (dtype == DType::kBool) return Py_NewRef(value.i ? PyArrayScalar_True : PyArrayScalar_False);
  PyTypeObject* type = Scalar<dtype>::type();
  PyObject* o = type->tp_alloc(type, 0);
  if (o) reinterpret_cast<typename Scalar<dtype>::Object*>(o)->obval = static_cast<T>(part_of<T>(value));
  return o;
}

template <DType dtype>
bool unbox_scalar(PyObject* o, Reg* out) {
  using T = typename numpy::Element<dtype>::Type;
  if (!Py_IS_TYPE(o, Scalar<dtype>::type())) return false;
  part_of<T>(*out) = reinterpret_cast<typename Scalar<dtype>::Object*>(o)->obval;
  return true;
}

static_assert(sizeof(npy_cdouble) == sizeof(Py_complex));
PyObject* box_complex(Py_complex value) {
  PyObject* o = PyCDoubleArrType_Type.tp_alloc(&PyCDoubleArrType_Type, 0);
  if (o) std::memcpy(&reinterpret_cast<PyCDoubleScalarObject*>(o)->obval, &value, sizeof value);
  return o;
}
bool unbox_complex(PyObject* o, Py_complex* out) {
  if (!Py_IS_TYPE(o, &PyCDoubleArrType_Type)) return false;
  std::memcpy(out, &reinterpret_cast<PyCDoubleScalarObject*>(o)->obval, sizeof *out);
  return true;
}

}  // namespace

PyObject* box_numpy(Rep rep, Reg value) {
  static constexpr auto kBox = numpy::by_dtype([]<DType dtype>() { return box_scalar<dtype>; });
  if (rep == Rep::kNpComplex128) return planted(Fault::wrong_pair_type) ? PyComplex_FromCComplex(value.c) : box_complex(value.c);
  if (rep == Rep::kNpInt32 && planted(Fault::wrong_scalar_type)) rep = Rep::kNpInt64;
  return kBox[static_cast<size_t>(typed::dtype_of_rep(rep))](value);
}

bool unbox_numpy(Rep rep, PyObject* o, Reg* out) {
  if (rep == Rep::kNpComplex128) return unbox_complex(o, &out->c);
  static constexpr auto kUnbox = numpy::by_dtype([]<DType dtype>() { return unbox_scalar<dtype>; });
  return kUnbox[static_cast<size_t>(typed::dtype_of_rep(rep))](o, out);
}

// ---- conversions -----------------------------------------------------------------------------------------------------------------

// A number as the dtype that NumPy computes in, as NumPy converts it. False: it does not fit, which NumPy has to say.
bool convert(Rep from, Rep to, Reg value, Reg* out) {
  const typed::Bits bits = typed::bits_of(from);
  if (bits == typed::Bits::kComplex) return out->c = value.c, typed::is_pair(to);
  if (typed::bits_of(to) == typed::Bits::kInt64) {
    *out = value;
    const bool above = from == Rep::kNpUint64 && value.i < 0;  // 2**63 or more
    return above ? to == Rep::kNpUint64 : typed::holds(to, value.i);
  }
  double wide = bits == typed::Bits::kDouble  ? value.f
                : bits == typed::Bits::kFloat ? value.s
                : from == Rep::kNpUint64      ? static_cast<double>(static_cast<uint64_t>(value.i))
                                              : static_cast<double>(value.i);
  if (typed::bits_of(to) == typed::Bits::kDouble) {
    out->f = wide;
    return true;
  }
  if (typed::is_pair(to)) {
    out->c = {wide, 0};
    return true;
  }
  out->s = bits == typed::Bits::kFloat ? value.s : static_cast<float>(wide);
  // (Of a double of its own NumPy's cast looks at all flags, of other numbers whether they are too large.)
  const bool may_underflow = from == Rep::kNpFloat64 && !is_above_underflow(out->s) && std::isfinite(wide) && wide != 0;
  return (std::isfinite(out->s) || !std::isfinite(wide)) && (!may_underflow || numpy::errstate_ignores(rt::kUnderflow));
}

namespace {

template <Rep from, Rep to>
const Step* converted(const Step* s, Reg* r, Machine& m) {
  if (convert(from, to, r[s->a], &r[s->dst])) [[likely]]
    return go_on(s + 1, r, m);
  return refuse(m, s->exit);
}

// c: the representation it comes from, imm: the one it goes to. For the integers of few bits.
const Step* converted_integer(const Step* s, Reg* r, Machine& m) {
  if (convert(static_cast<Rep>(s->c), static_cast<Rep>(s->imm), r[s->a], &r[s->dst])) [[likely]]
    return go_on(s + 1, r, m);
  return refuse(m, s->exit);
}

// ---- floats ----------------------------------------------------------------------------------------------------------------------

struct Add {
  static constexpr bool kMayUnderflow = false;  // what is that small is exact
  static bool gives_zero(double, double) { return true; }
  template <class T>
  static T apply(T a, T b) {
    return a + b;
  }
};
struct Sub {
  static constexpr bool kMayUnderflow = false;
  static bool gives_zero(double, double) { return true; }
  template <class T>
  static T apply(T a, T b) {
    return a - b;
  }
};
struct Mul {
  static constexpr bool kMayUnderflow = true;
  static bool gives_zero(double a, double b) { return a == 0 || b == 0; }  // exactly
  template <class T>
  static T apply(T a, T b) {
    return a * b;
  }
};
struct Div {
  static constexpr bool kMayUnderflow = true;
  static bool gives_zero(double a, double b) { return a == 0; }
  template <class T>
  static T apply(T a, T b) {
    return a / b;
  }
};
struct Pow {
  static constexpr bool kMayUnderflow = true;
  static bool gives_zero(double a, double b) { return a == 0; }
  static double apply(double a, double b) { return std::pow(a, b); }
  static float apply(float a, float b) { return ::powf(a, b); }
};

// Computes once more, and looks: does NumPy say nothing about it?
template <class F, class T>
[[gnu::noinline]] bool quiet(T a, T b) {
  if (planted(Fault::ignored_scalar_flags)) return true;
  volatile T x = a, y = b;
  std::feclearexcept(FE_ALL_EXCEPT);
  [[maybe_unused]] volatile T again = F::apply(static_cast<T>(x), static_cast<T>(y));
  const int raised = std::fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW);
  if (raised & ~FE_UNDERFLOW) return false;
  return raised == 0 || numpy::errstate_ignores(rt::kUnderflow);
}

template <class F, class T>
bool float_result(T a, T b, T* to) {
  const T out = F::apply(a, b);
  const bool plain = F::kMayUnderflow ? is_above_underflow(out) || (out == 0 && F::gives_zero(a, b)) : std::isfinite(out);
  *to = out;
  return plain || quiet<F, T>(a, b);
}
template <class F, class T>
const Step* float_binary(const Step* s, Reg* r, Machine& m) {
  T out;
  if (!float_result<F, T>(part_of<T>(r[s->a]), part_of<T>(r[s->b]), &out)) [[unlikely]]
    return refuse(m, s->exit);
  part_of<T>(r[s->dst]) = out;
  return go_on(s + 1, r, m);
}

// Floored quotients and remainders, as npy_divmod() of NumPy's npymath: several operations, of which any may raise a flag. None does
// where both operands are finite and their quotient is neither too large nor too small.
template <class T, bool quotient>
bool floored(T a, T b, T* out) {
  const T ratio = a / b;
  const bool plain = std::isfinite(a) && std::isfinite(b) && (is_above_underflow(ratio) || (a == 0 && b != 0));
  if (!plain) return false;
  T rest = std::fmod(a, b), whole = (a - rest) / b;
  if (rest == 0) {
    rest = std::copysign(T{0}, b);
  } else if ((b < 0) != (rest < 0)) {
    rest += b;
    whole -= T{1};
  }
  if (whole == 0) {
    whole = std::copysign(T{0}, ratio);
  } else {
    const T floored = std::floor(whole);
    whole = whole - floored > T{0.5} ? floored + T{1} : floored;
  }
  *out = quotient ? whole : rest;
  return true;
}
template <class T, bool quotient>
const Step* float_floored(const Step* s, Reg* r, Machine& m) {
  if (!floored<T, quotient>(part_of<T>(r[s->a]), part_of<T>(r[s->b]), &part_of<T>(r[s->dst]))) [[unlikely]]
    return refuse(m, s->exit);
  return go_on(s + 1, r, m);
}

// ---- integers: what does not fit warns, and so does a division by zero -------------------------------------------------------------

template <class T>
struct IntOps {
  static bool add(T a, T b, T* out) { return !__builtin_add_overflow(a, b, out); }
  static bool sub(T a, T b, T* out) { return !__builtin_sub_overflow(a, b, out); }
  static bool mul(T a, T b, T* out) { return !__builtin_mul_overflow(a, b, out); }
  static bool band(T a, T b, T* out) { return *out = a & b, true; }
  static bool bor(T a, T b, T* out) { return *out = a | b, true; }
  static bool bxor(T a, T b, T* out) { return *out = a ^ b, true; }
  static bool divides(T a, T b) {
    return b != 0 && !(std::is_signed_v<T> && b == static_cast<T>(-1) && a == std::numeric_limits<T>::min());
  }
  static bool floor_div(T a, T b, T* out) {
    if (!divides(a, b)) return false;
    *out = a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
    return true;
  }
  static bool mod(T a, T b, T* out) {
    if (!divides(a, b)) return false;
    const T rest = a % b;
    *out = rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    return true;
  }
  // Shifts by less than nothing or by all bits and more: NumPy knows what it does.
  static constexpr T kBits = sizeof(T) * 8;
  static bool shl(T a, T b, T* out) {
    if (b < 0 || b >= kBits) return false;
    *out = static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) << b);
    return true;
  }
  static bool shr(T a, T b, T* out) {
    if (b < 0 || b >= kBits) return false;
    *out = a >> b;
    return true;
  }
};

template <class T, bool (*F)(T, T, T*)>
const Step* int_binary(const Step* s, Reg* r, Machine& m) {
  T out;
  if (!F(static_cast<T>(r[s->a].i), static_cast<T>(r[s->b].i), &out)) [[unlikely]]
    return refuse(m, s->exit);
  r[s->dst].i = out;
  return go_on(s + 1, r, m);
}

template <class T>
const Step* int_negative(const Step* s, Reg* r, Machine& m) {
  T out;
  if (__builtin_sub_overflow(T{0}, static_cast<T>(r[s->a].i), &out)) [[unlikely]]
    return refuse(m, s->exit);
  r[s->dst].i = out;
  return go_on(s + 1, r, m);
}
template <class T>
const Step* int_invert(const Step* s, Reg* r, Machine& m) {
  r[s->dst].i = static_cast<T>(~static_cast<T>(r[s->a].i));
  return go_on(s + 1, r, m);
}
template <class T>
const Step* float_negative(const Step* s, Reg* r, Machine& m) {
  part_of<T>(r[s->dst]) = -part_of<T>(r[s->a]);
  return go_on(s + 1, r, m);
}

// In the order of BinaryOp: add and floor_divide lshift matmul multiply remainder or power rshift subtract true_divide xor
template <class T>
constexpr StepFn kIntSteps[] = {int_binary<T, IntOps<T>::add>,
                                int_binary<T, IntOps<T>::band>,
                                int_binary<T, IntOps<T>::floor_div>,
                                int_binary<T, IntOps<T>::shl>,
                                nullptr,
                                int_binary<T, IntOps<T>::mul>,
                                int_binary<T, IntOps<T>::mod>,
                                int_binary<T, IntOps<T>::bor>,
                                nullptr,
                                int_binary<T, IntOps<T>::shr>,
                                int_binary<T, IntOps<T>::sub>,
                                nullptr,
                                int_binary<T, IntOps<T>::bxor>};
constexpr StepFn kTruthSteps[] = {nullptr,
                                  int_binary<npy_bool, IntOps<npy_bool>::band>,
                                  nullptr,
                                  nullptr,
                                  nullptr,
                                  nullptr,
                                  nullptr,
                                  int_binary<npy_bool, IntOps<npy_bool>::bor>,
                                  nullptr,
                                  nullptr,
                                  nullptr,
                                  nullptr,
                                  int_binary<npy_bool, IntOps<npy_bool>::bxor>};
template <class T>
constexpr StepFn kFloatSteps[] = {float_binary<Add, T>,
                                  nullptr,
                                  float_floored<T, true>,
                                  nullptr,
                                  nullptr,
                                  float_binary<Mul, T>,
                                  float_floored<T, false>,
                                  nullptr,
                                  float_binary<Pow, T>,
                                  nullptr,
                                  float_binary<Sub, T>,
                                  float_binary<Div, T>,
                                  nullptr};

template <class T>
const Step* truth(const Step* s, Reg* r, Machine& m) {
  r[s->dst].i = part_of<T>(r[s->a]) != 0;
  return go_on(s + 1, r, m);
}

}  // namespace

// ---- a dtype's steps ---------------------------------------------------------------------------------------------------------------

namespace {

struct DtypeSteps {
  const StepFn* binary = nullptr;
  StepFn negative = nullptr, invert = nullptr;
};

template <DType dtype>
constexpr DtypeSteps steps_of() {
  using T = typename numpy::Element<dtype>::Type;
  if constexpr (dtype == DType::kBool) {
    return {kTruthSteps};
  } else if constexpr (std::is_floating_point_v<T>) {
    return {kFloatSteps<T>, float_negative<T>};
  } else {
    return {kIntSteps<T>, int_negative<T>, int_invert<T>};
  }
}

// Python's floats are computed like np.float64.
const DtypeSteps& steps_of(Rep rep) {
  static constexpr auto kSteps = numpy::by_dtype([]<DType dtype>() { return steps_of<dtype>(); });
  return kSteps[static_cast<size_t>(typed::is_numpy_scalar(rep) ? typed::dtype_of_rep(rep) : DType::kFloat64)];
}

}  // namespace

namespace {
int32_t float_power(double a, double b, double* out) { return float_result<Pow, double>(a, b, out); }
int32_t float_quotient(double a, double b, double* out) { return floored<double, true>(a, b, out); }
int32_t float_remainder(double a, double b, double* out) { return floored<double, false>(a, b, out); }
}  // namespace

const void* numpy_operator_function(BinaryOp op) {
  if (op == BinaryOp::floor_divide) return reinterpret_cast<const void*>(float_quotient);
  if (op == BinaryOp::remainder) return reinterpret_cast<const void*>(float_remainder);
  return op == BinaryOp::power ? reinterpret_cast<const void*>(float_power) : nullptr;
}

StepFn numpy_binary_step(BinaryOp op, Rep dtype) { return steps_of(dtype).binary[static_cast<size_t>(op)]; }

namespace {

template <class F, class T>
bool result_of(bool numpy, Reg a, Reg b, Reg* out) {
  const T x = part_of<T>(a), y = part_of<T>(b), result = F::apply(x, y);
  if (numpy && !quiet<F, T>(x, y)) return false;
  *out = Reg{};
  part_of<T>(*out) = result;
  return true;
}

template <class T>
bool result_of(BinaryOp op, bool numpy, Reg a, Reg b, Reg* out) {
  switch (op) {
    case BinaryOp::add:
      return result_of<Add, T>(numpy, a, b, out);
    case BinaryOp::subtract:
      return result_of<Sub, T>(numpy, a, b, out);
    case BinaryOp::multiply:
      return result_of<Mul, T>(numpy, a, b, out);
    default:
      return result_of<Div, T>(numpy, a, b, out);
  }
}

}  // namespace

bool scalar_result(BinaryOp op, Rep rep, Reg a, Reg b, Reg* out) {
  if (rep == Rep::kNpFloat32) return result_of<float>(op, true, a, b, out);
  return result_of<double>(op, rep != Rep::kFloat, a, b, out);
}

StepFn numpy_unary_step(UnaryOp op, Rep dtype) { return op == UnaryOp::invert ? steps_of(dtype).invert : steps_of(dtype).negative; }

StepFn convert_step(Rep from, Rep to) {
  const typed::Bits bits = typed::bits_of(from);
  if (typed::bits_of(to) == typed::Bits::kInt64 || from == Rep::kNpUint64) return converted_integer;
  if (typed::is_pair(to))
    return bits == typed::Bits::kInt64   ? converted<Rep::kInt, Rep::kComplex>
           : bits == typed::Bits::kFloat ? converted<Rep::kNpFloat32, Rep::kComplex>
                                         : converted<Rep::kFloat, Rep::kComplex>;
  if (typed::bits_of(to) == typed::Bits::kDouble)
    return bits == typed::Bits::kFloat ? converted<Rep::kNpFloat32, Rep::kNpFloat64> : converted<Rep::kInt, Rep::kFloat>;
  if (from == Rep::kNpFloat64) return converted<Rep::kNpFloat64, Rep::kNpFloat32>;
  return bits == typed::Bits::kInt64 ? converted<Rep::kInt, Rep::kNpFloat32> : converted<Rep::kFloat, Rep::kNpFloat32>;
}

StepFn truth_step(Rep rep) {
  switch (typed::bits_of(rep)) {
    case typed::Bits::kDouble:
      return truth<double>;
    case typed::Bits::kFloat:
      return truth<float>;
    case typed::Bits::kComplex:
      return step_complex_truth;
    default:
      return truth<int64_t>;
  }
}

}  // namespace dalsegno::replay
