#define DALSEGNO_SEGMENT_IMPORTS_NUMPY
#include "replay/segment_numpy.h"

#include <iterator>

namespace dalsegno::replay {
namespace {

struct NumPy {
  bool usable = false;
  PyObject* module = nullptr;      // numpy
  PyObject* get_extobj = nullptr;  // numpy._core.umath._get_extobj_dict
  PyArray_Descr* descriptors[static_cast<int>(DType::kCount)] = {};
};

bool import_apis() { return PyArray_ImportNumPyAPI() >= 0 && PyUFunc_ImportUFuncAPI() >= 0; }

NumPy import_all() {
  NumPy n;
  PyObject *type, *value, *traceback;  // keep the caller's exception, drop ours
  PyErr_Fetch(&type, &value, &traceback);
  if (import_apis()) {
    n.module = PyImport_ImportModule("numpy");
    PyObject* umath = PyImport_ImportModule("numpy._core.umath");
    n.get_extobj = umath ? PyObject_GetAttrString(umath, "_get_extobj_dict") : nullptr;
    Py_XDECREF(umath);
    for (int i = 0; i < static_cast<int>(DType::kCount); ++i) n.descriptors[i] = PyArray_DescrFromType(type_number(static_cast<DType>(i)));
    n.usable = n.module && n.get_extobj;
  }
  PyErr_Restore(type, value, traceback);
  return n;
}

const NumPy& numpy() {
  static const NumPy n = import_all();
  return n;
}

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

bool numpy_ready() { return numpy().usable; }

int type_number(DType dtype) {
  static constexpr int kNumbers[] = {NPY_BOOL, NPY_INT32, NPY_INT64, NPY_FLOAT, NPY_DOUBLE};
  return kNumbers[static_cast<int>(dtype)];
}

PyArray_Descr* descriptor(DType dtype) { return numpy().descriptors[static_cast<int>(dtype)]; }

PyTypeObject* scalar_type(DType dtype) { return descriptor(dtype)->typeobj; }

InnerLoop inner_loop(ArrayFn fn, DType loop, DType result) {
  InnerLoop found;
  PyObject* function = numpy_ready() ? PyObject_GetAttrString(numpy().module, array_fn_name(fn)) : nullptr;
  if (!function) return PyErr_Clear(), found;
  if (PyObject_TypeCheck(function, &PyUFunc_Type)) {
    const auto* ufunc = reinterpret_cast<PyUFuncObject*>(function);
    const int width = ufunc->nargs;
    for (int i = 0; i < ufunc->ntypes && !found.function; ++i) {
      const char* types = ufunc->types + static_cast<ptrdiff_t>(i) * width;
      bool same = ufunc->nout == 1 && types[width - 1] == type_number(result);
      for (int k = 0; k + 1 < width; ++k) same = same && types[k] == type_number(loop);
      if (same) found = {ufunc->functions[i], ufunc->data ? const_cast<void*>(static_cast<const void*>(ufunc->data[i])) : nullptr};
    }
  }
  Py_DECREF(function);  // NumPy's module keeps it
  return found;
}

bool errstate_ignores(int flags) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* settings = PyObject_CallNoArgs(numpy().get_extobj);
  bool ignored = settings && PyDict_Check(settings);
  for (const Handled& h : kHandled) {
    if (ignored && (flags & h.flag)) ignored = is_ignored(settings, h.name);
  }
  Py_XDECREF(settings);
  PyErr_Restore(type, value, traceback);
  return ignored;
}

std::string numpy_version() {
  PyObject* version = numpy_ready() ? PyObject_GetAttrString(numpy().module, "__version__") : nullptr;
  const char* text = version ? PyUnicode_AsUTF8(version) : nullptr;
  std::string out = text ? text : "";
  Py_XDECREF(version);
  PyErr_Clear();
  return out;
}

}  // namespace dalsegno::replay
