// What is known of operands only when an op is done: numbers, and arrays of numbers of whatever dtype, run no code of the user's when they
// are computed with, and neither do keys made of them.
#include "numpy/dtypes.h"
#include "replay/machine/run.h"
// clang-format off
#include <numpy/arrayscalars.h>  // needs Python.h before it
// clang-format on

namespace dalsegno::replay {
namespace {

bool is_number(PyTypeObject* type) {
  return type == &PyFloat_Type || type == &PyLong_Type || type == &PyBool_Type || type == &PyComplex_Type || numpy::is_scalar_type(type) ||
         type == &PyCDoubleArrType_Type || type == &PyCFloatArrType_Type;
}

bool has_numbers(PyObject* array) {
  const int number = PyArray_TYPE(reinterpret_cast<PyArrayObject*>(array));
  return PyTypeNum_ISNUMBER(number) || PyTypeNum_ISBOOL(number);
}

bool is_plain(PyObject* o) { return numpy::is_exact_array(o) ? has_numbers(o) : is_number(Py_TYPE(o)); }

bool is_plain_part(PyObject* o) {
  if (is_plain(o) || o == Py_None || o == Py_Ellipsis) return true;
  if (!PySlice_Check(o)) return false;
  const auto* slice = reinterpret_cast<PySliceObject*>(o);
  for (PyObject* part : {slice->start, slice->stop, slice->step})
    if (part != Py_None && !is_number(Py_TYPE(part))) return false;
  return true;
}

bool is_plain_key(PyObject* key) {
  if (!PyTuple_CheckExact(key)) return is_plain_part(key);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i)
    if (!is_plain_part(PyTuple_GET_ITEM(key, i))) return false;
  return true;
}

bool operators(const Step& s, const Reg* r) { return is_plain(r[s.a].o) && (s.b < 0 || is_plain(r[s.b].o)); }
bool get_item(const Step& s, const Reg* r) {
  PyObject* o = r[s.a].o;
  return numpy::is_exact_array(o) && has_numbers(o) && is_plain_key(r[s.b].o);
}
bool set_item(const Step& s, const Reg* r) { return get_item(s, r) && is_plain(r[s.c].o); }

}  // namespace

Plain plain_of(OpKind kind) {
  switch (kind) {
    case OpKind::binary:
    case OpKind::inplace:
    case OpKind::unary:
    case OpKind::compare:
      return operators;
    case OpKind::get_item:
      return get_item;
    case OpKind::set_item:
      return set_item;
    default:
      return nullptr;
  }
}

}  // namespace dalsegno::replay
