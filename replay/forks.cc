#include "replay/forks.h"

#include <Python.h>

#include <vector>

#include "replay/kernels/compile.h"

namespace dalsegno::replay {
namespace {

std::vector<ForkHooks>& all() {
  static auto* hooks = new std::vector<ForkHooks>;
  return *hooks;
}

PyObject* run_before(PyObject*, PyObject*) {
  without_gil([] {
    for (auto hooks = all().rbegin(); hooks != all().rend(); ++hooks) hooks->before();
  });
  Py_RETURN_NONE;
}
PyObject* run_parent(PyObject*, PyObject*) {
  for (const ForkHooks& hooks : all()) hooks.parent();
  Py_RETURN_NONE;
}
PyObject* run_child(PyObject*, PyObject*) {
  for (const ForkHooks& hooks : all()) hooks.child();
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {{"before_fork", run_before, METH_NOARGS, nullptr},
                         {"after_fork_in_parent", run_parent, METH_NOARGS, nullptr},
                         {"after_fork_in_child", run_child, METH_NOARGS, nullptr}};

void register_methods() {
  PyObject* os = PyImport_ImportModule("os");
  PyObject* function = os ? PyObject_GetAttrString(os, "register_at_fork") : nullptr;
  PyObject* none = PyTuple_New(0);
  PyObject* keywords = Py_BuildValue("{sNsNsN}", "before", PyCFunction_New(&methods[0], nullptr), "after_in_parent",
                                     PyCFunction_New(&methods[1], nullptr), "after_in_child", PyCFunction_New(&methods[2], nullptr));
  Py_XDECREF(function && none && keywords ? PyObject_Call(function, none, keywords) : nullptr);
  Py_XDECREF(keywords);
  Py_XDECREF(none);
  Py_XDECREF(function);
  Py_XDECREF(os);
  PyErr_Clear();
}

}  // namespace

void around_python_forks(const ForkHooks& hooks) {
  if (all().empty()) register_methods();
  all().push_back(hooks);
}

}  // namespace dalsegno::replay
