// dalsegno._testing.persist: the names that objects have in the store, and the thread that writes there.
#include "replay/persist/persist.h"

#include <pybind11/pybind11.h>

#include <condition_variable>
#include <memory>
#include <mutex>

#include "replay/persist/writer.h"

namespace py = pybind11;

namespace dalsegno::replay {
namespace {

// An owned reference, or KeyError for null.
py::object to_python(PyObject* object) {
  if (object == nullptr) throw py::key_error("not found");
  return py::reinterpret_steal<py::object>(object);
}

// A job of the writer's that is done when a test says so.
class Held {
 public:
  Held() {
    write_later([held = held_] {
      std::unique_lock lock(held->mutex);
      held->changed.wait(lock, [&] { return held->released; });
    });
  }
  void release() {
    const std::lock_guard lock(held_->mutex);
    held_->released = true;
    held_->changed.notify_all();
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool released = false;
  };
  std::shared_ptr<State> held_ = std::make_shared<State>();
};

}  // namespace

void bind_persist(py::module_ m) {
  py::class_<Held>(m, "HeldWriter", "While one lives and has not been released, the writer does nothing else.")
      .def(py::init())
      .def("release", &Held::release);
  m.def("writing", &writing);
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
