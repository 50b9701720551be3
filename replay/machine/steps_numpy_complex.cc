// Typed steps on np.complex128: what NumPy's scalarmath gives, bit for bit, or the run leaves before the instruction and NumPy does it.
// Flags are looked at as those of its doubles are (steps_numpy.cc).
#include <cfenv>
#include <cmath>

#include "numpy/errstate.h"
#include "replay/machine/scalars.h"
#include "trace/fault.h"

namespace dalsegno::replay {
namespace {

using typed::Real;

struct Sum {
  static constexpr bool kMayUnderflow = false;  // what is that small is exact
  static Py_complex apply(Py_complex a, Py_complex b) { return {a.real + b.real, a.imag + b.imag}; }
};
struct Difference {
  static constexpr bool kMayUnderflow = false;
  static Py_complex apply(Py_complex a, Py_complex b) { return {a.real - b.real, a.imag - b.imag}; }
};
struct Product {
  static constexpr bool kMayUnderflow = true;
  static Py_complex apply(Py_complex a, Py_complex b) { return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real}; }
};
// CDOUBLE_divide (loops.c.src).
struct Quotient {
  static constexpr bool kMayUnderflow = true;
  static Py_complex apply(Py_complex a, Py_complex b) {
    const double real = std::fabs(b.real), imag = std::fabs(b.imag);
    if (real >= imag) {
      if (real == 0 && imag == 0) return {a.real / real, a.imag / real};
      const double ratio = b.imag / b.real, scale = 1.0 / (b.real + b.imag * ratio);
      return {(a.real + a.imag * ratio) * scale, (a.imag - a.real * ratio) * scale};
    }
    const double ratio = b.real / b.imag, scale = 1.0 / (b.imag + b.real * ratio);
    return {(a.real * ratio + a.imag) * scale, (a.imag * ratio - a.real) * scale};
  }
};

// npy_cpow() by an int from 2 to 99 (npy_math_complex.c.src).
struct Power {
  static constexpr bool kMayUnderflow = true;
  static Py_complex apply(Py_complex a, Py_complex b) {
    if (a.real == 0 && a.imag == 0) return {0, 0};
    const auto n = static_cast<int>(b.real);
    if (n == 2) return Product::apply(a, a);
    if (n == 3) return Product::apply(a, Product::apply(a, a));
    Py_complex result = {1, 0};
    for (int mask = 1; n >= mask; mask <<= 1) {
      if (mask > 1) a = Product::apply(a, a);
      if (n & mask) result = Product::apply(result, a);
    }
    return result;
  }
};

bool is_finite(Py_complex x) { return std::isfinite(x.real) && std::isfinite(x.imag); }

// Computes once more, and looks: does NumPy say nothing about it?
template <class F>
[[gnu::noinline]] bool quiet(Py_complex a, Py_complex b) {
  if (planted(Fault::ignored_scalar_flags)) return true;
  volatile Py_complex x = a, y = b;
  std::feclearexcept(FE_ALL_EXCEPT);
  const Py_complex again = F::apply({x.real, x.imag}, {y.real, y.imag});
  [[maybe_unused]] volatile double real = again.real, imag = again.imag;
  const int raised = std::fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW);
  if (raised & ~FE_UNDERFLOW) return false;
  return raised == 0 || numpy::errstate_ignores(rt::kUnderflow);
}

// Of factors: exact, or above all underflow?
bool is_plain_product(double a, double b) { return a == 0 || b == 0 || is_above_underflow(a * b); }
bool is_plain_product(Py_complex a, Py_complex b) {
  return is_plain_product(a.real, b.real) && is_plain_product(a.imag, b.imag) && is_plain_product(a.real, b.imag) &&
         is_plain_product(a.imag, b.real);
}

template <class F>
bool computed(Py_complex a, Py_complex b, Py_complex* out) {
  *out = F::apply(a, b);
  return (!F::kMayUnderflow && is_finite(*out)) || quiet<F>(a, b);
}
template <>
bool computed<Product>(Py_complex a, Py_complex b, Py_complex* out) {
  *out = Product::apply(a, b);
  return (is_finite(*out) && is_plain_product(a, b)) || quiet<Product>(a, b);
}
// A double beside Python's complex number: the ufunc's loop, which may make one rounding of a product and a sum. That is the same where the
// product with the imaginary part 0 is 0, and the other one no underflow.
bool may_be_rounded_twice(double a, double b) { return a != 0 && b != 0 && std::fabs(a * b) <= std::numeric_limits<double>::min(); }
bool product_by_ufunc(Py_complex a, Py_complex b, Py_complex* out) {
  return !may_be_rounded_twice(a.real, b.real) && !may_be_rounded_twice(a.real, b.imag) && computed<Product>(a, b, out);
}

}  // namespace

StepFn numpy_complex_step(BinaryOp op, Real real) {
  switch (op) {
    case BinaryOp::add:
      return complex_binary<computed<Sum>>;
    case BinaryOp::subtract:
      return complex_binary<computed<Difference>>;
    case BinaryOp::multiply:
      return real == Real::kNeither ? complex_binary<computed<Product>> : complex_binary<product_by_ufunc>;
    case BinaryOp::power:
      return complex_binary<computed<Power>>;
    default:
      return complex_binary<computed<Quotient>>;
  }
}

bool numpy_complex_result(BinaryOp op, Real real, Py_complex a, Py_complex b, Py_complex* out) {
  switch (op) {
    case BinaryOp::add:
      return computed<Sum>(a, b, out);
    case BinaryOp::subtract:
      return computed<Difference>(a, b, out);
    case BinaryOp::multiply:
      return real == Real::kNeither ? computed<Product>(a, b, out) : product_by_ufunc(a, b, out);
    case BinaryOp::power:
      return computed<Power>(a, b, out);
    default:
      return computed<Quotient>(a, b, out);
  }
}

// (npy_cabs(), at whose flags nobody looks.)
const Step* step_numpy_complex_abs(const Step* s, Reg* r, Machine& m) {
  const Py_complex a = r[s->list[0]].c;
  r[s->dst].f = std::hypot(a.real, a.imag);
  return go_on(s + 1, r, m);
}

const void* numpy_complex_function(typed::Callee callee) {
  using F2 = double (*)(double, double);
  return callee == typed::Callee::kAbs ? reinterpret_cast<const void*>(static_cast<F2>(std::hypot)) : nullptr;
}

}  // namespace dalsegno::replay
