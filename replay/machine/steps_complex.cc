// Typed steps on complex numbers, by the interpreter's own functions (Objects/complexobject.c): CPython's result, bit for bit, or the run
// leaves before the instruction.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <iterator>

#include "hook/complex_numbers.h"
#include "replay/machine/scalars.h"

namespace dalsegno::replay {
namespace {

using typed::Callee;
using typed::Real;

bool is_finite(Py_complex x) { return std::isfinite(x.real) && std::isfinite(x.imag); }

// False: CPython raises.
bool sum(Py_complex a, Py_complex b, Py_complex* out) { return *out = _Py_c_sum(a, b), true; }
bool difference(Py_complex a, Py_complex b, Py_complex* out) { return *out = _Py_c_diff(a, b), true; }
bool product(Py_complex a, Py_complex b, Py_complex* out) { return *out = _Py_c_prod(a, b), true; }
bool quotient(Py_complex a, Py_complex b, Py_complex* out) {
  if (b.real == 0 && b.imag == 0) return false;
  return *out = _Py_c_quot(a, b), true;
}

#if PY_VERSION_HEX >= 0x030e0000
bool sum_with_real(Py_complex a, Py_complex b, Py_complex* out) { return *out = _Py_cr_sum(a, b.real), true; }
bool sum_of_real(Py_complex a, Py_complex b, Py_complex* out) { return *out = _Py_cr_sum(b, a.real), true; }
bool difference_with_real(Py_complex a, Py_complex b, Py_complex* out) { return *out = _Py_cr_diff(a, b.real), true; }
bool difference_of_real(Py_complex a, Py_complex b, Py_complex* out) { return *out = _Py_rc_diff(a.real, b), true; }
bool product_with_real(Py_complex a, Py_complex b, Py_complex* out) { return *out = _Py_cr_prod(a, b.real), true; }
bool product_of_real(Py_complex a, Py_complex b, Py_complex* out) { return *out = _Py_cr_prod(b, a.real), true; }
bool quotient_with_real(Py_complex a, Py_complex b, Py_complex* out) { return b.real != 0 && (*out = _Py_cr_quot(a, b.real), true); }
bool quotient_of_real(Py_complex a, Py_complex b, Py_complex* out) {
  if (b.real == 0 && b.imag == 0) return false;
  return *out = _Py_rc_quot(a.real, b), true;
}
#endif

// c_powu()
Py_complex natural_power(Py_complex x, int64_t n) {
  Py_complex result = {1, 0};
  for (int64_t mask = 1; n >= mask; mask <<= 1, x = _Py_c_prod(x, x))
    if (n & mask) result = _Py_c_prod(result, x);
  return result;
}

// complex_pow(). Where errno is set, or may have to be, the interpreter says what that comes to.
bool power(Py_complex a, Py_complex b, Py_complex* out) {
  constexpr double kMost = 100;
  errno = 0;
  if (b.imag == 0 && b.real == std::floor(b.real) && std::fabs(b.real) <= kMost) {
    const auto n = static_cast<int64_t>(b.real);
    *out = n > 0 ? natural_power(a, n) : _Py_c_quot({1, 0}, natural_power(a, -n));
  } else {
    *out = _Py_c_pow(a, b);
  }
  return errno == 0 && is_finite(*out);
}

template <ComplexFunction function>
int32_t result(double a, double a_imag, double b, double b_imag, Py_complex* out) {
  return function({a, a_imag}, {b, b_imag}, out);
}

template <bool equal>
const Step* compare(const Step* s, Reg* r, Machine& m) {
  const Py_complex a = r[s->a].c, b = r[s->b].c;
  r[s->dst].i = (a.real == b.real && a.imag == b.imag) == equal;
  return go_on(s + 1, r, m);
}

const Step* absolute(const Step* s, Reg* r, Machine& m) {
  errno = 0;
  const double out = _Py_c_abs(r[s->list[0]].c);
  if (errno != 0) [[unlikely]]
    return refuse(m, s->exit);
  r[s->dst].f = out;
  return go_on(s + 1, r, m);
}

const Step* real(const Step* s, Reg* r, Machine& m) {
  r[s->dst].f = r[s->list[0]].c.real;
  return go_on(s + 1, r, m);
}

const Step* imag(const Step* s, Reg* r, Machine& m) {
  r[s->dst].f = r[s->list[0]].c.imag;
  return go_on(s + 1, r, m);
}

const Step* conjugate(const Step* s, Reg* r, Machine& m) {
  const Py_complex a = r[s->list[0]].c;
  r[s->dst].c = {a.real, -a.imag};
  return go_on(s + 1, r, m);
}

const Step* make(const Step* s, Reg* r, Machine& m) {
  r[s->dst].c = {r[s->list[0]].f, s->n > 1 ? r[s->list[1]].f : 0};
  return go_on(s + 1, r, m);
}

// Has the interpreter's compiler made one rounding of a product and a sum? (Where the processor it was built for can.)
bool contracts() {
  constexpr double kStep = 0x1p-30;
  volatile double a = 1 + kStep, b = 1 - kStep;
  return _Py_c_prod({a, 1}, {b, 1}).real != 0;
}

enum class Natively : uint8_t { kWritten, kUnlessContracted, kCalled };  // how native code does it

// How an operator is done, by which operand is real.
struct Operation {
  BinaryOp op;
  Real real;
  Natively native;
  StepFn step;
  int32_t (*function)(double, double, double, double, Py_complex*);
};

template <ComplexFunction function>
constexpr Operation operation(BinaryOp op, Real real, Natively native) {
  return {op, real, native, complex_binary<function>, result<function>};
}

constexpr Operation kOperations[] = {
    operation<sum>(BinaryOp::add, Real::kNeither, Natively::kWritten),
    operation<difference>(BinaryOp::subtract, Real::kNeither, Natively::kWritten),
    operation<product>(BinaryOp::multiply, Real::kNeither, Natively::kUnlessContracted),
    operation<quotient>(BinaryOp::true_divide, Real::kNeither, Natively::kCalled),
    operation<power>(BinaryOp::power, Real::kNeither, Natively::kCalled),
#if PY_VERSION_HEX >= 0x030e0000
    operation<sum_with_real>(BinaryOp::add, Real::kRight, Natively::kWritten),
    operation<sum_of_real>(BinaryOp::add, Real::kLeft, Natively::kWritten),
    operation<difference_with_real>(BinaryOp::subtract, Real::kRight, Natively::kWritten),
    operation<difference_of_real>(BinaryOp::subtract, Real::kLeft, Natively::kWritten),
    operation<product_with_real>(BinaryOp::multiply, Real::kRight, Natively::kWritten),
    operation<product_of_real>(BinaryOp::multiply, Real::kLeft, Natively::kWritten),
    operation<quotient_with_real>(BinaryOp::true_divide, Real::kRight, Natively::kWritten),
    operation<quotient_of_real>(BinaryOp::true_divide, Real::kLeft, Natively::kCalled),
#endif
};

const Operation* operation_of(BinaryOp op, Real real) {
  const Operation* operation =
      std::find_if(std::begin(kOperations), std::end(kOperations), [&](const Operation& w) { return w.op == op && w.real == real; });
  return operation == std::end(kOperations) ? nullptr : operation;
}

}  // namespace

StepFn complex_binary_step(BinaryOp op, Real real) {
  const Operation* operation = operation_of(op, real);
  return operation ? operation->step : nullptr;
}

StepFn complex_compare_step(int32_t op) { return op == Py_EQ ? compare<true> : compare<false>; }

const Step* step_complex_negative(const Step* s, Reg* r, Machine& m) {
  r[s->dst].c = _Py_c_neg(r[s->a].c);
  return go_on(s + 1, r, m);
}

const Step* step_complex_truth(const Step* s, Reg* r, Machine& m) {
  r[s->dst].i = r[s->a].c.real != 0 || r[s->a].c.imag != 0;
  return go_on(s + 1, r, m);
}

StepFn complex_call_step(Callee callee) {
  switch (callee) {
    case Callee::kAbs:
      return absolute;
    case Callee::kReal:
      return real;
    case Callee::kImag:
      return imag;
    case Callee::kConjugate:
      return conjugate;
    default:
      return make;
  }
}

const void* complex_operator_function(BinaryOp op, Real real) {
  static const bool contracted = contracts();
  const Operation* operation = operation_of(op, real);
  if (!operation || operation->native == Natively::kWritten || (operation->native == Natively::kUnlessContracted && !contracted))
    return nullptr;
  return reinterpret_cast<const void*>(operation->function);
}

const void* complex_function(Callee callee) {
  using F2 = double (*)(double, double);
  return callee == Callee::kAbs ? reinterpret_cast<const void*>(static_cast<F2>(std::hypot)) : nullptr;
}

}  // namespace dalsegno::replay
