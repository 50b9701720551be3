// Arrays as steps look at them: anew each time, as shape, dtype and memory may have changed since the last one.
#pragma once
#include <utility>

#include "numpy/dtypes.h"
#include "replay/segment/scalars.h"

namespace dalsegno::replay {

// The object, if it is an exact, aligned, native array as `facts` say, whose dtype carries no metadata; else null.
inline PyArrayObject* plain_array(PyObject* o, const ArrayFacts& facts) {
  if (!o || !PyArray_CheckExact(o)) return nullptr;
  auto* a = reinterpret_cast<PyArrayObject*>(o);
  return PyArray_NDIM(a) == facts.rank && numpy::is_plain(PyArray_DESCR(a), facts.dtype) && PyArray_ISALIGNED(a) ? a : nullptr;
}

// The same of any facts, which it tells, if it is in C order without a gap.
inline PyArrayObject* dense_array(PyObject* o, ArrayFacts* facts) {
  PyArrayObject* a = o && numpy::facts_of(o, facts) ? plain_array(o, *facts) : nullptr;
  return a && PyArray_IS_C_CONTIGUOUS(a) ? a : nullptr;
}

// May it be written into without a word? (A flag asks for a warning with the first write into some arrays.)
inline bool is_writeable(PyArrayObject* a) {
  constexpr int kWarnOnWrite = static_cast<int>(uint32_t{1} << 31);  // NPY_ARRAY_WARN_ON_WRITE, which NumPy keeps to itself
  return (PyArray_FLAGS(a) & (NPY_ARRAY_WRITEABLE | kWarnOnWrite)) == NPY_ARRAY_WRITEABLE;
}

// Are its elements positions that 64 bits with a sign hold?
inline bool holds_positions(DType dtype) {
  return dtype != DType::kBool && !is_float(dtype) && !is_complex(dtype) && dtype != DType::kUint64;
}

// From its first byte to behind its last one.
inline std::pair<const char*, const char*> bounds(PyArrayObject* a) {
  const char *first = PyArray_BYTES(a), *last = first;
  for (int d = 0; d < PyArray_NDIM(a); ++d)
    if (PyArray_DIM(a, d) > 0) (PyArray_STRIDE(a, d) < 0 ? first : last) += (PyArray_DIM(a, d) - 1) * PyArray_STRIDE(a, d);
  return {first, last + PyArray_ITEMSIZE(a)};
}

// May some byte be of both? (Between their bounds.)
inline bool overlap(PyArrayObject* a, PyArrayObject* b) {
  const auto [a0, a1] = bounds(a);
  const auto [b0, b1] = bounds(b);
  return a0 < b1 && b0 < a1;
}

// A number as an element of the array, if NumPy stores it there without a word.
bool element_of(PyArrayObject* array, PyObject* number, ScalarValue* out);

// The axis that an int names, counted from the first of `rank` axes; -1: it is no int, or names none.
inline int axis_of(PyObject* which, int rank) {
  if (!PyLong_CheckExact(which)) return -1;
  int overflow = 0;
  const long axis = PyLong_AsLongAndOverflow(which, &overflow);
  if (overflow != 0 || axis < -rank || axis >= rank) return -1;
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace dalsegno::replay
