// Source paths back to objects. Nothing here runs code of the user's: names are looked up in dicts, not asked for.
#include <algorithm>
#include <charconv>
#include <string_view>

#include "hook/attributes.h"
#include "hook/error_aside.h"
#include "replay/persist/errors.h"
#include "replay/persist/persist.h"
#include "replay/py_ref.h"
#include "trace/recorder/facts.h"

namespace dalsegno::replay {
namespace {

PyObject* borrowed_item(PyObject* dict, std::string_view name) {
  PyRef key(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
  return key ? PyDict_GetItemWithError(dict, key.get()) : nullptr;
}

PyRef tuple_item(PyObject* tuple, std::string_view index) {
  Py_ssize_t i = -1;
  const char* end = index.data() + index.size();
  if (tuple == nullptr || !PyTuple_CheckExact(tuple) || std::from_chars(index.data(), end, i).ptr != end) return {};
  return i >= 0 && i < PyTuple_GET_SIZE(tuple) ? PyRef::borrowed(PyTuple_GET_ITEM(tuple, i)) : PyRef();
}

// ---- steps --------------------------------------------------------------------------------------------------------------------

using Step = PyRef (*)(PyObject* object, std::string_view argument);

PyFunctionObject* as_function(PyObject* object) { return PyFunction_Check(object) ? reinterpret_cast<PyFunctionObject*>(object) : nullptr; }

PyRef globals(PyObject* object, std::string_view) {
  PyFunctionObject* f = as_function(object);
  return PyRef::borrowed(f ? f->func_globals : nullptr);
}
PyRef builtins(PyObject* object, std::string_view) {
  PyFunctionObject* f = as_function(object);
  return PyRef::borrowed(f ? f->func_builtins : nullptr);
}
PyRef code(PyObject* object, std::string_view) {
  PyFunctionObject* f = as_function(object);
  return PyRef::borrowed(f ? f->func_code : nullptr);
}
PyRef defaults(PyObject* object, std::string_view) {
  PyFunctionObject* f = as_function(object);
  return PyRef::borrowed(f ? f->func_defaults : nullptr);
}
PyRef kwdefaults(PyObject* object, std::string_view) {
  PyFunctionObject* f = as_function(object);
  return PyRef::borrowed(f ? f->func_kwdefaults : nullptr);
}
PyRef code_const(PyObject* object, std::string_view index) {
  return PyCode_Check(object) ? tuple_item(reinterpret_cast<PyCodeObject*>(object)->co_consts, index) : PyRef();
}
PyRef closure(PyObject* object, std::string_view index) {
  PyFunctionObject* f = as_function(object);
  PyRef cell = tuple_item(f ? f->func_closure : nullptr, index);
  return cell && PyCell_Check(cell.get()) ? PyRef::borrowed(PyCell_GET(cell.get())) : PyRef();
}
PyRef item(PyObject* object, std::string_view key) {
  if (PyDict_CheckExact(object)) return PyRef::borrowed(borrowed_item(object, key));
  return tuple_item(object, key);
}

// What a class's attribute is when asked for on the class, where that runs no code: functions, static and class methods of such,
// properties, what C types have.
PyRef bind_to_type(PyObject* found, PyObject* type) {
  PyTypeObject* kind = Py_TYPE(found);
  const bool plain = recorder::is_given_in_c(found) || kind == &PyClassMethod_Type || kind == &PyMemberDescr_Type ||
                     kind == &PyProperty_Type || dalsegno_named_item(reinterpret_cast<PyTypeObject*>(type), found) != 0;
  if (!plain) return {};
  return kind->tp_descr_get == nullptr ? PyRef::borrowed(found) : PyRef(kind->tp_descr_get(found, nullptr, type));
}

PyObject* find_in_mro(PyTypeObject* type, std::string_view name) {
  for (Py_ssize_t i = 0; type->tp_mro != nullptr && i < PyTuple_GET_SIZE(type->tp_mro); i++) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
#if PY_VERSION_HEX >= 0x030c0000
    PyRef dict(PyType_GetDict(base));
#else
    PyRef dict = PyRef::borrowed(base->tp_dict);
#endif
    PyObject* found = dict ? borrowed_item(dict.get(), name) : nullptr;
    if (found != nullptr) return found;
  }
  return nullptr;
}

PyRef attribute_of_module(PyObject* module, std::string_view name) {
  PyObject* dict = PyModule_GetDict(module);
  return PyRef::borrowed(name == "__dict__" ? dict : borrowed_item(dict, name));
}

PyRef attribute_of_type(PyObject* object, std::string_view name) {
  auto* type = reinterpret_cast<PyTypeObject*>(object);
  if (Py_TYPE(type)->tp_getattro != PyType_Type.tp_getattro) return {};
  PyObject* found = find_in_mro(type, name);
  return found ? bind_to_type(found, object) : PyRef();
}

// Of an ordinary instance: only what is in its own dict and not described by its class.
PyRef attribute_of_instance(PyObject* object, std::string_view name) {
  if (Py_TYPE(object)->tp_getattro != PyObject_GenericGetAttr || find_in_mro(Py_TYPE(object), name) != nullptr) return {};
  if (find_in_mro(Py_TYPE(object), "__dict__") == nullptr) return {};
  PyRef dict(PyObject_GenericGetDict(object, nullptr));
  return dict && PyDict_Check(dict.get()) ? PyRef::borrowed(borrowed_item(dict.get(), name)) : PyRef();
}

// What a function of NumPy's with a dispatcher before it runs.
PyRef attribute_of_dispatcher(PyObject* object, std::string_view name) {
  return name == "_implementation" ? PyRef(PyObject_GetAttrString(object, "_implementation")) : PyRef();
}

PyRef attribute_of_property(PyObject* object, std::string_view name) {
  return name == "fget" ? PyRef(PyObject_GetAttrString(object, "fget")) : PyRef();
}

PyRef attribute(PyObject* object, std::string_view name) {
  if (Py_IS_TYPE(object, &PyProperty_Type)) return attribute_of_property(object, name);
  if (std::string_view(Py_TYPE(object)->tp_name) == "numpy._ArrayFunctionDispatcher") return attribute_of_dispatcher(object, name);
  if (PyModule_CheckExact(object)) return attribute_of_module(object, name);
  if (PyType_Check(object)) return attribute_of_type(object, name);
  return attribute_of_instance(object, name);
}

struct Suffix {
  std::string_view open, close;
  Step step;
};
constexpr Suffix kSuffixes[] = {
    {".globals", "", globals},       {".builtins", "", builtins},  {".code", "", code},         {".defaults", "", defaults},
    {".kwdefaults", "", kwdefaults}, {".const[", "]", code_const}, {".closure[", "]", closure}, {"[", "]", item},
    {".attr(", ")", attribute}};

// One step along the path; what it used up is taken off.
PyRef take_step(PyObject* object, std::string_view* path) {
  for (const Suffix& suffix : kSuffixes) {
    if (!path->starts_with(suffix.open)) continue;
    path->remove_prefix(suffix.open.size());
    if (suffix.close.empty()) return suffix.step(object, {});
    const size_t end = path->find(suffix.close);
    if (end == std::string_view::npos) return {};
    const std::string_view argument = path->substr(0, end);
    path->remove_prefix(end + suffix.close.size());
    return suffix.step(object, argument);
  }
  return {};
}

// ---- where a path begins --------------------------------------------------------------------------------------------------------

PyRef imported(std::string_view name) {
  PyRef text(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
  PyRef module(text ? PyImport_GetModule(text.get()) : nullptr);
  return module && PyModule_CheckExact(module.get()) ? std::move(module) : PyRef();
}

}  // namespace

// "numpy.random.Generator": the longest imported module, then attributes.
PyRef type_named(std::string_view name) {
  for (size_t dot = name.rfind('.'); dot != std::string_view::npos && dot > 0; dot = name.rfind('.', dot - 1)) {
    PyRef object = imported(name.substr(0, dot));
    std::string_view rest = name.substr(dot);
    while (object && !rest.empty()) {
      rest.remove_prefix(1);
      object = attribute(object.get(), rest.substr(0, rest.find('.')));
      rest.remove_prefix(std::min(rest.find('.'), rest.size()));
    }
    if (object && PyType_Check(object.get())) return object;
  }
  return {};
}

namespace {

bool take_prefix(std::string_view* path, std::string_view prefix) {
  if (!path->starts_with(prefix)) return false;
  path->remove_prefix(prefix.size());
  return true;
}

// A dotted name ends where a step that can follow a module or a type begins.
std::string_view take_name(std::string_view* path) {
  const std::string_view name = path->substr(0, std::min(path->find(".attr("), path->find('[')));
  path->remove_prefix(name.size());
  return name;
}

PyRef take_base(std::string_view* path, PyObject* self) {
  if (take_prefix(path, "self")) return PyRef::borrowed(self);
  if (take_prefix(path, "type:")) return type_named(take_name(path));
  if (take_prefix(path, "module:")) return imported(take_name(path));
  if (!take_prefix(path, "const:")) return {};
  PyRef constant(decode_literal(std::string(*path)));
  *path = {};
  return constant;
}

}  // namespace

PyObject* (*companion_kept)(PyObject*, PyObject*) = [](PyObject*, PyObject*) -> PyObject* { return nullptr; };

PyObject* fetch(const ObjectRef& ref, PyObject* self_function, PyObject* callable) {
  constexpr std::string_view kJitted = ".jitted";
  const hook::ErrorAside keep;
  std::string_view path = ref.source;
  const bool jitted = path.ends_with(kJitted);
  if (jitted) path.remove_suffix(kJitted.size());
  PyRef object = take_base(&path, self_function);
  PyRef globals;  // of the last function on the way
  while (object) {
    if (PyFunctionObject* function = as_function(object.get())) globals = PyRef::borrowed(function->func_globals);
    if (path.empty()) break;
    object = take_step(object.get(), &path);
  }
  if (jitted && object) {
    const bool stands_for_it = object.get() == self_function;
    const bool has = as_function(object.get()) || (PyCode_Check(object.get()) && globals);
    object = stands_for_it ? PyRef::borrowed(callable) : PyRef(has ? companion_kept(object.get(), globals.get()) : nullptr);
  }
  drop_error();
  if (!object || ref.fingerprint.empty() || fingerprint(object.get()) != ref.fingerprint) return nullptr;
  return object.release();
}

}  // namespace dalsegno::replay
