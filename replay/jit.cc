#include "replay/jit.h"

#include <structmember.h>

#include <algorithm>
#include <unordered_map>

#include "replay/describe.h"
#include "replay/door.h"
#include "replay/persist/persist.h"

namespace dalsegno::replay {
namespace {

struct JitFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;  // the plain function: it has the name, the code, the defaults and all other attributes
  PyObject* weakrefs;
  Tree* tree;
};

JitFunction* self_of(PyObject* object) { return reinterpret_cast<JitFunction*>(object); }

PyObject* call(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  return door([&] { return self_of(callable)->tree->call(args, nargsf, kwnames); });
}

// Of any function with a code: the first argument.
PyObject* call_any(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  if (PyVectorcall_NARGS(nargsf) == 0 || !PyFunction_Check(args[0])) {
    PyErr_SetString(PyExc_TypeError, "the first argument has to be the function that is to be called");
    return nullptr;
  }
  auto* function = reinterpret_cast<PyFunctionObject*>(args[0]);
  if (self_of(callable)->tree->takes(function)) return call(callable, args, nargsf, kwnames);
  return hook::call_plainly(function, args, true, nargsf, kwnames);
}

int traverse(PyObject* object, visitproc visit, void* arg) {
  JitFunction* self = self_of(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->function);
  if (!self->tree) return 0;
  for (const auto& [function, companion] : self->tree->companions()) Py_VISIT(companion.get());
  for (const auto& program : *self->tree->programs())
    if (program)
      if (int stop = program->traverse(visit, arg)) return stop;
  return 0;
}

int clear(PyObject* object) {
  JitFunction* self = self_of(object);
  if (self->tree) or_lose([self] { self->tree->clear(); });
  return 0;
}

// By whether they are kept: companions (jit.h) that live, by their functions, or codes. Both borrowed.
std::unordered_map<PyObject*, PyObject*> g_companions[2];

void dealloc(PyObject* object) {
  JitFunction* self = self_of(object);
  PyObject_GC_UnTrack(object);
  for (auto& companions : g_companions)
    for (PyObject* key : {self->function, reinterpret_cast<PyFunctionObject*>(self->function)->func_code}) {
      const auto found = companions.find(key);
      if (found != companions.end() && found->second == object) companions.erase(found);
    }
  if (self->weakrefs) PyObject_ClearWeakRefs(object);
  delete self->tree;
  self->tree = nullptr;
  Py_CLEAR(self->function);
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* descr_get(PyObject* object, PyObject* instance, PyObject*) {
  return !instance || instance == Py_None ? Py_NewRef(object) : PyMethod_New(object, instance);
}

PyObject* repr(PyObject* object) { return PyUnicode_FromFormat("<dalsegno.jit of %R>", self_of(object)->function); }

// By reference, as functions do: the module's global of this name is the jitted function.
PyObject* reduce(PyObject* object, PyObject*) { return PyObject_GetAttrString(self_of(object)->function, "__qualname__"); }

PyObject* stats(PyObject* object, PyObject*) {
  return door([&] { return describe_counters(function_counters(*self_of(object)->tree)); });
}
PyObject* traces(PyObject* object, PyObject*) {
  self_of(object)->tree->show();
  return describe_traces(*self_of(object)->tree);
}
PyObject* notes(PyObject* object, PyObject*) { return describe_notes(*self_of(object)->tree); }
PyObject* companions(PyObject* object, PyObject*) { return describe_companions(*self_of(object)->tree); }
PyObject* forget(PyObject* object, PyObject*) {
  return door([&] {
    self_of(object)->tree->clear();
    return Py_NewRef(Py_None);
  });
}

// ---- attributes: a jitted function has those of the plain one ------------------------------------------------------------------

PyObject* interned(const char* text) {
  PyObject* name = PyUnicode_InternFromString(text);
  if (!name) Py_FatalError("dalsegno: out of memory while it is imported");
  return name;
}

// Attributes that every type has, but which are asked of the plain function: `f.__class__` among them, so that isinstance(), inspect, mock
// and types.coroutine() see a function. type(f) is JitFunction.
bool belongs_to_function(PyObject* name) {
  constexpr const char* kNames[] = {"__class__", "__doc__", "__module__"};
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [name](const char* own) { return PyUnicode_CompareWithASCIIString(name, own) == 0; });
}

// What this type adds to a function's attributes (stats, explain ...) comes before those that the function was given, where it is a
// property, and after them, where it is a method; as is usual for classes and instances.
enum class Owner : uint8_t { kType, kFunction };
Owner owner_of(PyObject* name, bool write) {
  if (belongs_to_function(name)) return Owner::kFunction;
  PyObject* own = _PyType_Lookup(jit_type(), name);
  if (!own) return Owner::kFunction;
  return !write || Py_TYPE(own)->tp_descr_set ? Owner::kType : Owner::kFunction;
}

PyObject* own_attribute(PyObject* function,
                        PyObject* name) {  // of the function's __dict__; borrowed, or null, with or without an error set
  PyObject* dict = reinterpret_cast<PyFunctionObject*>(function)->func_dict;
  return dict ? PyDict_GetItemWithError(dict, name) : nullptr;
}

PyObject* get_attribute(PyObject* object, PyObject* name) {
  PyObject* function = self_of(object)->function;
  if (!PyUnicode_Check(name) || owner_of(name, false) == Owner::kFunction) return PyObject_GetAttr(function, name);
  PyObject* own = _PyType_Lookup(jit_type(), name);
  if (own && Py_TYPE(own)->tp_descr_set) return PyObject_GenericGetAttr(object, name);
  if (PyObject* given = own_attribute(function, name)) return Py_NewRef(given);
  return PyErr_Occurred() ? nullptr : PyObject_GenericGetAttr(object, name);
}

int set_attribute(PyObject* object, PyObject* name, PyObject* value) {
  if (!PyUnicode_Check(name) || owner_of(name, true) == Owner::kFunction) return PyObject_SetAttr(self_of(object)->function, name, value);
  return PyObject_GenericSetAttr(object, name, value);
}

// __wrapped__ as functools.wraps left it, or the plain function.
PyObject* get_wrapped(PyObject* object, void* name) {
  PyObject* function = self_of(object)->function;
  PyObject* given = own_attribute(function, static_cast<PyObject*>(name));
  if (!given && PyErr_Occurred()) return nullptr;
  return Py_NewRef(given ? given : function);
}
int set_wrapped(PyObject* object, PyObject* value, void* name) {
  return PyObject_SetAttr(self_of(object)->function, static_cast<PyObject*>(name), value);
}

// What type() does with plain functions of these names when it makes a class.
PyObject* set_name(PyObject* object, PyObject* args) {
  PyObject *owner, *name;
  if (!PyArg_ParseTuple(args, "O!U:__set_name__", &PyType_Type, &owner, &name)) return nullptr;
  struct {
    const char* name;
    PyObject* (*make)(PyObject*);
  } const kinds[] = {{"__new__", PyStaticMethod_New}, {"__init_subclass__", PyClassMethod_New}, {"__class_getitem__", PyClassMethod_New}};
  for (const auto& kind : kinds) {
    if (PyUnicode_CompareWithASCIIString(name, kind.name) != 0) continue;
    PyObject* method = kind.make(object);
    const int failed = method ? PyType_Type.tp_setattro(owner, name, method) : -1;  // not a metaclass's __setattr__
    Py_XDECREF(method);
    if (failed) return nullptr;
  }
  Py_RETURN_NONE;
}

PyObject* dir(PyObject* object, PyObject*) {
  PyObject* names = PyObject_Dir(self_of(object)->function);
  if (!names) return nullptr;
  for (const char* more : {"__wrapped__", "clear", "explain", "stats"}) {
    PyObject* name = PyUnicode_FromString(more);
    const int has = name ? PySequence_Contains(names, name) : -1;
    const int failed = has < 0 || (!has && PyList_Append(names, name) < 0);
    Py_XDECREF(name);
    if (failed) {
      Py_DECREF(names);
      return nullptr;
    }
  }
  return names;
}

PyMethodDef methods[] = {
    {"stats", stats, METH_NOARGS, "Counters of this function, a dict of ints."},
    {"traces", traces, METH_NOARGS, "Its traces as plain data, for explain."},
    {"notes", notes, METH_NOARGS, "What is worth telling beside the traces."},
    {"companions", companions, METH_NOARGS, "What its traces call in the place of plain functions that have loops or call themselves."},
    {"clear", forget, METH_NOARGS, "Forget this function's traces."},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__set_name__", set_name, METH_VARARGS, nullptr},
    {"__dir__", dir, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef members[] = {
    {"_plain", T_OBJECT, offsetof(JitFunction, function), READONLY, "the plain function, whatever __wrapped__ is"},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(JitFunction, weakrefs), READONLY, nullptr},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(JitFunction, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef getset[] = {
    {"__wrapped__", get_wrapped, set_wrapped, "the plain function, or what functools.wraps put here", interned("__wrapped__")},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot slots[] = {
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_descr_get, reinterpret_cast<void*>(descr_get)},
    {Py_tp_getattro, reinterpret_cast<void*>(get_attribute)},
    {Py_tp_setattro, reinterpret_cast<void*>(set_attribute)},
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

}  // namespace

PyTypeObject* jit_type() {
  static PyTypeObject* type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  companion_kept = [](PyObject* function_or_code, PyObject* globals) { return companion_of(function_or_code, globals, true); };
  jitted_at = [](PyObject* callable) -> Jitted* { return Py_IS_TYPE(callable, type) ? self_of(callable)->tree : nullptr; };
  return type;
}

PyObject* make_jit(PyObject* function, TreeOptions options) {
  if (!PyFunction_Check(function)) {
    PyErr_Format(PyExc_TypeError, "dalsegno.jit takes a Python function, not %.200s", Py_TYPE(function)->tp_name);
    return nullptr;
  }
  auto* self = reinterpret_cast<JitFunction*>(jit_type()->tp_alloc(jit_type(), 0));
  if (!self) return nullptr;
  self->vectorcall = options.any ? call_any : call;
  self->function = Py_NewRef(function);
  PyObject* made = door([&] {
    self->tree = new Tree(reinterpret_cast<PyObject*>(self), reinterpret_cast<PyFunctionObject*>(function), options);
    return reinterpret_cast<PyObject*>(self);
  });
  if (!made) Py_DECREF(self);
  if (made && options.store) or_lose(read_paces);
  return made;
}

// A function that has what all with a code have in common. It is never called.
static PyRef shape_of(PyObject* code, PyObject* globals) {
  PyRef shape(PyFunction_New(code, globals));
  const Py_ssize_t cells = PyCode_GetNumFree(reinterpret_cast<PyCodeObject*>(code));
  PyRef closure(shape && cells > 0 ? PyTuple_New(cells) : nullptr);
  for (Py_ssize_t i = 0; closure && i < cells; ++i) {
    PyObject* cell = PyCell_New(nullptr);
    if (!cell) return {};
    PyTuple_SET_ITEM(closure.get(), i, cell);
  }
  if (cells > 0 && (!closure || PyFunction_SetClosure(shape.get(), closure.get()) < 0)) return {};
  return shape;
}

PyObject* companion_of(PyObject* function_or_code, PyObject* globals, bool store) {
  return door([&]() -> PyObject* {
    auto& companions = g_companions[store ? 1 : 0];
    if (const auto found = companions.find(function_or_code); found != companions.end()) return Py_NewRef(found->second);
    const bool any = PyCode_Check(function_or_code);
    const PyRef of = any ? shape_of(function_or_code, globals) : PyRef::borrowed(function_or_code);
    if (!of) return nullptr;
    PyRef made(make_jit(of.get(), {.full_graph = false, .store = store, .any = any}));
    if (made) companions.emplace(function_or_code, made.get());
    return made.release();
  });
}

}  // namespace dalsegno::replay
