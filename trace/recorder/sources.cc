#include "trace/recorder/sources.h"

#include <string_view>
#include <unordered_map>

#include "numpy/api.h"
#include "trace/recorder/facts.h"
#include "trace/recorder/text.h"

namespace dalsegno::recorder {

bool foldable(PyObject* o) {
  if (PyFunction_Check(o) || PyCFunction_Check(o) || PyModule_Check(o) || PyType_Check(o)) return true;
  if (PyObject_TypeCheck(o, &PyUFunc_Type) || Py_IS_TYPE(o, &PyMethodDescr_Type)) return true;
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

std::string Sources::within(PyObject* globals, const std::string& qualified_name, PyObject* object) const {
  std::string path = of_globals(globals), rest = qualified_name;
  if (path.empty()) return "";
  PyObject* found = nullptr;
  while (!rest.empty()) {
    size_t dot = rest.find('.');
    std::string part = rest.substr(0, dot);
    rest = dot == std::string::npos ? "" : rest.substr(dot + 1);
    PyObject* dict = !found ? globals : PyType_Check(found) ? reinterpret_cast<PyTypeObject*>(found)->tp_dict : nullptr;
    path += found ? ".attr(" + part + ")" : "[" + part + "]";
    found = dict ? PyDict_GetItemString(dict, part.c_str()) : nullptr;
    if (!found) return "";
  }
  return found == object ? path : "";
}

}  // namespace dalsegno::recorder
