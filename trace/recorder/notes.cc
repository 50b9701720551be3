// What is told of a recording that it did not end at: which calls nothing is known of.
#include <string_view>

#include "numpy/api.h"
#include "trace/recorder/recorder.h"
#include "trace/recorder/text.h"

namespace dalsegno::recorder {
namespace {

// Types whose instances tell their qualified name without running code of the user's.
bool tells_its_name(PyObject* callee) {
  PyTypeObject* type = Py_TYPE(callee);
  const std::string_view name = type->tp_name;
  return type == &PyFunction_Type || type == &PyCFunction_Type || type == &PyCMethod_Type || type == &PyMethodDescr_Type ||
         type == &PyClassMethodDescr_Type || type == &PyWrapperDescr_Type || type == &PyType_Type || type == &PyUFunc_Type ||
         name == "numpy._ArrayFunctionDispatcher" || name == "dalsegno._core.JitFunction";
}

// For people; the type's name where asking might run code of the user's (__getattr__, metaclasses).
std::string name_of(PyObject* callee) {
  if (!callee) return "";
  if (PyMethod_Check(callee)) return name_of(PyMethod_GET_FUNCTION(callee));
  if (PyType_Check(callee) && !Py_IS_TYPE(callee, &PyType_Type) &&
      PyType_HasFeature(reinterpret_cast<PyTypeObject*>(callee), Py_TPFLAGS_HEAPTYPE))
    return text_of(reinterpret_cast<PyHeapTypeObject*>(callee)->ht_qualname);
  PyObject* name = tells_its_name(callee) ? PyObject_GetAttrString(callee, "__qualname__") : nullptr;
  if (!name) PyErr_Clear();
  std::string text = name && PyUnicode_Check(name) ? text_of(name) : Py_TYPE(callee)->tp_name;
  Py_XDECREF(name);
  return text;
}

}  // namespace

void Recorder::note(Reason reason, PyObject* callee) {
  Note n;
  n.reason = reason;
  n.what = name_of(callee);
  n.where = text_of(frame().code->code->co_qualname) + ":" + std::to_string(pending() ? pending()->line : 0);
  for (const Note& old : notes_)
    if (old.reason == n.reason && old.what == n.what && old.where == n.where) return;
  notes_.push_back(std::move(n));
}

}  // namespace dalsegno::recorder
