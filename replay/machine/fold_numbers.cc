#include "replay/machine/fold_numbers.h"

#include <numpy/arrayscalars.h>  // needs Python.h before it

#include <cstring>
#include <utility>

#include "halide_gen/runtime/flags.h"
#include "numpy/dtypes.h"
#include "numpy/errstate.h"
#include "trace/fault.h"

namespace dalsegno::replay::folds {
namespace {

bool g_heeded = false;  // the fold that runs has seen NumPy's numbers: flags were down then. Guarded by the GIL.

bool give_numpy(Slot* to, int64_t i) { return to->tag = Slot::kNpInt, to->i = i, to->object = nullptr, true; }

bool of_integers(BinaryOp op, int64_t a, int64_t b, Slot* out) {
  int64_t result = 0;
  switch (op) {
    case BinaryOp::add:
      return !__builtin_add_overflow(a, b, &result) && give_numpy(out, result);
    case BinaryOp::subtract:
      return !__builtin_sub_overflow(a, b, &result) && give_numpy(out, result);
    case BinaryOp::multiply:
      return !__builtin_mul_overflow(a, b, &result) && give_numpy(out, result);
    case BinaryOp::true_divide:
      return b != 0 && give_numpy(out, static_cast<double>(a) / static_cast<double>(b));
    case BinaryOp::floor_divide:
    case BinaryOp::remainder: {
      if (b == 0 || b == -1) return false;
      const bool off = a % b != 0 && (a < 0) != (b < 0);
      return give_numpy(out, op == BinaryOp::remainder ? a % b + (off ? b : 0) : a / b - (off ? 1 : 0));
    }
    case BinaryOp::and_:
      return give_numpy(out, a & b);
    case BinaryOp::or_:
      return give_numpy(out, a | b);
    case BinaryOp::xor_:
      return give_numpy(out, a ^ b);
    default:
      return false;
  }
}

}  // namespace

void forget_flags() { g_heeded = false; }

void heed_flags() {
  if (!std::exchange(g_heeded, true)) rt::clear_all_raised();
}

bool flags_are_quiet() {
  if (!g_heeded) return true;
  const int raised = rt::all_raised();
  return raised == 0 || numpy::errstate_ignores(raised);
}

void set_object(Slot* to, PyObject* o) {
  const PyTypeObject* type = Py_TYPE(o);
  to->tag = Slot::kObject, to->object = o;
  if (type != &PyDoubleArrType_Type && type != &PyLongArrType_Type && type != &PyBoolArrType_Type) return;
  heed_flags();
  if (type == &PyDoubleArrType_Type) {
    to->tag = Slot::kNpFloat, to->f = PyArrayScalar_VAL(o, Double);
  } else if (type == &PyLongArrType_Type) {
    to->tag = Slot::kNpInt, to->i = PyArrayScalar_VAL(o, Long);
  } else {
    to->tag = Slot::kNpBool, to->i = o == PyArrayScalar_True;
  }
}

PyObject* numpy_object_of(const Slot& s) {
  Reg value{};
  if (s.tag == Slot::kNpFloat) return value.f = s.f, box(Rep::kNpFloat64, value);
  return value.i = s.i, box(s.tag == Slot::kNpInt ? Rep::kNpInt64 : Rep::kNpBool, value);
}

bool element(PyArrayObject* array, const char* at, Slot* out) {
  static_assert(NPY_SIZEOF_LONG == sizeof(int64_t));
  if (!PyArray_ISNOTSWAPPED(array)) return false;
  heed_flags();
  out->object = nullptr;
  switch (PyArray_TYPE(array)) {
    case NPY_DOUBLE:
      return std::memcpy(&out->f, at, sizeof(double)), out->tag = Slot::kNpFloat, true;
    case NPY_LONG:
      return std::memcpy(&out->i, at, sizeof(int64_t)), out->tag = Slot::kNpInt, true;
    case NPY_BOOL:
      return out->i = *at != 0, out->tag = Slot::kNpBool, true;
    default:
      return false;
  }
}

bool array_item(PyObject* array, const Slot* const* index, int n, Slot* out) {
  auto* a = reinterpret_cast<PyArrayObject*>(array);
  if (!numpy::is_exact_array(array) || PyArray_NDIM(a) != n) return false;
  const char* at = PyArray_BYTES(a);
  for (int d = 0; d < n; ++d) {
    const npy_intp extent = PyArray_DIM(a, d);
    const int64_t i = index[d]->i < 0 ? index[d]->i + extent : index[d]->i;
    if (!is_position(*index[d]) || i < 0 || i >= extent) return false;
    at += (planted(Fault::fold_element) && i > 0 ? i - 1 : i) * PyArray_STRIDE(a, d);
  }
  return element(a, at, out);
}

bool numpy_binary(BinaryOp op, const Slot& a, const Slot& b, Slot* out) {
  if (is_position(a) && is_position(b)) return of_integers(op, a.i, b.i, out);
  const bool counts = op == BinaryOp::add && (is_position(a) || is_position(b));
  if (counts && (a.tag == Slot::kNpBool || b.tag == Slot::kNpBool)) return of_integers(op, a.i, b.i, out);
  double x, y;
  if (!as_double(a, &x) || !as_double(b, &y)) return false;
  const int raised = op == BinaryOp::power ? rt::all_raised() : 0;  // it looks at flags of its own
  const bool done = of_doubles(op, Rep::kNpFloat64, x, y, out);
  if (raised != 0) rt::add_raised(raised);
  return done && give_numpy(out, out->f);
}

}  // namespace dalsegno::replay::folds
