// What NumPy does on its own arrays of numbers and its scalars without running code of the user's and without a warning; it may raise.
// Asked by silent.cc, each time anew.
#pragma once
#include "numpy/api.h"
#include "replay/machine/run.h"

namespace dalsegno::replay {

// A slice from, to and by ints or None.
inline bool is_plain_slice(PyObject* o) {
  const auto is_bound = [](PyObject* bound) { return bound == Py_None || PyLong_CheckExact(bound); };
  if (!PySlice_Check(o)) return false;
  const auto* slice = reinterpret_cast<PySliceObject*>(o);
  return is_bound(slice->start) && is_bound(slice->stop) && is_bound(slice->step);
}

bool is_number_array(PyObject* o);  // exact
// NumPy's number of an array's dtype.
inline int type_of_numbers(PyObject* array) { return PyArray_TYPE(reinterpret_cast<PyArrayObject*>(array)); }
bool takes_numbers(PyObject* o);  // such a one, which is written without a warning that it is
bool is_axes(PyObject* o);        // an int, None, a text, or a tuple of such
bool gives_part(PyObject* array, PyObject* key);
bool takes_part(PyObject* array, PyObject* key, PyObject* value);
// a (op) b, where one is a scalar of NumPy's and one a complex number.
bool computes_complex(PyObject* a, PyObject* b, BinaryOp op);
bool has_absolute(PyObject* complex);
bool gives_attribute(PyObject* o, PyObject* name, PyObject* descriptor);
bool takes_fill(PyObject* array, PyObject* value);

}  // namespace dalsegno::replay
