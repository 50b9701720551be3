// Pieces of lists, tuples, texts and bytes, from one position to another.
#include <algorithm>
#include <limits>

#include "replay/machine/exec.h"
#include "replay/machine/scalars.h"

namespace dalsegno::replay {
namespace {

constexpr Py_ssize_t kMost = std::numeric_limits<Py_ssize_t>::max();

Py_ssize_t length_of(PyObject* o) { return PyUnicode_CheckExact(o) ? PyUnicode_GET_LENGTH(o) : Py_SIZE(o); }

// A new text, even of one character (unicode_subscript() of Objects/unicodeobject.c).
PyObject* reversed_ascii(PyObject* text, Py_ssize_t from, Py_ssize_t to) {
  const Py_ssize_t n = PySlice_AdjustIndices(PyUnicode_GET_LENGTH(text), &from, &to, -1);
  PyObject* made = PyUnicode_New(n, 127);
  if (!made) return nullptr;
  const Py_UCS1* read = PyUnicode_1BYTE_DATA(text) + from;
  std::reverse_copy(read + 1 - n, read + 1, PyUnicode_1BYTE_DATA(made));
  return made;
}

PyObject* by_slice(PyObject* o, PyObject* from, PyObject* to, PyObject* step) {
  PyObject* slice = from && to && step ? PySlice_New(from, to, step) : nullptr;
  PyObject* made = slice ? PyObject_GetItem(o, slice) : nullptr;
  for (PyObject* part : {from, to, step, slice}) Py_XDECREF(part);
  return made;
}

// Of a list or tuple, backwards.
PyObject* reversed_piece_of(PyObject* o, Py_ssize_t from, Py_ssize_t to) {
  const bool list = PyList_CheckExact(o);
  const Py_ssize_t n = PySlice_AdjustIndices(Py_SIZE(o), &from, &to, -1);
  PyObject* made = list ? PyList_New(n) : PyTuple_New(n);
  for (Py_ssize_t k = 0; made && k < n; ++k) {
    PyObject* item = Py_NewRef(list ? PyList_GET_ITEM(o, from - k) : PyTuple_GET_ITEM(o, from - k));
    list ? PyList_SET_ITEM(made, k, item) : PyTuple_SET_ITEM(made, k, item);
  }
  return made;
}

// New reference. What is the whole of something that does not change is that very object (unicode_subscript() of Objects/unicodeobject.c,
// tuplesubscript(), bytes_subscript()).
PyObject* piece_of(PyObject* o, Py_ssize_t from, Py_ssize_t to) {
  const Py_ssize_t n = PySlice_AdjustIndices(length_of(o), &from, &to, 1);
  if (n <= 0) from = to = 0;
  if (PyList_CheckExact(o)) return PyList_GetSlice(o, from, to);
  if (PyTuple_CheckExact(o)) return PyTuple_GetSlice(o, from, to);
  if (PyUnicode_CheckExact(o)) return PyUnicode_Substring(o, from, to);
  return n == Py_SIZE(o) ? Py_NewRef(o) : PyBytes_FromStringAndSize(PyBytes_AS_STRING(o) + from, to - from);
}

bool piece(const Step& s, Reg* r) {
  const Py_ssize_t from = s.b < 0 ? 0 : r[s.b].i, to = s.c < 0 ? kMost : r[s.c].i;
  return give(s, r, piece_of(r[s.a].o, from, to));
}

bool reversed_piece(const Step& s, Reg* r) {
  const Py_ssize_t from = s.b < 0 ? kMost : r[s.b].i, to = s.c < 0 ? std::numeric_limits<Py_ssize_t>::min() : r[s.c].i;
  PyObject* o = r[s.a].o;
  if (PyUnicode_CheckExact(o) && PyUnicode_IS_ASCII(o)) return give(s, r, reversed_ascii(o, from, to));
  if (PyList_CheckExact(o) || PyTuple_CheckExact(o)) return give(s, r, reversed_piece_of(o, from, to));
  const auto end = [&](int32_t reg) { return reg < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(r[reg].i); };
  return give(s, r, by_slice(o, end(s.b), end(s.c), PyLong_FromLong(-1)));
}

// Where nothing dies that could tell (list_ass_subscript() of Objects/listobject.c).
bool put_piece(const Step& s, Reg* r) {
  PyObject *list = r[s.a].o, *put = r[s.other].o;
  Py_ssize_t from = s.b < 0 ? 0 : r[s.b].i, to = s.c < 0 ? kMost : r[s.c].i;
  PySlice_AdjustIndices(Py_SIZE(list), &from, &to, 1);
  if (to < from) to = from;
  PyObject** items = reinterpret_cast<PyListObject*>(list)->ob_item;
  if (!std::all_of(items + from, items + to, is_leaf_object)) return false;
  return PyList_SetSlice(list, from, to, put) == 0 || (PyErr_Clear(), false);
}

}  // namespace

Quick piece_step(bool reversed) { return reversed ? Quick{step_by<reversed_piece>, reversed_piece} : Quick{step_by<piece>, piece}; }
Quick put_piece_step() { return {step_by_or_refuse<put_piece>, put_piece}; }

}  // namespace dalsegno::replay
