// Pieces of lists, tuples, texts and bytes, from one position to another.
#include <limits>

#include "replay/machine/exec.h"
#include "replay/machine/scalars.h"

namespace dalsegno::replay {
namespace {

constexpr Py_ssize_t kMost = std::numeric_limits<Py_ssize_t>::max();

Py_ssize_t length_of(PyObject* o) { return PyUnicode_CheckExact(o) ? PyUnicode_GET_LENGTH(o) : Py_SIZE(o); }

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

const Step* step_piece(const Step* s, Reg* r, Machine& m) {
  if (piece(*s, r)) [[likely]]
    return go_on(s + 1, r, m);
  return fail(m, s->exit, false);
}

}  // namespace

Quick piece_step() { return {step_piece, piece}; }

}  // namespace dalsegno::replay
