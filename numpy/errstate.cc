#include "numpy/errstate.h"

namespace dalsegno::numpy {
namespace {

PyObject* g_get_extobj = nullptr;  // numpy._core.umath._get_extobj_dict

struct Handled {
  int flag;
  const char* name;
};
constexpr Handled kHandled[] = {{rt::kInvalid, "invalid"}, {rt::kDivide, "divide"}, {rt::kOverflow, "over"}, {rt::kUnderflow, "under"}};

bool is_ignored(PyObject* settings, const char* name) {
  PyObject* mode = PyDict_GetItemString(settings, name);
  return mode && PyUnicode_Check(mode) && PyUnicode_CompareWithASCIIString(mode, "ignore") == 0;
}

}  // namespace

bool init_errstate() {
  PyObject* umath = g_get_extobj ? nullptr : PyImport_ImportModule("numpy._core.umath");
  if (umath) g_get_extobj = PyObject_GetAttrString(umath, "_get_extobj_dict");
  Py_XDECREF(umath);
  return g_get_extobj != nullptr;
}

bool errstate_ignores(int flags) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* settings = PyObject_CallNoArgs(g_get_extobj);
  bool ignored = settings && PyDict_Check(settings);
  for (const Handled& h : kHandled) {
    if (ignored && (flags & h.flag)) ignored = is_ignored(settings, h.name);
  }
  Py_XDECREF(settings);
  PyErr_Restore(type, value, traceback);
  return ignored;
}

}  // namespace dalsegno::numpy
