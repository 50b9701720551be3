// What must be the same about an object: one row per kind of object, first match.
#include <algorithm>
#include <map>
#include <vector>

#include "hook/error_aside.h"
#include "replay/persist/errors.h"
#include "replay/persist/persist.h"
#include "replay/py_ref.h"
#include "store/sha256.h"
#include "trace/recorder/facts.h"

namespace dalsegno::replay {
namespace {

constexpr size_t kLongLiteral = 300;  // longer ones are kept by hash

std::string text_of(PyObject* object) {
  const char* text = object != nullptr && PyUnicode_Check(object) ? PyUnicode_AsUTF8(object) : nullptr;
  drop_error();
  return text == nullptr ? "" : text;
}

std::string hash(const std::string& text) { return store::hex(store::sha256(text)); }

// (PyDict_GetItemString() keeps to itself that memory has run out.)
std::string text_item(PyObject* dict, const char* name) {
  PyRef key(PyUnicode_FromString(name));
  return text_of(key ? PyDict_GetItemWithError(dict, key.get()) : nullptr);
}

std::string text_attribute(PyObject* object, const char* name) { return text_of(PyRef(PyObject_GetAttrString(object, name)).get()); }

// ---- versions of what is written in C -----------------------------------------------------------------------------------------

bool is_standard(const std::string& top) {
  PyObject* names = PySys_GetObject("stdlib_module_names");  // borrowed
  PyRef name(PyUnicode_FromString(top.c_str()));
  return names != nullptr && name && PySequence_Contains(names, name.get()) == 1;
}

std::string distribution_version(const std::string& top) {
  PyRef metadata(PyImport_ImportModule("importlib.metadata"));
  PyRef version(metadata ? PyObject_CallMethod(metadata.get(), "version", "s", top.c_str()) : nullptr);
  return text_of(version.get());
}

std::string find_version(const std::string& top) {
  if (top == "dalsegno" || is_standard(top)) return PY_VERSION;  // dalsegno's own build is in the function's key
  PyRef name(PyUnicode_FromString(top.c_str()));
  PyRef module(name ? PyImport_GetModule(name.get()) : nullptr);
  PyObject* dict = module && PyModule_Check(module.get()) ? PyModule_GetDict(module.get()) : nullptr;
  const std::string version = dict == nullptr ? "" : text_item(dict, "__version__");
  return version.empty() ? distribution_version(top) : version;
}

// "" if the version of what this module belongs to cannot be told.
std::string version_of(const std::string& module) {
  static std::map<std::string, std::string> known;
  const std::string top = module.substr(0, module.find('.'));
  if (top.empty()) return "";
  if (const auto found = known.find(top); found != known.end()) return found->second;
  const std::string version = find_version(top);
  drop_error();
  return known[top] = version;
}

std::string c_object(const std::string& module, const std::string& name) {
  const std::string version = version_of(module);
  return version.empty() || name.empty() ? "" : "c:" + module + "." + name + ":" + version;
}

// ---- functions ----------------------------------------------------------------------------------------------------------------

// Defaults that are no simple constants are read again on every replay; whether there are any is part of the function.
std::string simple_or_mark(PyObject* object) {
  std::string text;
  if (object == nullptr) return "none";
  return encode_literal(object, &text) ? text : "?";
}

std::string defaults_text(PyObject* defaults) {
  if (defaults == nullptr) return "none";
  std::string text;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(defaults); i++) text += simple_or_mark(PyTuple_GET_ITEM(defaults, i)) + "\n";
  return text;
}

std::string kwdefaults_text(PyObject* kwdefaults) {
  if (kwdefaults == nullptr || !PyDict_CheckExact(kwdefaults)) return "none";
  std::vector<std::string> items;
  PyObject *name, *value;
  for (Py_ssize_t i = 0; PyDict_Next(kwdefaults, &i, &name, &value);) items.push_back(text_of(name) + "=" + simple_or_mark(value));
  std::sort(items.begin(), items.end());
  std::string text;
  for (const std::string& item : items) text += item + "\n";
  return text;
}

std::string function(PyObject* object) {
  auto* f = reinterpret_cast<PyFunctionObject*>(object);
  const std::string code = code_hash(reinterpret_cast<PyCodeObject*>(f->func_code));
  if (code.empty()) return "";
  return "function:" + hash(code + "\n" + defaults_text(f->func_defaults) + "\n" + kwdefaults_text(f->func_kwdefaults));
}

std::string code(PyObject* object) {
  const std::string hash = code_hash(reinterpret_cast<PyCodeObject*>(object));
  return hash.empty() ? "" : "code:" + hash;
}

std::string type(PyObject* object);

// A method bound to an instance of a class: what it does to whatever instance of that class is found in its place.
std::string bound(PyObject* self, const std::string& method) {
  if (!PyType_HasFeature(Py_TYPE(self), Py_TPFLAGS_HEAPTYPE)) return "";
  const std::string of = type(reinterpret_cast<PyObject*>(Py_TYPE(self)));
  return of.empty() || method.empty() ? "" : "bound:" + method + " of " + of;
}
std::string bound_method(PyObject* object) {
  PyObject* called = PyMethod_GET_FUNCTION(object);
  return PyFunction_Check(called) ? bound(PyMethod_GET_SELF(object), function(called)) : "";
}

// A function of a module, written in C, or a method of an object.
std::string builtin(PyObject* object) {
  PyObject* self = PyCFunction_GET_SELF(object);
  if (self != nullptr && !PyModule_Check(self)) return bound(self, reinterpret_cast<PyCFunctionObject*>(object)->m_ml->ml_name);
  const std::string module = text_of(reinterpret_cast<PyCFunctionObject*>(object)->m_module);
  return c_object(module, text_attribute(object, "__qualname__"));
}

std::string type_name(PyTypeObject* type, std::string* module) {
  *module = text_attribute(reinterpret_cast<PyObject*>(type), "__module__");
  return text_attribute(reinterpret_cast<PyObject*>(type), "__qualname__");
}

// A method of a type in C.
std::string method(PyObject* object) {
  std::string module;
  const std::string name = type_name(PyDescr_TYPE(object), &module);
  return c_object(module, name + "." + text_of(PyDescr_NAME(object)));
}

// A slot of a class's instances.
std::string slot(PyObject* object) {
  std::string module;
  const std::string name = type_name(PyDescr_TYPE(object), &module);
  return "slot:" + module + "." + name + "." + text_of(PyDescr_NAME(object));
}

// It says what it is made of: the item's number, and a text about it.
std::string named_item(PyObject* object) {
  std::string text;
  PyRef parts(PyObject_CallMethod(object, "__reduce__", nullptr));
  const bool known = parts && PyTuple_CheckExact(parts.get()) && PyTuple_GET_SIZE(parts.get()) == 2;
  return known && encode_literal(PyTuple_GET_ITEM(parts.get(), 1), &text) ? "named item:" + text : "";
}

// A ufunc knows its name only: it is what numpy has under that name, or unknown.
std::string ufunc(PyObject* object) {
  const std::string name = text_attribute(object, "__name__");
  PyRef numpy_name(PyUnicode_FromString("numpy"));
  PyRef numpy(PyImport_GetModule(numpy_name.get()));
  PyRef found(numpy ? PyObject_GetAttrString(numpy.get(), name.c_str()) : nullptr);
  return found.get() == object ? c_object("numpy", name) : "";
}

std::string dispatcher(PyObject* object) { return c_object(text_attribute(object, "__module__"), text_attribute(object, "__qualname__")); }

// A jitted function is as good as the function it wraps.
std::string jitted(PyObject* object) {
  PyRef wrapped(PyObject_GetAttrString(object, "_plain"));
  const std::string inner = wrapped && PyFunction_Check(wrapped.get()) ? function(wrapped.get()) : "";
  return inner.empty() ? "" : "jit:" + inner;
}

// ---- modules, types, dicts ------------------------------------------------------------------------------------------------------

std::string module(PyObject* object) {
  const std::string name = text_item(PyModule_GetDict(object), "__name__");
  return name.empty() ? "" : "module:" + name;
}

std::string globals(PyObject* dict) {
  const std::string name = text_item(dict, "__name__");
  return name.empty() ? "" : "globals:" + name;
}

std::string property(PyObject* object) {
  std::string text = "property";
  for (const char* name : {"fget", "fset", "fdel"}) {
    PyRef inner(PyObject_GetAttrString(object, name));
    text += std::string(" ") + (inner && PyFunction_Check(inner.get()) ? function(inner.get()) : "");
  }
  return text;
}

// An entry of a class's dict: what it does, or for things without content of their own what it is.
std::string class_entry(PyObject* value) {
  std::string text;
  if (PyFunction_Check(value)) return function(value);
  if (encode_literal(value, &text)) return text;
  if (Py_IS_TYPE(value, &PyStaticMethod_Type) || Py_IS_TYPE(value, &PyClassMethod_Type)) {
    PyRef inner(PyObject_GetAttrString(value, "__func__"));
    return std::string(Py_TYPE(value)->tp_name) + " " + (inner && PyFunction_Check(inner.get()) ? function(inner.get()) : "");
  }
  if (Py_IS_TYPE(value, &PyProperty_Type)) return property(value);
  return Py_TYPE(value)->tp_name;
}

bool says_where_not_what(const std::string& name) {  // line numbers, and per-process links
  return name == "__firstlineno__" || name == "__weakref__" || name == "__dict__" || name == "__abc_impl__" || name == "_abc_impl";
}

std::string class_dict(PyTypeObject* type) {
  PyRef dict(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__dict__"));  // a read-only view
  PyRef copy(dict ? PyDict_New() : nullptr);
  if (!copy || PyDict_Update(copy.get(), dict.get()) < 0) return "";
  std::vector<std::string> entries;
  PyObject *name, *value;
  for (Py_ssize_t i = 0; PyDict_Next(copy.get(), &i, &name, &value);) {
    if (!says_where_not_what(text_of(name))) entries.push_back(text_of(name) + " = " + class_entry(value));
  }
  std::sort(entries.begin(), entries.end());
  std::string text;
  for (const std::string& entry : entries) text += std::to_string(entry.size()) + ":" + entry;
  return text;
}

// A class written in Python: its bases by name, and its own content and theirs as far as it is Python's too.
std::string class_content(PyTypeObject* type) {
  std::string text = Py_TYPE(type)->tp_name;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); i++) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    std::string module;
    const std::string name = type_name(base, &module);
    text += "\n" + module + "." + name + " ";
    text += PyType_HasFeature(base, Py_TPFLAGS_HEAPTYPE) && !PyType_HasFeature(base, Py_TPFLAGS_IMMUTABLETYPE) ? class_dict(base)
                                                                                                               : version_of(module);
  }
  return hash(text);
}

std::string described_type(PyTypeObject* type) {
  if (Py_TYPE(type)->tp_getattro != PyType_Type.tp_getattro) return "";  // a metaclass whose own code would run
  std::string module;
  const std::string name = type_name(type, &module);
  if (module.empty() || name.empty()) return "";
  const bool python = PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && !PyType_HasFeature(type, Py_TPFLAGS_IMMUTABLETYPE);
  const std::string what = python ? class_content(type) : version_of(module);
  return what.empty() ? "" : "type:" + module + "." + name + ":" + what;
}

// Types that C code has in its own memory stay what they are, and where they are.
std::string type(PyObject* object) {
  static std::map<PyTypeObject*, std::string> known;
  auto* type = reinterpret_cast<PyTypeObject*>(object);
  if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) return described_type(type);
  const auto [at, added] = known.try_emplace(type);
  if (added) at->second = described_type(type);
  return at->second;
}

bool is_named(PyObject* object, const char* type) { return std::string_view(Py_TYPE(object)->tp_name) == type; }

struct Kind {
  bool (*is)(PyObject* object);
  std::string (*fingerprint)(PyObject* object);
};
const Kind kKinds[] = {
    {[](PyObject* o) { return PyFunction_Check(o) != 0; }, function},
    {[](PyObject* o) { return PyCode_Check(o) != 0; }, code},
    {[](PyObject* o) { return PyModule_CheckExact(o) != 0; }, module},
    {[](PyObject* o) { return PyDict_CheckExact(o) != 0; }, globals},
    {[](PyObject* o) { return PyType_Check(o) != 0; }, type},
    {[](PyObject* o) { return PyCFunction_CheckExact(o) != 0; }, builtin},
    {[](PyObject* o) { return Py_IS_TYPE(o, &PyMethod_Type) != 0; }, bound_method},
    {[](PyObject* o) { return Py_IS_TYPE(o, &PyMethodDescr_Type) || Py_IS_TYPE(o, &PyWrapperDescr_Type); }, method},
    {[](PyObject* o) { return Py_IS_TYPE(o, &PyMemberDescr_Type) != 0; }, slot},
    {[](PyObject* o) { return Py_IS_TYPE(o, &PyProperty_Type) != 0; }, property},
    {[](PyObject* o) { return is_named(o, "_collections._tuplegetter"); }, named_item},
    {[](PyObject* o) { return is_named(o, "numpy.ufunc"); }, ufunc},
    {recorder::is_no_value, [](PyObject*) { return "no value:" + version_of("numpy"); }},
    {[](PyObject* o) { return is_named(o, "numpy._ArrayFunctionDispatcher"); }, dispatcher},
    {[](PyObject* o) { return is_named(o, "dalsegno._core.JitFunction"); }, jitted},
};

std::string find_fingerprint(PyObject* object) {
  std::string literal;
  if (encode_literal(object, &literal)) return "const:" + (literal.size() <= kLongLiteral ? literal : "sha256:" + hash(literal));
  for (const Kind& kind : kKinds) {
    if (kind.is(object)) return kind.fingerprint(object);
  }
  return "";
}

}  // namespace

std::string fingerprint(PyObject* object) {
  const hook::ErrorAside keep;
  std::string text = find_fingerprint(object);
  drop_error();
  return text;
}

}  // namespace dalsegno::replay
