// Linear algebra of small operands: cross products, and what np.linalg does by LAPACK's functions, through NumPy's own loops over them.
#include <array>
#include <cmath>
#include <cstring>

#include "numpy/loops.h"
#include "replay/machine/made.h"
#include "replay/machine/small_arrays.h"

namespace dalsegno::replay {

// Of two vectors of three doubles: a view, as np.cross() moves its axis at the end. Of its products and differences none may be told of:
// all are finite, and no product is so small that it may have underflowed.
PyObject* crossed(const Step& s, const Reg* r) {
  constexpr npy_intp kThree = 3;
  double of[2][kThree];
  for (int k = 0; k < 2; ++k) {
    DType dtype;
    PyArrayObject* vector = small_operand(r[s.list[k + 1]].o, &dtype);
    if (!vector || dtype != DType::kFloat64 || PyArray_NDIM(vector) != 1 || PyArray_DIM(vector, 0) != kThree) return nullptr;
    for (npy_intp i = 0; i < kThree; ++i)
      of[k][i] = *reinterpret_cast<const double*>(PyArray_BYTES(vector) + i * PyArray_STRIDE(vector, 0));
  }
  double result[kThree];
  bool quiet = true;
  const auto product = [&](double a, double b) {
    const double ab = a * b;
    quiet &= is_above_underflow(ab) || a == 0 || b == 0;
    return ab;
  };
  for (int i = 0; i < kThree; ++i) {
    const int j = (i + 1) % kThree, k = (i + 2) % kThree;
    const double left = product(of[0][j], of[1][k]), right = product(of[0][k], of[1][j]);
    result[i] = left - right;
    quiet &= std::isfinite(result[i]);
  }
  PyObject* made = quiet ? new_array(DType::kFloat64, 1, &kThree) : nullptr;
  if (!made) return nullptr;
  std::memcpy(data_of(made), result, sizeof result);
  PyObject* view = PyArray_Transpose(reinterpret_cast<PyArrayObject*>(made), nullptr);
  Py_DECREF(made);
  if (!view) PyErr_Clear();
  return view;
}

namespace {

constexpr npy_intp kMostRows = 32;

// A matrix of doubles with as many rows as columns; null: it is none, or a large one.
PyArrayObject* small_square(PyObject* o) {
  DType dtype;
  PyArrayObject* a = small_operand(o, &dtype);
  if (!a || dtype != DType::kFloat64 || PyArray_NDIM(a) != 2) return nullptr;
  const npy_intp n = PyArray_DIM(a, 0);
  return n >= 1 && n <= kMostRows && PyArray_DIM(a, 1) == n ? a : nullptr;
}

// The core strides of an array, one axis after the other.
npy_intp* core_strides(PyArrayObject* a, npy_intp* to) {
  for (int d = 0; d < PyArray_NDIM(a); ++d) *to++ = core_stride(PyArray_DIM(a, d), PyArray_STRIDE(a, d));
  return to;
}

// LAPACK's complaints come up as invalid operations; np.linalg ignores all other flags where it looks for them.
PyObject* unless_invalid(PyObject* made) {
  if (rt::all_raised() & rt::kInvalid) Py_CLEAR(made);
  return made;
}

}  // namespace

PyObject* inverse(const Step& s, const Reg* r) {
  static const numpy::InnerLoop loop = numpy::linalg_loop("inv", DType::kFloat64);
  PyArrayObject* a = small_square(r[s.list[1]].o);
  PyObject* made = loop.function && a ? new_array(PyArray_DESCR(a), 2, PyArray_DIMS(a)) : nullptr;
  if (!made) return nullptr;
  char* operands[] = {PyArray_BYTES(a), data_of(made)};
  const npy_intp extents[] = {1, PyArray_DIM(a, 0)};
  npy_intp strides[2 + 4] = {};
  core_strides(reinterpret_cast<PyArrayObject*>(made), core_strides(a, strides + 2));
  rt::clear_all_raised();
  loop.function(operands, extents, strides, loop.data);
  return unless_invalid(made);
}

// np.linalg.solve() of a vector, or of the columns of a matrix.
PyObject* solved(const Step& s, const Reg* r) {
  static const numpy::InnerLoop of_one = numpy::linalg_loop("solve1", DType::kFloat64),
                                of_columns = numpy::linalg_loop("solve", DType::kFloat64);
  DType dtype;
  PyArrayObject *a = small_square(r[s.list[1]].o), *b = a ? small_operand(r[s.list[2]].o, &dtype) : nullptr;
  if (!b || dtype != DType::kFloat64 || PyArray_NDIM(b) < 1 || PyArray_NDIM(b) > 2 || PyArray_DIM(b, 0) != PyArray_DIM(a, 0))
    return nullptr;
  const bool one = PyArray_NDIM(b) == 1;
  const npy_intp columns = one ? 1 : PyArray_DIM(b, 1);
  const numpy::InnerLoop& loop = one ? of_one : of_columns;
  if (!loop.function || columns < 1 || columns > kMostRows) return nullptr;
  PyObject* made = new_array(PyArray_DESCR(b), PyArray_NDIM(b), PyArray_DIMS(b));
  if (!made) return nullptr;
  char* operands[] = {PyArray_BYTES(a), PyArray_BYTES(b), data_of(made)};
  const npy_intp extents[] = {1, PyArray_DIM(a, 0), columns};
  npy_intp strides[3 + 6] = {};
  core_strides(reinterpret_cast<PyArrayObject*>(made), core_strides(b, core_strides(a, strides + 3)));
  rt::clear_all_raised();
  loop.function(operands, extents, strides, loop.data);
  return unless_invalid(made);
}

// np.linalg.det(), which looks at no flag of its own: what comes up is told of as of any ufunc.
PyObject* determinant(const Step& s, const Reg* r) {
  static const numpy::InnerLoop loop = numpy::linalg_loop("det", DType::kFloat64);
  PyArrayObject* a = small_square(r[s.list[1]].o);
  if (!loop.function || !a) return nullptr;
  double made = 0;
  char* operands[] = {PyArray_BYTES(a), reinterpret_cast<char*>(&made)};
  const npy_intp extents[] = {1, PyArray_DIM(a, 0)};
  npy_intp strides[2 + 2] = {};
  core_strides(a, strides + 2);
  rt::clear_all_raised();
  loop.function(operands, extents, strides, loop.data);
  const int raised = rt::all_raised();
  return raised == 0 || numpy::errstate_ignores(raised) ? new_double(made) : nullptr;
}

}  // namespace dalsegno::replay
