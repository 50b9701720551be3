// Texts compared, and characters and bytes by their places. What is out of bounds leaves before the instruction.
#include <cstring>

#include "replay/machine/exec.h"
#include "replay/machine/scalars.h"
#include "trace/fault.h"

namespace dalsegno::replay {
PyObject* letter_at(PyObject* text, Py_ssize_t at) { return PyUnicode_FromOrdinal(static_cast<int>(PyUnicode_READ_CHAR(text, at))); }

// A text has the narrowest kind that holds its characters.
bool same_text(PyObject* a, PyObject* b) {
  if (a == b) return true;
  const Py_ssize_t n = PyUnicode_GET_LENGTH(a);
  if (n != PyUnicode_GET_LENGTH(b) || PyUnicode_KIND(a) != PyUnicode_KIND(b)) return false;
  return std::memcmp(PyUnicode_DATA(a), PyUnicode_DATA(b), static_cast<size_t>(n) * PyUnicode_KIND(a)) == 0;
}

const Step* step_same_text(const Step* s, Reg* r, Machine& m) {
  r[s->dst].i = same_text(r[s->a].o, r[s->b].o) == (s->imm == Py_EQ);
  return go_on(s + 1, r, m);
}

namespace {

bool text_order(const Step& s, Reg* r) {
  const int order = PyUnicode_Compare(r[s.a].o, r[s.b].o);
  r[s.dst].i = s.imm == Py_LT ? order < 0 : s.imm == Py_LE ? order <= 0 : s.imm == Py_GT ? order > 0 : order >= 0;
  return true;
}

bool text_test(const Step& s, Reg* r) {
  PyObject* operands[] = {r[s.a].o, s.c < 0 ? nullptr : r[s.c].o};
  const PyMethodDef* method = reinterpret_cast<PyMethodDescrObject*>(r[s.b].o)->d_method;
  PyObject* answer = s.c < 0 ? method->ml_meth(operands[0], nullptr) : PyObject_Vectorcall(r[s.b].o, operands, 2, nullptr);
  if (!answer) return false;
  r[s.dst].i = answer == Py_True;
  Py_DECREF(answer);
  return true;
}

}  // namespace

Quick text_order_step() { return {step_by<text_order>, text_order}; }
Quick text_test_step() { return {step_by<text_test>, text_test}; }

const Step* step_letter(const Step* s, Reg* r, Machine& m) {
  int64_t i = r[s->b].i;
  if (!within(PyUnicode_GET_LENGTH(r[s->a].o), &i)) [[unlikely]]
    return refuse(m, s->exit);
  PyObject* letter = letter_at(r[s->a].o, i);
  if (!letter) return fail(m, s->exit, false);
  r[s->dst].o = letter;
  return go_on(s + 1, r, m);
}

const Step* step_ord(const Step* s, Reg* r, Machine& m) {
  PyObject* text = r[s->a].o;
  if (PyUnicode_GET_LENGTH(text) != 1) [[unlikely]]
    return refuse(m, s->exit);
  r[s->dst].i = PyUnicode_READ_CHAR(text, 0);
  return go_on(s + 1, r, m);
}

const Step* step_byte(const Step* s, Reg* r, Machine& m) {
  PyObject* o = r[s->a].o;
  int64_t i = r[s->b].i;
  if (!within(Py_SIZE(o), &i)) [[unlikely]]
    return refuse(m, s->exit);
  r[s->dst].i = static_cast<unsigned char>((s->imm ? PyByteArray_AS_STRING(o) : PyBytes_AS_STRING(o))[i]);
  return go_on(s + 1, r, m);
}

const Step* step_put_byte(const Step* s, Reg* r, Machine& m) {
  PyObject* o = r[s->a].o;
  int64_t i = r[s->b].i;
  const int64_t value = r[s->c].i;
  if (!within(Py_SIZE(o), &i) || value < 0 || value > 255) [[unlikely]]
    return refuse(m, s->exit);
  PyByteArray_AS_STRING(o)[i] = static_cast<char>(value);
  return go_on(s + 1, r, m);
}

}  // namespace dalsegno::replay
