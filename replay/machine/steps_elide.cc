// Python ops in which eager NumPy reuses the memory of a dying temporary (numpy/elide.h).
#include <utility>

#include "numpy/api.h"
#include "numpy/elide.h"
#include "replay/machine/exec.h"

namespace dalsegno::replay {
namespace {

constexpr const char* kUnaryFunctions[] = {"negative", "positive", "invert", "rint"};

// Null: nothing is elided.
BinaryFn in_place(BinaryOp op, PyObject** left, PyObject** right, int dying) {
  const int into = numpy::elided_operand(op, *left, *right, dying);
  if (into == 0) return nullptr;
  if (into == numpy::kElideRight) std::swap(*left, *right);
  return inplace_operator(op);
}

PyObject* add(PyObject* sum, PyObject* item) {
  PyObject *left = sum, *right = item;
  const BinaryFn into = in_place(BinaryOp::add, &left, &right, numpy::kElideLeft | numpy::kElideRight);
  return into ? into(left, right) : PyNumber_Add(sum, item);
}

// The rest of builtin_sum's loop, from an array on.
PyObject* sum_arrays(PyObject* iterator, PyObject* sum) {
  while (sum) {
    PyObject* item = PyIter_Next(iterator);
    if (!item && PyErr_Occurred()) Py_CLEAR(sum);
    if (!item) break;
    PyObject* next = add(sum, item);
    Py_DECREF(sum);
    Py_DECREF(item);
    sum = next;
  }
  return sum;
}

// sum(iterable): 0 + first decides how the builtin goes on; where that is an array, it is NumPy's operator from then on.
PyObject* sum_of(PyObject* builtin, PyObject* iterable) {
  PyObject* iterator = PyObject_GetIter(iterable);
  PyObject* first = iterator ? PyIter_Next(iterator) : nullptr;
  PyObject* sum = nullptr;
  if (!first) {
    if (!PyErr_Occurred()) sum = PyLong_FromLong(0);
  } else {
    PyObject* zero = PyLong_FromLong(0);
    sum = zero ? add(zero, first) : nullptr;
    Py_XDECREF(zero);
    Py_DECREF(first);
    const bool number = sum && (PyLong_CheckExact(sum) || PyFloat_CheckExact(sum));
    if (number) {
      PyObject* start = sum;
      sum = PyObject_CallFunctionObjArgs(builtin, iterator, start, nullptr);
      Py_DECREF(start);
    } else {
      sum = sum_arrays(iterator, sum);
    }
  }
  Py_XDECREF(iterator);
  return sum;
}

}  // namespace

bool exec_binary_eliding(const Step& s, Reg* r) {
  PyObject *left = r[s.a].o, *right = r[s.b].o;
  const BinaryFn into = in_place(static_cast<BinaryOp>(s.imm), &left, &right, s.n);
  return into ? give(s, r, into(left, right)) : exec_binary(s, r);
}

bool exec_unary_eliding(const Step& s, Reg* r) {
  if (!numpy::elides_into(r[s.a].o)) return exec_unary(s, r);
  return give(s, r, numpy::apply_in_place(kUnaryFunctions[s.imm], r[s.a].o));
}

bool exec_abs_eliding(const Step& s, Reg* r) {
  PyObject* operand = r[s.list[1]].o;
  if (!numpy::elides_into(operand) || PyArray_ISCOMPLEX(reinterpret_cast<PyArrayObject*>(operand))) return exec_call(s, r);
  return give(s, r, numpy::apply_in_place("absolute", operand));
}

bool exec_sum(const Step& s, Reg* r) { return give(s, r, sum_of(r[s.list[0]].o, r[s.list[1]].o)); }

}  // namespace dalsegno::replay
