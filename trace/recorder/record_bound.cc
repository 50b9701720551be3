// Methods written in C that are bound to objects: self.getrandbits, append = xs.append. Where it is known what they do they are called as
// their descriptors are, with the object as the first argument.
#include "trace/recorder/facts.h"
#include "trace/recorder/recorder.h"
#include "trace/recorder/sources.h"

namespace dalsegno::recorder {

// The attribute is a method of what is on top, which its type has at `path`: makes a bound one.
bool Recorder::bound_attr(PyObject* name, PyObject* found, const std::string& path) {
  if (!found || !Py_IS_TYPE(found, &PyMethodDescr_Type) || !is_known_method(found)) return false;
  const ValueId self = top();
  const ValueId method = constant(found, attr_path(path, name));
  const ValueId bound = emit(OpKind::bind_method, {method, self}, {.snapshot = false});
  made_of_method(bound, method, self);
  push_loaded(bound, kNull, false);
  return true;
}

// Where it is not known which method the callee is, that is guarded.
bool Recorder::unbind(ValueId* callee, PyObject** live, Arguments* arguments) {
  if (is_constant(*callee) || is_dead(*callee) || !PyCFunction_CheckExact(*live)) return false;
  PyObject* descriptor = descriptor_of(*live);
  if (!descriptor || !is_known_method(descriptor)) return false;
  PyObject* self = PyCFunction_GET_SELF(*live);
  ValueId method = info(*callee).made ? info(*callee).method : kNull, bound_to = kNull;
  if (method != kNull) {
    bound_to = info(*callee).items[0];
  } else {
    PyTypeObject* type = PyDescr_TYPE(descriptor);
    const std::string of = is_plain_type(type) ? type_path(type) : sources_.by_name(reinterpret_cast<PyObject*>(type));
    const std::string path = of.empty() ? "" : attr_path(of, PyDescr_NAME(descriptor));
    emit(OpKind::guard_builtin, {*callee}, {.object = object_index(descriptor, path)});
    method = constant(descriptor, path);
    bound_to = emit(OpKind::method_self, {*callee}, {.snapshot = false});
    made_of_method(*callee, method, bound_to);
  }
  arguments->values.insert(arguments->values.begin(), bound_to);
  arguments->live.insert(arguments->live.begin(), self);
  *callee = method;
  *live = descriptor;
  return true;
}

}  // namespace dalsegno::recorder
