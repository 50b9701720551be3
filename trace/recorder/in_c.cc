// What is written in C and looks at no frames itself: the interpreter's, the standard library's, NumPy's.
#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <sstream>
#include <string>
#include <unordered_set>
#include <utility>

#include "numpy/api.h"
#include "trace/recorder/facts.h"

namespace dalsegno::recorder {

std::unordered_set<std::string> words(const char* text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

const char* name_in(const PyTypeObject* type, const char* module) {
  const size_t length = std::strlen(module);
  return !std::strncmp(type->tp_name, module, length) && type->tp_name[length] == '.' ? type->tp_name + length + 1 : nullptr;
}

// Is it what its module, where that is imported, has under this name?
bool is_found_as(PyTypeObject* type, const char* module_name, const char* name) {
  PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), module_name);
  if (!module || !PyModule_CheckExact(module)) return false;
  return PyDict_GetItemString(PyModule_GetDict(module), name) == reinterpret_cast<PyObject*>(type);
}

namespace {

// Functions of these modules, written in C, look at no frames; of builtins those that are named.
constexpr const char* kModulesInC[] = {"_bisect", "_functools", "_heapq", "_operator", "_struct", "itertools", "math", "time"};
constexpr const char* kBuiltinsInC =
    "abs all any ascii bin bool bytearray bytes callable chr complex dict divmod enumerate filter float format frozenset getattr hasattr "
    "hash hex id int isinstance issubclass iter len list map max min next oct ord pow print range repr reversed round set setattr slice "
    "sorted str sum tuple zip";
std::unordered_set<PyObject*> g_in_c;  // builtins, held

// Objects that a look has told something of, each held for good; asked before every step that may run code.
class Known {
 public:
  bool has(PyObject* o) const { return slots_[slot(o)] == o || all_.contains(o); }
  void keep(PyObject* o) { slots_[slot(o)] = *all_.insert(Py_NewRef(o)).first; }

 private:
  static constexpr size_t kSlots = 64;
  static size_t slot(PyObject* o) { return reinterpret_cast<uintptr_t>(o) / 64 % kSlots; }
  std::array<PyObject*, kSlots> slots_{};  // those that were found last
  std::unordered_set<PyObject*> all_;
};

bool is_of_module_in_c(PyObject* callee) {
  static Known found_before;
  if (found_before.has(callee)) return true;
  PyObject* module = PyCFunction_CheckExact(callee) ? PyCFunction_GET_SELF(callee) : nullptr;
  if (!module || !PyModule_CheckExact(module)) return false;
  const char* name = PyModule_GetName(module);
  if (!name) return PyErr_Clear(), false;
  const bool known = std::any_of(std::begin(kModulesInC), std::end(kModulesInC), [&](const char* n) { return !std::strcmp(n, name); });
  if (!known || PyDict_GetItemString(PyImport_GetModuleDict(), name) != module) return false;
  return found_before.keep(callee), true;
}

// Neither do types of these modules, by themselves: whatever of the user's they run begins as Python code.
constexpr const char* kTypesInC[] = {"_io",
                                     "_random",
                                     "_struct",
                                     "_thread",
                                     "array",
                                     "collections",
                                     "datetime",
                                     "decimal",
                                     "functools",
                                     "itertools",
                                     "operator",
                                     "re",
                                     "numpy.random._generator",
                                     "numpy.random.mtrand"};

// Is it a method of the type's own, or of one in C that it is derived from?
bool is_method_in_c(PyTypeObject* type, const PyMethodDef* method) {
  if (is_type_in_c(type)) return true;
  for (PyTypeObject* base = type->tp_base; base; base = base->tp_base)
    for (const PyMethodDef* own = is_type_in_c(base) ? base->tp_methods : nullptr; own && own->ml_name; ++own)
      if (own == method) return true;
  return false;
}

}  // namespace

void init_in_c(PyObject* builtins) {
  for (const std::string& name : words(kBuiltinsInC))
    if (PyObject* callee = PyObject_GetAttrString(builtins, name.c_str())) g_in_c.insert(callee);
  PyErr_Clear();
}

bool is_type_in_c(PyTypeObject* type) {
  static Known found_before;
  static const PyTypeObject* not_found = nullptr;  // the last one of those that live for good
  if (type == not_found) return false;
  if (found_before.has(reinterpret_cast<PyObject*>(type))) return true;
  const bool has_module = std::strchr(type->tp_name, '.') != nullptr;
  if (!has_module && PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) return false;  // a class
  bool found = is_plain_type(type) && type != &PyMethod_Type && type != &PyArray_Type;
  for (size_t k = 0; has_module && !found && k < std::size(kTypesInC); ++k) {
    const char* name = name_in(type, kTypesInC[k]);
    found = name && is_found_as(type, kTypesInC[k], name);
  }
  if (found)
    found_before.keep(reinterpret_cast<PyObject*>(type));
  else if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE))
    not_found = type;
  return found;
}

// Types whose instances hold nothing else, have no weakrefs, and run nothing but their own code when they are computed with.
bool is_value_type_in_c(PyTypeObject* type) {
  static constexpr std::pair<const char*, const char*> kTypes[] = {{"decimal", "Decimal"}, {"datetime", "timedelta"}, {"datetime", "date"}};
  static std::array<PyTypeObject*, std::size(kTypes)> found_before{};  // held
  if (std::find(found_before.begin(), found_before.end(), type) != found_before.end()) return true;
  if (*type->tp_name != 'd') return false;  // (asked of everything)
  for (size_t k = 0; k < std::size(kTypes); ++k) {
    const char* name = name_in(type, kTypes[k].first);
    if (!name || std::strcmp(name, kTypes[k].second) != 0 || found_before[k] || !is_found_as(type, kTypes[k].first, name)) continue;
    found_before[k] = reinterpret_cast<PyTypeObject*>(Py_NewRef(type));
    return true;
  }
  return false;
}

// Cython's methods are functions of its own in their type's dict.
static bool is_function_in_c(PyTypeObject* type, PyObject* function) {
  static Known found_before;
  if (found_before.has(function)) return true;
  PyObject* value;
  for (Py_ssize_t at = 0; is_type_in_c(type) && type->tp_dict && PyDict_Next(type->tp_dict, &at, nullptr, &value);)
    if (value == function) return found_before.keep(function), true;
  return false;
}

bool is_builtin_in_c(PyObject* callee) { return g_in_c.contains(callee); }

bool looks_at_no_frames(PyObject* callee, PyObject* first) {
  if (Py_IS_TYPE(callee, &PyMethod_Type)) {
    PyObject* function = PyMethod_GET_FUNCTION(callee);
    return !PyFunction_Check(function) && is_function_in_c(Py_TYPE(PyMethod_GET_SELF(callee)), function);
  }
  if (PyCFunction_Check(callee)) {
    PyObject* self = PyCFunction_GET_SELF(callee);
    if (self && !PyModule_Check(self)) return is_method_in_c(Py_TYPE(self), reinterpret_cast<PyCFunctionObject*>(callee)->m_ml);
    return g_in_c.contains(callee) || is_of_module_in_c(callee);
  }
  if (Py_IS_TYPE(callee, &PyMethodDescr_Type)) return is_type_in_c(PyDescr_TYPE(callee));
  if (PyType_Check(callee)) return g_in_c.contains(callee) || is_type_in_c(reinterpret_cast<PyTypeObject*>(callee));
  return (first && is_function_in_c(Py_TYPE(first), callee)) || is_type_in_c(Py_TYPE(callee));
}

}  // namespace dalsegno::recorder
