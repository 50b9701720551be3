#include "trace/recorder/sources.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "numpy/api.h"
#include "trace/recorder/facts.h"
#include "trace/recorder/text.h"

namespace dalsegno::recorder {

bool foldable(PyObject* o) {
  if (PyFunction_Check(o) || PyCFunction_Check(o) || PyModule_Check(o) || PyType_Check(o)) return true;
  if (is_no_value(o) || PyObject_TypeCheck(o, &PyUFunc_Type) || Py_IS_TYPE(o, &PyMethodDescr_Type)) return true;
  if (std::string_view(Py_TYPE(o)->tp_name) == "dalsegno._core.JitFunction") return true;
  return callee_facts(o).kind != CalleeKind::unknown || std::string(Py_TYPE(o)->tp_name) == "numpy._ArrayFunctionDispatcher";
}

std::string type_path(PyTypeObject* type) {
  static const std::unordered_map<std::string, std::string> unnamed = {
      {"NoneType", "type:types.NoneType"},
      {"ellipsis", "type:types.EllipsisType"},
      {"method", "type:types.MethodType"},
      {"cell", "type:types.CellType"},
      {"module", "type:types.ModuleType"},
      {"generator", "type:types.GeneratorType"},
      {"range_iterator", "module:dalsegno._core.attr(range_iterator)"},
      {"list_iterator", "module:dalsegno._core.attr(list_iterator)"},
      {"tuple_iterator", "module:dalsegno._core.attr(tuple_iterator)"},
  };
  std::string name = type->tp_name;
  if (auto found = unnamed.find(name); found != unnamed.end()) return found->second;
  return "type:" + (name.find('.') == std::string::npos ? "builtins." + name : name);
}

std::string attr_path(const std::string& owner, PyObject* name) {
  const char* text = utf8_of(name);
  return owner.empty() || !text ? "" : owner + ".attr(" + text + ")";
}

std::string Sources::of_module(PyObject* module) {
  PyObject* name = PyDict_GetItemString(PyModule_GetDict(module), "__name__");
  const char* text = name && PyUnicode_CheckExact(name) ? utf8_of(name) : nullptr;
  PyObject* found = text ? PyImport_GetModule(name) : nullptr;
  const bool same = found == module;
  Py_XDECREF(found);
  PyErr_Clear();
  return same ? std::string("module:") + text : "";
}

std::string Sources::of_builtin(PyObject* function) {
  if (!PyCFunction_CheckExact(function)) return "";
  const auto* f = reinterpret_cast<PyCFunctionObject*>(function);
  PyObject* module = f->m_self && PyModule_Check(f->m_self) ? f->m_self : nullptr;
  PyObject* found = module ? PyDict_GetItemString(PyModule_GetDict(module), f->m_ml->ml_name) : nullptr;
  const std::string path = found == function ? of_module(module) : "";
  return path.empty() ? "" : path + ".attr(" + f->m_ml->ml_name + ")";
}

std::string Sources::of_globals(PyObject* globals) const {
  if (globals == root_->func_globals) return "self.globals";
  PyObject* name = PyDict_GetItemString(globals, "__name__");
  const char* text = utf8_of(name);
  PyObject* module = text && PyUnicode_CheckExact(name) ? PyImport_GetModule(name) : nullptr;
  std::string path;
  if (module && PyModule_Check(module) && PyModule_GetDict(module) == globals) path = std::string("module:") + text + ".attr(__dict__)";
  Py_XDECREF(module);
  PyErr_Clear();
  return path;
}

std::string Sources::by_name(PyObject* object) const {
  if (PyFunction_Check(object)) {
    auto* function = reinterpret_cast<PyFunctionObject*>(object);
    const char* name = utf8_of(function->func_qualname);
    return name ? within(function->func_globals, name, object) : "";
  }
  if (!PyType_Check(object) || !PyType_HasFeature(reinterpret_cast<PyTypeObject*>(object), Py_TPFLAGS_HEAPTYPE)) return "";
  auto* type = reinterpret_cast<PyHeapTypeObject*>(object);
  PyObject* module_name = PyDict_GetItemString(type->ht_type.tp_dict, "__module__");
  const char* name = utf8_of(type->ht_qualname);
  if (!name) return "";
  PyObject* module = module_name && PyUnicode_CheckExact(module_name) ? PyImport_GetModule(module_name) : nullptr;
  // A script or a cell that was run by exec has globals that are no module's.
  std::string path = within(root_->func_globals, name, object);
  if (path.empty() && module && PyModule_Check(module)) path = within(PyModule_GetDict(module), name, object);
  Py_XDECREF(module);
  PyErr_Clear();
  return path;
}

// What the name stands for there, borrowed, and how it was found; null if it is none.
PyObject* Sources::found_in(PyObject* globals, const std::string& qualified_name, std::string* path) const {
  *path = of_globals(globals);
  std::string rest = qualified_name;
  if (path->empty()) return nullptr;
  PyObject* found = nullptr;
  while (!rest.empty()) {
    size_t dot = rest.find('.');
    std::string part = rest.substr(0, dot);
    rest = dot == std::string::npos ? "" : rest.substr(dot + 1);
    PyObject* dict = !found ? globals : PyType_Check(found) ? reinterpret_cast<PyTypeObject*>(found)->tp_dict : nullptr;
    *path += found ? ".attr(" + part + ")" : "[" + part + "]";
    found = dict ? PyDict_GetItemString(dict, part.c_str()) : nullptr;
    if (!found) return nullptr;
  }
  return found;
}

std::string Sources::within(PyObject* globals, const std::string& qualified_name, PyObject* object) const {
  std::string path;
  return found_in(globals, qualified_name, &path) == object ? path : "";
}

namespace {

constexpr int kMostNesting = 4;  // functions in functions, wrappers around wrappers

// Where `code` is `outer` or stands among its constants, and theirs.
std::string within_code(PyObject* outer, const std::string& path, PyObject* code, int depth = 0) {
  if (outer == code) return path;
  PyObject* constants = reinterpret_cast<PyCodeObject*>(outer)->co_consts;
  for (Py_ssize_t i = 0; depth < kMostNesting && i < PyTuple_GET_SIZE(constants); ++i) {
    PyObject* constant = PyTuple_GET_ITEM(constants, i);
    if (!PyCode_Check(constant)) continue;
    std::string found = within_code(constant, path + ".const[" + std::to_string(i) + "]", code, depth + 1);
    if (!found.empty()) return found;
  }
  return "";
}

// The same of a function, and of those it closes over.
std::string within_function(PyFunctionObject* function, const std::string& path, PyObject* code, int depth = 0) {
  std::string found = within_code(function->func_code, path + ".code", code);
  const Py_ssize_t cells = found.empty() && function->func_closure && depth < kMostNesting ? PyTuple_GET_SIZE(function->func_closure) : 0;
  for (Py_ssize_t i = 0; found.empty() && i < cells; ++i) {
    PyObject* held = PyCell_GET(PyTuple_GET_ITEM(function->func_closure, i));
    if (held && PyFunction_Check(held))
      found = within_function(reinterpret_cast<PyFunctionObject*>(held), path + ".closure[" + std::to_string(i) + "]", code, depth + 1);
  }
  return found;
}

}  // namespace

std::string Sources::of_code(PyFunctionObject* function) const {
  PyObject* code = function->func_code;
  if (std::string named = by_name(reinterpret_cast<PyObject*>(function)); !named.empty()) return named + ".code";
  if (std::string found = within_function(root_, "self", code); !found.empty()) return found;
  const char* name = utf8_of(function->func_qualname);  // "maker.<locals>.made"
  std::string outermost = name ? name : "", path;
  outermost.resize(std::min(outermost.find(".<locals>"), outermost.size()));
  PyObject* maker = found_in(function->func_globals, outermost, &path);
  const bool plain = maker && PyFunction_Check(maker);
  return plain ? within_code(reinterpret_cast<PyFunctionObject*>(maker)->func_code, path + ".code", code) : "";
}

}  // namespace dalsegno::recorder
