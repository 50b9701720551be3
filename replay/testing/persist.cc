// dalsegno._testing.persist: the names that objects have in the store.
#include "replay/persist/persist.h"

#include <pybind11/pybind11.h>

namespace py = pybind11;

namespace dalsegno::replay {
namespace {

// An owned reference, or KeyError for null.
py::object to_python(PyObject* object) {
  if (object == nullptr) throw py::key_error("not found");
  return py::reinterpret_steal<py::object>(object);
}

}  // namespace

void bind_persist(py::module_ m) {
  m.def("function_key", [](py::handle f) { return function_key(f.ptr()); });
  m.def("fingerprint", [](py::handle object) { return fingerprint(object.ptr()); });
  m.def("fetch", [](const std::string& source, const std::string& fingerprint, py::handle self) {
    return to_python(fetch({source, fingerprint}, self.ptr()));
  });
  m.def("encode_literal", [](py::handle object) -> py::object {
    std::string text;
    return encode_literal(object.ptr(), &text) ? py::object(py::bytes(text)) : py::none();
  });
  m.def("decode_literal", [](const py::bytes& text) { return to_python(decode_literal(text)); });
}

}  // namespace dalsegno::replay
