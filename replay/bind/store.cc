// The store as Python sees it: _core.store_*.
#include "replay/persist/store.h"

#include <pybind11/pybind11.h>

#include "hook/hook.h"

namespace py = pybind11;

namespace dalsegno::replay {
namespace {

// SQLite's values as Python's. Text that is no UTF-8 (names may be anything) keeps its bytes as surrogates.
struct ToPython {
  py::object operator()(std::monostate) const { return py::none(); }
  py::object operator()(int64_t n) const { return py::int_(n); }
  py::object operator()(double x) const { return py::float_(x); }
  py::object operator()(const std::string& text) const {
    PyObject* object = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
    if (object == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(object);
  }
  py::object operator()(const store::Blob& blob) const { return py::bytes(blob.bytes); }
};

// Of messages: they quote paths and what stands in the file, which may be any bytes.
py::str told(const std::string& text) {
  PyObject* object = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
  if (object == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(object);
}

py::list query(const std::string& sql) {
  store::QueryResult result;
  {
    py::gil_scoped_release released;
    result = connected_store().query(sql);
  }
  if (!result.error.empty()) {
    PyErr_SetObject(PyExc_ValueError, told(result.error).ptr());
    throw py::error_already_set();
  }
  py::list rows;
  for (const auto& row : result.rows) {
    py::tuple values(row.size());
    for (size_t i = 0; i < row.size(); i++) values[i] = std::visit(ToPython(), row[i]);
    rows.append(values);
  }
  return rows;
}

template <class Call>
auto without_gil(Call call) {
  const hook::ThreadGuard guard;
  py::gil_scoped_release released;
  return call();
}

py::dict stats() {
  const store::Stats s = without_gil([] { return connected_store().stats(); });
  py::dict d;
  d["functions"] = s.functions, d["traces"] = s.traces, d["kernels"] = s.kernels, d["bytes"] = s.bytes;
  d["hits"] = s.hits, d["misses"] = s.misses, d["saves"] = s.saves, d["evictions"] = s.evictions;
  d["damaged"] = s.damaged, d["errors"] = s.errors;
  return d;
}

// Asked for by a person, so that a fault is no miss but an error.
[[noreturn]] void fail() {
  PyErr_SetObject(PyExc_OSError, told(connected_store().why()).ptr());
  throw py::error_already_set();
}

py::dict verify() {
  const store::VerifyResult result = without_gil([] { return connected_store().verify(); });
  if (!result.complete) fail();
  py::dict d;
  d["rows"] = result.rows, d["damaged"] = result.damaged;
  return d;
}

void clear() {
  const bool ok = without_gil([] { return connected_store().path().empty() || connected_store().clear(); });
  if (!ok) fail();
}

void gc() {
  const bool ok = without_gil([] { return connected_store().path().empty() || connected_store().gc(); });
  if (!ok) fail();
}

}  // namespace

void bind_store(py::module_& m) {
  m.def(
      "store_open",
      [](py::handle path) {
        PyObject* bytes = nullptr;
        if (!PyUnicode_FSConverter(path.ptr(), &bytes)) throw py::error_already_set();
        const std::string file = py::reinterpret_steal<py::bytes>(bytes);
        without_gil([&] {
          use_store(file);
          connected_store();
        });
      },
      py::arg("path"), "Uses this file from now on (\"\": the default place, \"off\": none).");
  m.def("store_close", [] { without_gil([] { use_store("off"); }); });
  m.def("store_path", [] {
    const std::string path = without_gil([] { return connected_store().path(); });
    PyObject* object = PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size()));
    if (object == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(object);
  });
  m.def(
      "store_why", [] { return told(without_gil([] { return connected_store().why(); })); },
      "Why the store's last operation failed, or \"\".");
  m.def("store_query", &query, py::arg("sql"), "Rows of one statement that only reads; ValueError with SQLite's message.");
  m.def("store_stats", &stats);
  m.def("store_verify", &verify, "Checks every row's sum and deletes the bad ones.");
  m.def("store_gc", &gc, "Drops what was used longest ago beyond the cap, and gives space back.");
  m.def("store_clear", &clear);
  set_kernel_cache(&store_kernel_cache());
}

}  // namespace dalsegno::replay
