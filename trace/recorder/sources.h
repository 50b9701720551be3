// Where objects are found again, in this process or another (replay/persist/persist.h reads it): "self.globals[np].attr(sqrt)".
#pragma once
#include <Python.h>

#include <string>

namespace dalsegno::recorder {

// True for objects that a global or a module's attribute is folded to: functions, classes, modules, ufuncs and the like.
bool foldable(PyObject* object);

// Of a plain type. Types without a name of their own are attributes of the extension module.
std::string type_path(PyTypeObject* type);
// Of an attribute; "" if its owner has none.
std::string attr_path(const std::string& owner, PyObject* name);

// Sources that start at the jitted function, which outlives this. "": there is none. Plain look-ups only.
class Sources {
 public:
  explicit Sources(PyFunctionObject* root) : root_(root) {}
  std::string of_globals(PyObject* globals) const;
  static std::string of_builtin(PyObject* function);  // written in C, of a module
  static std::string of_module(PyObject* module);     // "": not the one that importing its name gives
  std::string of_builtins(PyObject* builtins) const { return builtins == root_->func_builtins ? "self.builtins" : ""; }
  // A function or class found by its module and qualified name, if that leads back to it.
  std::string by_name(PyObject* object) const;
  // Of the code of a function that may have been made by a call: among the constants of the code around it, or of a function that the
  // jitted one closes over.
  std::string of_code(PyFunctionObject* function) const;

 private:
  PyObject* found_in(PyObject* globals, const std::string& qualified_name, std::string* path) const;
  std::string within(PyObject* globals, const std::string& qualified_name, PyObject* object) const;
  PyFunctionObject* root_;
};

}  // namespace dalsegno::recorder
