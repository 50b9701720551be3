#include "replay/machine/silent_numpy.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>

#include "numpy/dtypes.h"
#include "replay/machine/array_operand.h"
#include "replay/machine/scalars.h"

namespace dalsegno::replay {

bool is_number_array(PyObject* o) {
  if (!numpy::is_exact_array(o)) return false;
  const int type = type_of_numbers(o);
  return PyTypeNum_ISNUMBER(type) || PyTypeNum_ISBOOL(type);
}

bool is_axes(PyObject* o) {
  const auto is_one = [](PyObject* one) { return PyLong_CheckExact(one) || one == Py_None || PyUnicode_CheckExact(one); };
  if (!PyTuple_CheckExact(o)) return is_one(o);
  PyObject** parts = reinterpret_cast<PyTupleObject*>(o)->ob_item;
  return std::all_of(parts, parts + PyTuple_GET_SIZE(o), is_one);
}

// ---- parts -----------------------------------------------------------------------------------------------------------------------------

namespace {

bool is_part(PyObject* key) {
  return is_plain_slice(key) || PyLong_CheckExact(key) || key == Py_None || key == Py_Ellipsis || numpy::is_number_type(Py_TYPE(key));
}

}  // namespace

bool gives_part(PyObject* array, PyObject* key) {
  if (!is_number_array(array)) return false;
  if (!PyTuple_CheckExact(key)) return is_part(key);
  PyObject** parts = reinterpret_cast<PyTupleObject*>(key)->ob_item;
  return std::all_of(parts, parts + PyTuple_GET_SIZE(key), is_part);
}

bool takes_part(PyObject* array, PyObject* key, PyObject* value) { return gives_part(array, key) && takes_fill(array, value); }

bool takes_numbers(PyObject* o) { return is_number_array(o) && is_writeable(reinterpret_cast<PyArrayObject*>(o)); }

// Doubles and what is made of them take numbers without a word.
bool takes_fill(PyObject* array, PyObject* value) {
  if (!takes_numbers(array)) return false;
  const int type = type_of_numbers(array);
  if (type == NPY_CDOUBLE && (PyComplex_CheckExact(value) || Py_IS_TYPE(value, &PyCDoubleArrType_Type))) return true;
  return (type == NPY_DOUBLE || type == NPY_CDOUBLE) && (is_number_object(value) || Py_IS_TYPE(value, &PyDoubleArrType_Type));
}

// ---- complex scalars ----------------------------------------------------------------------------------------------------------------

namespace {

bool is_numpy_complex(PyObject* o) { return Py_IS_TYPE(o, &PyCDoubleArrType_Type); }

// Zero, or so far from the largest and the smallest numbers that neither products nor squares of such, nor what the C library makes of
// them on the way to a root, raise a flag but that of inexact results. (What is lost where two are subtracted is lost exactly.)
bool is_moderate(double x) {
  constexpr uint64_t kBias = 1023, kMost = 200;
  const uint64_t exponent = std::bit_cast<uint64_t>(x) >> 52 & 0x7ff;
  return exponent - (kBias - kMost) <= 2 * kMost || x == 0;
}

bool is_moderate_number(PyObject* o) {
  if (is_numpy_complex(o) || PyComplex_CheckExact(o)) {  // the one derives from the other
    const Py_complex z = reinterpret_cast<PyComplexObject*>(o)->cval;
    return is_moderate(z.real) && is_moderate(z.imag);
  }
  if (PyFloat_CheckExact(o) || Py_IS_TYPE(o, &PyDoubleArrType_Type)) return is_moderate(PyFloat_AS_DOUBLE(o));
  Reg whole;
  return PyLong_CheckExact(o) && unbox_as<Rep::kInt>(o, &whole);
}

}  // namespace

bool computes_complex(PyObject* a, PyObject* b, BinaryOp op) {
  if (op != BinaryOp::add && op != BinaryOp::subtract && op != BinaryOp::multiply) return false;
  return (is_numpy_complex(a) || is_numpy_complex(b)) && is_moderate_number(a) && is_moderate_number(b);
}

bool has_absolute(PyObject* complex) { return is_numpy_complex(complex) && is_moderate_number(complex); }

// ---- attributes ------------------------------------------------------------------------------------------------------------------------

// descriptor: what the object's class has by that name.
bool gives_attribute(PyObject* o, PyObject* name, PyObject* descriptor) {
  static PyObject* const kNames[] = {PyUnicode_InternFromString("real"), PyUnicode_InternFromString("imag"),
                                     PyUnicode_InternFromString("T"),    PyUnicode_InternFromString("size"),
                                     PyUnicode_InternFromString("ndim"), PyUnicode_InternFromString("dtype"),
                                     PyUnicode_InternFromString("shape")};
  if (!Py_IS_TYPE(descriptor, &PyGetSetDescr_Type) || !(is_number_array(o) || numpy::is_number_type(Py_TYPE(o)))) return false;
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

}  // namespace dalsegno::replay
