// Methods that are bound to objects: self.getrandbits, append = xs.append, rng.normal where `rng` is also a module's name (CPython loads no
// method then: is_import_originated() of compile.c). Where it is known what they do they are called as what their class has, with the
// object as the first argument.
#include "numpy/random.h"
#include "trace/recorder/facts.h"
#include "trace/recorder/recorder.h"
#include "trace/recorder/sources.h"

namespace dalsegno::recorder {

// What a class has that is bound as a method, and is known: a descriptor, or a function of Python's or Cython's.
static bool binds(PyObject* found) {
  return PyFunction_Check(found) || numpy::is_random_method(found) || (Py_IS_TYPE(found, &PyMethodDescr_Type) && is_known_method(found));
}

// The attribute is a method of what is on top, which its type has at `path`: makes a bound one.
bool Recorder::bound_attr(PyObject* name, PyObject* found, const std::string& path) {
  if (!found || !binds(found)) return false;
  const ValueId self = top();
  const ValueId method = constant(found, attr_path(path, name));
  const ValueId bound = emit(OpKind::bind_method, {method, self}, {.snapshot = false});
  made_of_method(bound, method, self);
  push_loaded(bound, kNull, false);
  return true;
}

// Null: it is no method, or it is not known what it does.
static PyObject* method_in_class(PyObject* callee) {
  if (PyMethod_Check(callee)) return binds(PyMethod_GET_FUNCTION(callee)) ? PyMethod_GET_FUNCTION(callee) : nullptr;
  PyObject* descriptor = PyCFunction_CheckExact(callee) ? descriptor_of(callee) : nullptr;
  return descriptor && is_known_method(descriptor) ? descriptor : nullptr;
}

// Where it is not known which method the callee is, that is guarded.
bool Recorder::unbind(ValueId* callee, PyObject** live, Arguments* arguments) {
  if (is_constant(*callee) || is_dead(*callee)) return false;
  PyObject* descriptor = method_in_class(*live);
  if (!descriptor) return false;
  PyObject* self = PyMethod_Check(*live) ? PyMethod_GET_SELF(*live) : PyCFunction_GET_SELF(*live);
  ValueId method = info(*callee).made ? info(*callee).method : kNull, bound_to = kNull;
  if (method != kNull) {
    bound_to = info(*callee).items[0];
  } else if (PyFunction_Check(descriptor)) {
    return false;  // (it is gone through: call_method)
  } else {
    const bool cython = PyMethod_Check(*live);
    PyTypeObject* type = cython ? Py_TYPE(self) : PyDescr_TYPE(descriptor);
    PyObject* name = cython ? PyObject_GetAttrString(descriptor, "__name__") : Py_NewRef(PyDescr_NAME(descriptor));
    const std::string of = is_plain_type(type) ? type_path(type) : sources_.by_name(reinterpret_cast<PyObject*>(type));
    const std::string path = of.empty() || !name ? "" : attr_path(of, name);
    PyErr_Clear();
    Py_XDECREF(name);
    emit(OpKind::guard_builtin, {*callee}, {.object = object_index(descriptor, path)});
    method = constant(descriptor, path);
    bound_to = emit(OpKind::method_self, {*callee}, {.snapshot = false});
    made_of_method(*callee, method, bound_to);
    if (cython && !know(bound_to, self)) return false;
  }
  arguments->values.insert(arguments->values.begin(), bound_to);
  arguments->live.insert(arguments->live.begin(), self);
  *callee = method;
  *live = descriptor;
  return true;
}

}  // namespace dalsegno::recorder
