#include "trace/recorder/facts.h"

#include <cstring>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "numpy/dtypes.h"
#include "trace/recorder/recorder.h"

namespace dalsegno::recorder {
namespace {

std::unordered_set<PyTypeObject*> g_plain, g_simple;
PyTypeObject* g_partial = nullptr;
PyObject *g_func_name = nullptr, *g_call_name = nullptr;  // "func", "__call__"
std::unordered_map<PyObject*, CalleeFacts> g_callees;     // keys are immortal in practice: builtins and NumPy's own functions, held

PyTypeObject* type_of_new(PyObject* object) {  // steals
  PyTypeObject* type = object ? Py_TYPE(object) : nullptr;
  Py_XDECREF(object);
  return type;
}

PyTypeObject* iterator_type(PyObject* iterable) {  // steals
  PyTypeObject* type = iterable ? type_of_new(PyObject_GetIter(iterable)) : nullptr;
  Py_XDECREF(iterable);
  return type;
}

void fill_types() {
  g_simple = {&PyLong_Type, &PyFloat_Type, &PyBool_Type, &PyComplex_Type, &PyUnicode_Type, &PyBytes_Type, Py_TYPE(Py_None)};
  g_plain = g_simple;
  for (int i = 0; i < static_cast<int>(DType::kCount); ++i) g_plain.insert(numpy::scalar_type(static_cast<DType>(i)));
  for (PyTypeObject* t : {&PyTuple_Type, &PyList_Type, &PyDict_Type, &PySet_Type, &PyFrozenSet_Type, &PySlice_Type, &PyRange_Type,
                          &PyArray_Type, &PyMethod_Type, Py_TYPE(Py_Ellipsis), &PyCell_Type})
    g_plain.insert(t);
  g_plain.insert(iterator_type(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyRange_Type), "i", 1)));
  g_plain.insert(iterator_type(PyList_New(0)));
  g_plain.insert(iterator_type(PyTuple_New(0)));
}

struct Row {
  const char* name;
  CalleeKind kind;
  PyTypeObject* result;
};

void add_rows(PyObject* holder, std::initializer_list<Row> rows) {
  for (const Row& row : rows) {
    PyObject* callee = PyObject_GetAttrString(holder, row.name);
    if (!callee) {
      PyErr_Clear();
      continue;
    }
    g_callees[callee] = {row.kind, row.result, ArrayFn::none};  // keeps the reference for good
  }
}

void fill_builtins(PyObject* builtins) {
  using enum CalleeKind;
  add_rows(builtins, {{"len", quiet, &PyLong_Type},
                      {"range", quiet, &PyRange_Type},
                      {"abs", quiet, nullptr},
                      {"int", quiet, nullptr},
                      {"float", quiet, nullptr},
                      {"bool", quiet, &PyBool_Type},
                      {"min", quiet, nullptr},
                      {"max", quiet, nullptr},
                      {"ord", quiet, &PyLong_Type},
                      {"chr", quiet, &PyUnicode_Type},
                      {"divmod", quiet, &PyTuple_Type},
                      {"isinstance", quiet, &PyBool_Type},
                      {"callable", quiet, &PyBool_Type},
                      {"id", quiet, &PyLong_Type},
                      {"type", quiet, nullptr},
                      {"round", quiet, nullptr},
                      {"pow", quiet, nullptr},
                      {"locals", frame_reader, nullptr},
                      {"vars", frame_reader, nullptr},
                      {"dir", frame_reader, nullptr},
                      {"globals", frame_reader, nullptr},
                      {"eval", frame_reader, nullptr},
                      {"exec", frame_reader, nullptr},
                      {"super", frame_reader, nullptr},
                      {"breakpoint", frame_reader, nullptr}});
  add_rows(reinterpret_cast<PyObject*>(&PyList_Type), {{"append", quiet_write, nullptr},
                                                       {"pop", quiet_write, nullptr},
                                                       {"extend", unknown, nullptr},
                                                       {"reverse", quiet_write, nullptr},
                                                       {"clear", unknown, nullptr},
                                                       {"insert", quiet_write, nullptr},
                                                       {"copy", quiet, &PyList_Type}});
  add_rows(reinterpret_cast<PyObject*>(&PyDict_Type), {{"get", quiet, nullptr},
                                                       {"keys", quiet, nullptr},
                                                       {"values", quiet, nullptr},
                                                       {"items", quiet, nullptr},
                                                       {"copy", quiet, &PyDict_Type}});
  add_rows(reinterpret_cast<PyObject*>(&PyUnicode_Type), {{"upper", quiet, nullptr},
                                                          {"lower", quiet, nullptr},
                                                          {"strip", quiet, nullptr},
                                                          {"split", quiet, nullptr},
                                                          {"startswith", quiet, nullptr},
                                                          {"endswith", quiet, nullptr},
                                                          {"replace", quiet, nullptr},
                                                          {"find", quiet, nullptr},
                                                          {"isdigit", quiet, nullptr},
                                                          {"zfill", quiet, nullptr}});
}

void fill_numpy_methods() {
  using enum CalleeKind;
  auto* array = reinterpret_cast<PyObject*>(&PyArray_Type);
  for (const char* name : {"all",     "any",      "argmax",   "argmin", "argsort", "astype",    "clip",         "conj",    "copy",
                           "cumprod", "cumsum",   "diagonal", "dot",    "flatten", "item",      "max",          "mean",    "min",
                           "nonzero", "prod",     "ravel",    "repeat", "reshape", "round",     "searchsorted", "squeeze", "std",
                           "sum",     "swapaxes", "take",     "tolist", "trace",   "transpose", "var",          "tobytes"})
    add_rows(array, {{name, numpy_pure, nullptr}});
  for (const char* name : {"fill", "sort", "partition", "put"}) add_rows(array, {{name, numpy_write, nullptr}});
  add_rows(array, {{"resize", refcount, nullptr}});
}

// NumPy's own functions on plain arguments call nothing of the user's, except those that are given a function.
bool takes_callback(const char* name) {
  for (const char* one :
       {"vectorize", "apply_along_axis", "apply_over_axes", "piecewise", "fromfunction", "fromiter", "frompyfunc", "resize", "seterrcall",
        "setbufsize", "seterr", "errstate", "lookfor", "nditer", "save", "savez", "load", "savetxt", "loadtxt"})
    if (!std::strcmp(one, name)) return true;
  return false;
}

void fill_numpy_functions(PyObject* numpy) {
  PyObject *name, *value;
  Py_ssize_t pos = 0;
  PyObject* dict = PyModule_GetDict(numpy);
  while (PyDict_Next(dict, &pos, &name, &value)) {
    const char* text = PyUnicode_AsUTF8(name);
    const char* type = Py_TYPE(value)->tp_name;
    bool ufunc = PyObject_TypeCheck(value, &PyUFunc_Type);
    bool function = !std::strcmp(type, "numpy._ArrayFunctionDispatcher") || PyCFunction_Check(value) || PyFunction_Check(value);
    if ((!ufunc && !function) || takes_callback(text) || text[0] == '_') continue;
    static const std::unordered_set<std::string> writers = {"copyto", "place", "put", "putmask", "fill_diagonal", "put_along_axis"};
    CalleeFacts facts{writers.contains(text) ? CalleeKind::numpy_write : CalleeKind::numpy_pure, nullptr, ArrayFn::none};
    if (ufunc) {
      PyObject* own = PyObject_GetAttrString(value, "__name__");
      if (own) facts.fn = array_fn_by_name(PyUnicode_AsUTF8(own));
      Py_XDECREF(own);
      PyErr_Clear();
    } else if (!std::strcmp(text, "where")) {
      facts.fn = ArrayFn::where;
    }
    g_callees.try_emplace(Py_NewRef(value), facts);
  }
}

void fill_special(PyObject* sys) {
  add_rows(sys, {{"getrefcount", CalleeKind::refcount, nullptr}, {"_getframe", CalleeKind::frame_reader, nullptr}});
}

}  // namespace

bool is_plain_type(PyTypeObject* type) { return g_plain.contains(type); }
bool is_simple_type(PyTypeObject* type) { return g_simple.contains(type); }

CalleeFacts callee_facts(PyObject* callee) {
  auto found = g_callees.find(callee);
  return found == g_callees.end() ? CalleeFacts{} : found->second;
}

bool is_partial(PyObject* object) { return Py_IS_TYPE(object, g_partial); }

PyObject* partial_function(PyObject* partial) {
  PyObject* function = PyObject_GetAttr(partial, g_func_name);
  if (!function) PyErr_Clear();
  Py_XDECREF(function);  // the partial keeps it
  return function;
}

PyObject* class_call(PyTypeObject* type) {
  if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) || PyType_HasFeature(type, Py_TPFLAGS_HAVE_VECTORCALL)) return nullptr;
  PyObject* found = type->tp_call ? _PyType_Lookup(type, g_call_name) : nullptr;
  return found && PyFunction_Check(found) ? found : nullptr;
}

bool is_pure_array_attribute(const char* name) {
  static const std::unordered_set<std::string> names = {"shape",  "ndim",    "size", "T",    "dtype", "itemsize",
                                                        "nbytes", "strides", "real", "base", "mT"};
  return names.contains(name);
}

static bool find_partial() {
  PyObject* functools = PyImport_ImportModule("functools");
  g_partial = functools ? reinterpret_cast<PyTypeObject*>(PyObject_GetAttrString(functools, "partial")) : nullptr;
  Py_XDECREF(functools);
  g_func_name = PyUnicode_InternFromString("func");
  g_call_name = PyUnicode_InternFromString("__call__");
  return g_partial && g_func_name && g_call_name;
}

bool init_facts() {
  if (!find_partial()) return false;
  fill_types();
  PyObject* builtins = PyImport_ImportModule("builtins");
  PyObject* numpy = PyImport_ImportModule("numpy");
  PyObject* sys = PyImport_ImportModule("sys");
  if (!builtins || !numpy || !sys) return false;
  fill_builtins(builtins);
  fill_numpy_methods();
  fill_numpy_functions(numpy);
  fill_special(sys);
  Py_DECREF(builtins);
  Py_DECREF(numpy);
  Py_DECREF(sys);
  PyErr_Clear();
  return true;
}

bool init() { return init_instructions() && init_facts(); }

}  // namespace dalsegno::recorder
