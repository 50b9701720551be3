#define DALSEGNO_IMPORT_NUMPY
#include "numpy/api.h"

#include "numpy/errstate.h"

namespace dalsegno::numpy {
namespace {

PyObject* g_module = nullptr;

}  // namespace

bool init() {
  if (_import_array() < 0 || _import_umath() < 0) return false;
  if (!g_module) g_module = PyImport_ImportModule("numpy");
  return g_module && init_errstate();
}

PyObject* module() { return g_module; }

std::string version() {
  PyObject* version = PyObject_GetAttrString(g_module, "__version__");
  const char* text = version && PyUnicode_Check(version) ? PyUnicode_AsUTF8(version) : nullptr;
  std::string out = text ? text : "";
  Py_XDECREF(version);
  PyErr_Clear();
  return out;
}

}  // namespace dalsegno::numpy
