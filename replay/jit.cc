#include "replay/jit.h"

#include <structmember.h>

#include "replay/describe.h"

namespace dalsegno::replay {
namespace {

struct JitFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* dict;
  PyObject* weakrefs;
  Tree* tree;
};

JitFunction* self_of(PyObject* object) { return reinterpret_cast<JitFunction*>(object); }

PyObject* call(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  return self_of(callable)->tree->call(args, nargsf, kwnames);
}

int traverse(PyObject* object, visitproc visit, void* arg) {
  JitFunction* self = self_of(object);
  Py_VISIT(self->function);
  Py_VISIT(self->dict);
  if (self->tree)
    for (const auto& program : self->tree->programs())
      if (program)
        if (int stop = program->traverse(visit, arg)) return stop;
  return 0;
}

int clear(PyObject* object) {
  JitFunction* self = self_of(object);
  if (self->tree) self->tree->clear();
  Py_CLEAR(self->dict);
  return 0;
}

void dealloc(PyObject* object) {
  JitFunction* self = self_of(object);
  PyObject_GC_UnTrack(object);
  if (self->weakrefs) PyObject_ClearWeakRefs(object);
  delete self->tree;
  self->tree = nullptr;
  Py_CLEAR(self->dict);
  Py_CLEAR(self->function);
  Py_TYPE(object)->tp_free(object);
}

PyObject* descr_get(PyObject* object, PyObject* instance, PyObject*) {
  return !instance || instance == Py_None ? Py_NewRef(object) : PyMethod_New(object, instance);
}

PyObject* repr(PyObject* object) { return PyUnicode_FromFormat("<dalsegno.jit of %R>", self_of(object)->function); }

// By reference, as functions do: the module's global of this name is the jitted function.
PyObject* reduce(PyObject* object, PyObject*) { return PyObject_GetAttrString(self_of(object)->function, "__qualname__"); }

PyObject* stats(PyObject* object, PyObject*) { return describe_counters(function_counters(*self_of(object)->tree)); }
PyObject* traces(PyObject* object, PyObject*) { return describe_traces(*self_of(object)->tree); }
PyObject* notes(PyObject* object, PyObject*) { return describe_notes(*self_of(object)->tree); }
PyObject* forget(PyObject* object, PyObject*) {
  self_of(object)->tree->clear();
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"stats", stats, METH_NOARGS, "Counters of this function, a dict of ints."},
    {"traces", traces, METH_NOARGS, "Its traces as plain data, for explain."},
    {"notes", notes, METH_NOARGS, "What is worth telling beside the traces."},
    {"clear", forget, METH_NOARGS, "Forget this function's traces."},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef members[] = {
    {"__wrapped__", T_OBJECT, offsetof(JitFunction, function), READONLY, "the plain function"},
    {"__dictoffset__", T_PYSSIZET, offsetof(JitFunction, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(JitFunction, weakrefs), READONLY, nullptr},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(JitFunction, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef getset[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                        {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot slots[] = {
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_descr_get, reinterpret_cast<void*>(descr_get)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_getset, getset},
    {0, nullptr},
};

PyType_Spec spec = {
    "dalsegno._core.JitFunction",
    sizeof(JitFunction),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    slots,
};

// __name__, __qualname__, __module__, __doc__, __annotations__ and the function's own attributes.
bool copy_attributes(JitFunction* self) {
  for (const char* name : {"__name__", "__qualname__", "__module__", "__doc__", "__annotations__", "__type_params__"}) {
    PyObject* value = PyObject_GetAttrString(self->function, name);
    if (!value) {
      PyErr_Clear();
      continue;
    }
    int failed = PyDict_SetItemString(self->dict, name, value);
    Py_DECREF(value);
    if (failed) return false;
  }
  PyObject* own = reinterpret_cast<PyFunctionObject*>(self->function)->func_dict;
  return !own || PyDict_Merge(self->dict, own, 0) == 0;
}

}  // namespace

PyTypeObject* jit_type() {
  static PyTypeObject* type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return type;
}

PyObject* make_jit(PyObject* function, TreeOptions options) {
  if (!PyFunction_Check(function)) {
    PyErr_Format(PyExc_TypeError, "dalsegno.jit takes a Python function, not %.200s", Py_TYPE(function)->tp_name);
    return nullptr;
  }
  auto* self = reinterpret_cast<JitFunction*>(jit_type()->tp_alloc(jit_type(), 0));
  if (!self) return nullptr;
  self->vectorcall = call;
  self->function = Py_NewRef(function);
  self->dict = PyDict_New();
  self->tree = new Tree(reinterpret_cast<PyFunctionObject*>(function), options);
  if (!self->dict || !copy_attributes(self)) {
    Py_DECREF(self);
    return nullptr;
  }
  return reinterpret_cast<PyObject*>(self);
}

}  // namespace dalsegno::replay
