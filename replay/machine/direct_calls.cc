// Calls of C functions and methods whose way of being called is known beforehand: what vectorcall would find out each time (the methods
// method_vectorcall_*() of Objects/descrobject.c, cfunction_vectorcall_*() of Objects/methodobject.c). Of calls that run no code of the
// user's: whoever counts how deep calls are nested sees one less. list: the callee, then the arguments.
#include "replay/machine/exec.h"

namespace dalsegno::replay {
namespace {

constexpr int32_t kMostArguments = 4;

template <bool method>
const PyMethodDef* definition_of(PyObject* callee) {
  return method ? reinterpret_cast<PyMethodDescrObject*>(callee)->d_method : reinterpret_cast<PyCFunctionObject*>(callee)->m_ml;
}

PyObject* operand(const Step& s, const Reg* r, int32_t k) { return r[s.list[k]].o; }

// Of a function what it is bound to; of a method its first argument.
template <bool method>
PyObject* self_of(const Step& s, const Reg* r) {
  return method ? operand(s, r, 1) : PyCFunction_GET_SELF(operand(s, r, 0));
}

template <bool method>
bool without_arguments(const Step& s, Reg* r) {
  return give(s, r, definition_of<method>(operand(s, r, 0))->ml_meth(self_of<method>(s, r), nullptr));
}

template <bool method>
bool of_one(const Step& s, Reg* r) {
  return give(s, r, definition_of<method>(operand(s, r, 0))->ml_meth(self_of<method>(s, r), operand(s, r, method ? 2 : 1)));
}

template <bool method, bool keywords>
bool of_some(const Step& s, Reg* r) {
  constexpr int32_t kFirst = method ? 2 : 1;
  PyObject* arguments[kMostArguments];
  for (int32_t k = kFirst; k < s.n; ++k) arguments[k - kFirst] = operand(s, r, k);
  const auto meth = reinterpret_cast<void (*)()>(definition_of<method>(operand(s, r, 0))->ml_meth);
  PyObject* self = self_of<method>(s, r);
  if constexpr (keywords)
    return give(
        s, r,
        reinterpret_cast<PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*)>(meth)(self, arguments, s.n - kFirst, nullptr));
  else
    return give(s, r, reinterpret_cast<PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t)>(meth)(self, arguments, s.n - kFirst));
}

// str(x), as unicode_new() of Objects/unicodeobject.c does it.
bool text_of(const Step& s, Reg* r) { return give(s, r, PyObject_Str(operand(s, r, 1))); }

template <bool method>
Exec direct(int flags, int32_t n) {
  constexpr int kKind = METH_VARARGS | METH_KEYWORDS | METH_NOARGS | METH_O | METH_FASTCALL | METH_METHOD | METH_CLASS | METH_STATIC;
  if (n < 0 || n > kMostArguments) return nullptr;
  switch (flags & kKind) {
    case METH_NOARGS:
      return n == 0 ? without_arguments<method> : nullptr;
    case METH_O:
      return n == 1 ? of_one<method> : nullptr;
    case METH_FASTCALL:
      return of_some<method, false>;
    case METH_FASTCALL | METH_KEYWORDS:
      return of_some<method, true>;
    default:
      return nullptr;
  }
}

}  // namespace

Exec direct_call(PyObject* callee, PyTypeObject* first, int32_t n) {
  if (callee == reinterpret_cast<PyObject*>(&PyUnicode_Type)) return n == 1 ? text_of : nullptr;
  if (PyCFunction_CheckExact(callee)) return direct<false>(definition_of<false>(callee)->ml_flags, n);
  const bool method = Py_IS_TYPE(callee, &PyMethodDescr_Type) && first && PyType_IsSubtype(first, PyDescr_TYPE(callee));
  return method ? direct<true>(definition_of<true>(callee)->ml_flags, n - 1) : nullptr;
}

}  // namespace dalsegno::replay
