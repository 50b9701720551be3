// dalsegno._testing.segments: lets tests build a SegmentSpec and run it.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <map>

#include "replay/kernels/config.h"
#include "replay/kernels/table.h"
#include "replay/segment/runner.h"

namespace py = pybind11;

namespace dalsegno::replay {
namespace {

DType dtype_named(const std::string& name) {
  for (int i = 0; is_known(static_cast<DType>(i)); ++i) {
    if (name == dtype_name(static_cast<DType>(i))) return static_cast<DType>(i);
  }
  throw py::value_error("kernels do not know dtype " + name);
}

// ("array", dtype, rank), ("scalar", dtype), ("int",), ("float",), ("bool",)
SegmentInput make_input(const py::tuple& t) {
  static const std::map<std::string, InputKind> kinds = {{"array", InputKind::kArray},
                                                         {"scalar", InputKind::kScalar},
                                                         {"int", InputKind::kWeakInt},
                                                         {"float", InputKind::kWeakFloat},
                                                         {"bool", InputKind::kWeakBool}};
  SegmentInput input;
  input.kind = kinds.at(t[0].cast<std::string>());
  if (t.size() > 1) input.dtype = dtype_named(t[1].cast<std::string>());
  if (t.size() > 2) input.rank = t[2].cast<int>();
  return input;
}

// (function, operands, result dtype, rank, output)
SegmentOp make_op(const py::tuple& t) {
  SegmentOp op;
  op.fn = array_fn_by_name(t[0].cast<std::string>().c_str());
  op.operands = t[1].cast<std::vector<int>>();
  op.result = dtype_named(t[2].cast<std::string>());
  op.rank = t[3].cast<int>();
  op.output = t[4].cast<bool>();
  return op;
}

class Segment {
 public:
  Segment(const std::vector<py::tuple>& inputs, const std::vector<py::tuple>& ops) {
    SegmentSpec spec;
    for (const py::tuple& t : inputs) spec.inputs.push_back(make_input(t));
    for (const py::tuple& t : ops) spec.ops.push_back(make_op(t));
    for (const SegmentOp& op : spec.ops) outputs_ += op.output;
    n_inputs_ = spec.inputs.size();
    runner_ = SegmentRunner::make(spec);
  }

  bool usable() const { return runner_ != nullptr; }
  std::vector<std::pair<std::string, std::string>> kernels() const { return runner_->kernels(); }

  // A list of results, or the reason there are none.
  py::object run(const py::args& inputs) {
    if (inputs.size() != n_inputs_) throw py::value_error("wrong number of inputs");
    static constexpr const char* kResults[] = {"done", "not ready", "mismatch", "flags"};
    std::vector<PyObject*> in, out(outputs_);
    for (const py::handle& o : inputs) in.push_back(o.ptr());
    const RunResult result = runner_->run(in.data(), out.data());
    if (result != RunResult::kDone) return py::str(kResults[static_cast<int>(result)]);
    py::list results;
    for (PyObject* o : out) results.append(py::reinterpret_steal<py::object>(o));
    return results;
  }

  // Nanoseconds a run takes, least of `repeats` batches of `batch` runs.
  double time(int repeats, int batch, const py::args& inputs);

 private:
  std::unique_ptr<SegmentRunner> runner_;
  size_t outputs_ = 0, n_inputs_ = 0;
};

double Segment::time(int repeats, int batch, const py::args& inputs) {
  std::vector<PyObject*> in, out(outputs_);
  for (const py::handle& o : inputs) in.push_back(o.ptr());
  double best = -1;
  for (int r = 0; r < repeats; ++r) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < batch; ++i) {
      if (runner_->run(in.data(), out.data()) != RunResult::kDone) throw py::value_error("did not run");
      for (PyObject* o : out) Py_DECREF(o);
    }
    const double ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / batch;
    if (best < 0 || ns < best) best = ns;
  }
  return best;
}

}  // namespace

void bind_segments(py::module_ m) {
  py::class_<Segment>(m, "Segment")
      .def(py::init<const std::vector<py::tuple>&, const std::vector<py::tuple>&>(), py::arg("inputs"), py::arg("ops"))
      .def_property_readonly("usable", &Segment::usable)
      .def("kernels", &Segment::kernels)
      .def("time", &Segment::time)
      .def("run", &Segment::run);
  m.def("configure", &configure_kernels, py::arg("kernels"), py::arg("background"), py::arg("threads"));
  m.def("wait", &wait_for_compilers);
  m.def("launch_threads", &launch_threads);
  m.def("count_kernels", &count_kernels);
  m.def("keep_idle_kernels", &set_idle_kernels);
  m.def("assembles", [] { return halide_gen::processor_vectors() != halide_gen::Vectors::kNone; });
  m.def("widest_vectors", [] { return 128 << static_cast<int>(halide_gen::processor_vectors()); });
  m.def("compile_by_halide", &compile_by_halide);
  m.def("counters", [] {
    const KernelCounters c = kernel_counters();
    return py::dict(py::arg("launches") = c.launches, py::arg("compiled") = c.compiled, py::arg("loaded") = c.loaded);
  });
  m.def("environment", &kernel_environment);
}

}  // namespace dalsegno::replay
