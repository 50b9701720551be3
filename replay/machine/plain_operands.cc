// What is known of operands only when an op is done: numbers, and arrays of numbers of whatever dtype, run no code of the user's when they
// are computed with, and neither do keys made of them.
#include "numpy/dtypes.h"
#include "replay/machine/run.h"
#include "trace/recorder/facts.h"
// clang-format off
#include <numpy/arrayscalars.h>  // needs Python.h before it
// clang-format on

namespace dalsegno::replay {
namespace {

bool is_number(PyTypeObject* type) {
  return type == &PyFloat_Type || type == &PyLong_Type || type == &PyBool_Type || type == &PyComplex_Type || numpy::is_number_type(type);
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

// What C code does with operands of its own kind.
bool is_in_c(PyObject* o) { return recorder::is_type_in_c(Py_TYPE(o)); }
bool one_in_c(const Step& s, const Reg* r) { return is_in_c(r[s.a].o); }
bool two_in_c(const Step& s, const Reg* r) { return is_in_c(r[s.a].o) && is_in_c(r[s.b].o); }
bool three_in_c(const Step& s, const Reg* r) { return two_in_c(s, r) && is_in_c(r[s.c].o); }
bool callee_in_c(const Step& s, const Reg* r) { return recorder::looks_at_no_frames(r[s.list[0]].o, s.n > 1 ? r[s.list[1]].o : nullptr); }

}  // namespace

Plain in_c_of(OpKind kind) {
  switch (kind) {
    case OpKind::get_attr:
    case OpKind::set_attr:  // (what it is set to is stored, or drops what was there)
    case OpKind::unary:
    case OpKind::truth:
    case OpKind::not_:
    case OpKind::get_iter:
    case OpKind::iter_next:
      return one_in_c;
    case OpKind::binary:
    case OpKind::inplace:
    case OpKind::compare:
    case OpKind::contains:
    case OpKind::get_item:
    case OpKind::del_item:
      return two_in_c;
    case OpKind::set_item:
      return three_in_c;
    case OpKind::call:
      return callee_in_c;
    default:
      return nullptr;
  }
}

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
