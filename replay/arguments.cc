// CPython's argument binding (Objects/call.c, Python/ceval.c initialize_locals), for calls that succeed.
#include "replay/tree.h"

namespace dalsegno::replay {
namespace {

int slot_of(PyCodeObject* code, PyObject* name) {
  int total = code->co_argcount + code->co_kwonlyargcount;
  for (int i = code->co_posonlyargcount; i < total; ++i) {
    PyObject* own = PyTuple_GET_ITEM(code->co_localsplusnames, i);
    if (own == name || PyUnicode_Compare(own, name) == 0) return i;
  }
  return -1;
}

bool bind_keywords(PyCodeObject* code, PyObject* const* values, PyObject* kwnames, PyObject* extra, std::vector<PyObject*>* slots) {
  Py_ssize_t n = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t k = 0; k < n; ++k) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, k);
    int slot = slot_of(code, name);
    if (slot >= 0) {
      if ((*slots)[slot]) return false;
      (*slots)[slot] = Py_NewRef(values[k]);
    } else if (!extra || PyDict_SetItem(extra, name, values[k]) < 0) {
      return false;
    }
  }
  return true;
}

bool fill_defaults(PyFunctionObject* f, PyCodeObject* code, std::vector<PyObject*>* slots) {
  Py_ssize_t n = f->func_defaults ? PyTuple_GET_SIZE(f->func_defaults) : 0;
  for (int i = 0; i < code->co_argcount + code->co_kwonlyargcount; ++i) {
    if ((*slots)[i]) continue;
    PyObject* value = nullptr;
    if (i < code->co_argcount) {
      Py_ssize_t d = i - (code->co_argcount - n);
      if (d >= 0) value = PyTuple_GET_ITEM(f->func_defaults, d);
    } else if (f->func_kwdefaults) {
      value = PyDict_GetItemWithError(f->func_kwdefaults, PyTuple_GET_ITEM(code->co_localsplusnames, i));
    }
    if (!value) return false;
    (*slots)[i] = Py_NewRef(value);
  }
  return true;
}

}  // namespace

bool bind_parameters(PyFunctionObject* f, PyObject* const* args, size_t nargsf, PyObject* kwnames, std::vector<PyObject*>* params) {
  auto* code = reinterpret_cast<PyCodeObject*>(f->func_code);
  Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
  int total = code->co_argcount + code->co_kwonlyargcount;
  bool varargs = code->co_flags & CO_VARARGS, varkw = code->co_flags & CO_VARKEYWORDS;
  params->assign(total + varargs + varkw, nullptr);
  bool ok = nargs <= code->co_argcount || varargs;
  Py_ssize_t plain = nargs < code->co_argcount ? nargs : code->co_argcount;
  if (ok)
    for (Py_ssize_t i = 0; i < plain; ++i) (*params)[i] = Py_NewRef(args[i]);
  PyObject* extra = varkw ? PyDict_New() : nullptr;
  ok = ok && (!varkw || extra) && bind_keywords(code, args + nargs, kwnames, extra, params);
  ok = ok && fill_defaults(f, code, params);
  int slot = total;
  if (ok && varargs) {
    PyObject* rest = PyTuple_New(nargs - plain);
    if (rest)
      for (Py_ssize_t i = plain; i < nargs; ++i) PyTuple_SET_ITEM(rest, i - plain, Py_NewRef(args[i]));
    ok = rest != nullptr;
    (*params)[slot++] = rest;
  }
  if (ok && varkw) (*params)[slot] = Py_NewRef(extra);
  Py_XDECREF(extra);
  if (ok) return true;
  PyErr_Clear();
  for (PyObject* p : *params) Py_XDECREF(p);
  params->clear();
  return false;
}

}  // namespace dalsegno::replay
