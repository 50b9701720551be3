// dalsegno._core: the extension module. Everything Python reaches in C++ is bound here or in a bind_x.cc beside it.
#include <pybind11/eval.h>
#include <pybind11/pybind11.h>

#include "hook/hook.h"
#include "numpy/api.h"
#include "numpy/elide.h"
#include "replay/arrays.h"
#include "replay/describe.h"
#include "replay/door.h"
#include "replay/forks.h"
#include "replay/jit.h"
#include "replay/kernels/config.h"
#include "replay/kernels/native_code.h"
#include "replay/kernels/table.h"
#include "replay/persist/store.h"
#include "replay/resident.h"
#include "replay/settings.h"
#include "replay/typed/operators.h"
#include "trace/fault.h"
#include "trace/recorder/recorder.h"

namespace py = pybind11;

namespace dalsegno::replay {

void bind_encoder(py::module_& m);
void bind_store(py::module_& m);

namespace {

py::object take(PyObject* object) {
  if (!object) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(object);
}

py::object jit(py::object function, bool full_graph, const std::string&, const std::string&, bool store) {
  return take(make_jit(function.ptr(), {full_graph, store}));
}

// The kernels' settings travel together.
struct {
  bool kernels = true, background = true;
  int threads = 0;
} g_kernels;

void wait() {
  wait_for_compilers();
  wait_for_store();
}

std::string assembly(const std::string& ir) {
  std::string error, text = native_assembly(ir, &error);
  if (text.empty()) throw std::runtime_error(error);
  return text;
}

// A path's bytes, as os.fsencode gives them.
std::string path_of(const py::object& value) {
  PyObject* bytes = nullptr;
  if (!PyUnicode_FSConverter(value.ptr(), &bytes)) throw py::error_already_set();
  return py::reinterpret_steal<py::bytes>(bytes);
}

// What is still to be kept goes where it was meant to go.
void switch_store(const std::string& path) {
  if (!store_in_use(path)) wait();
  use_store(path);
}

struct Row {
  const char* name;
  void (*set)(const py::object& value);
};
const Row kSettings[] = {
    {"disable", [](const py::object& v) { settings().enabled = !v.cast<bool>(); }},
    {"store", [](const py::object& v) { switch_store(path_of(v)); }},
    {"threads", [](const py::object& v) { g_kernels.threads = v.cast<int>(); }},
    {"hot_exit", [](const py::object& v) { settings().hot_exit = v.cast<int>(); }},
    {"max_ops", [](const py::object& v) { settings().max_ops = v.cast<int>(); }},
    {"max_depth", [](const py::object& v) { settings().max_depth = v.cast<int>() + 1; }},
    {"max_traces", [](const py::object& v) { settings().max_traces = v.cast<int>(); }},
    {"kernels", [](const py::object& v) { settings().kernels = g_kernels.kernels = v.cast<bool>(); }},
    {"inner_loops", [](const py::object& v) { settings().inner_loops = v.cast<int>(); }},
    {"native", [](const py::object& v) { settings().native = v.cast<bool>(); }},
    {"assemble", [](const py::object& v) { settings().assemble = v.cast<bool>(); }},
    {"vector_bits", [](const py::object& v) { settings().vector_bits = v.cast<int>(); }},
    {"refine", [](const py::object& v) { settings().refine = v.cast<bool>(); }},
    {"hot_loop", [](const py::object& v) { settings().hot_loop = v.cast<int>(); }},
    {"record", [](const py::object& v) { settings().record = v.cast<bool>(); }},
    {"background", [](const py::object& v) { g_kernels.background = v.cast<bool>(); }},
    {"step_aside", [](const py::object& v) { settings().step_aside = v.cast<bool>(); }},
    {"fault", [](const py::object& v) { plant(v.cast<std::string>()); }},
};

void configure(const std::string& name, const py::object& value) {
  for (const Row& row : kSettings) {
    if (name != row.name) continue;
    row.set(value);
    configure_kernels(g_kernels.kernels, g_kernels.background, g_kernels.threads);
    return;
  }
  throw py::value_error("unknown setting " + name);
}

// A recording that another thread was making when the process forked goes on in the parent alone.
void forget_recordings() {
  if (!hook::forget_watch_after_fork()) return;
  for (Tree* tree : trees()) tree->forget_recording();
}

void clear() {
  // From the last one on: finalisers may make jitted functions, which come behind, and drop some, so that others move up.
  for (size_t i = trees().size(); i-- > 0;)
    if (i < trees().size()) trees()[i]->clear();
}

py::object type_of_iterator(py::object iterable) { return py::type::of(py::iter(iterable)); }

// Types that have no name of their own in Python: traces' sources name them here (sources.cc).
void name_types(py::module_& m) {
  m.attr("range_iterator") = type_of_iterator(py::eval("range(0)"));
  m.attr("list_iterator") = type_of_iterator(py::list());
  m.attr("tuple_iterator") = type_of_iterator(py::tuple());
}

py::dict versions() {
  py::dict d;
  d["python"] = PY_VERSION;
  d["compiler"] = __VERSION__;
  return d;
}

std::string cpu_features() {
  std::string text;
#if defined(__x86_64__)
  __builtin_cpu_init();
#define FEATURE(name) \
  if (__builtin_cpu_supports(name)) text += text.empty() ? name : " " name
  FEATURE("sse4.2");
  FEATURE("avx");
  FEATURE("avx2");
  FEATURE("fma");
  FEATURE("avx512f");
  FEATURE("avx512dq");
  FEATURE("avx512bw");
  FEATURE("avx512vl");
#undef FEATURE
#endif
  return text;
}

}  // namespace
}  // namespace dalsegno::replay

PYBIND11_MODULE(_core, m) {
  using namespace dalsegno;
  using namespace dalsegno::replay;
  m.doc() = "Dal Segno's record-replay machine; dalsegno/ is the interface to it.";
  if (!hook::init() || !numpy::init() || !recorder::init() || !jit_type()) throw py::error_already_set();
  numpy::init_elision();
  be_ready_to_throw();
  take_over_memory();
  typed::g_converts_to_complex = PY_VERSION_HEX < 0x030e0000;
  make_resident();
  kernel_environment();  // asks the processor, which takes a virtual machine 10 us a question
  m.attr("JitFunction") = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(jit_type()));
  name_types(m);
  m.def("jit", &jit, py::arg("function"), py::arg("full_graph") = false, py::arg("mode") = "exact", py::arg("device") = "cpu",
        py::arg("store") = true);
  m.def("stats", [] { return take(describe_counters(process_counters())); });
  m.def("wait", &wait);
  m.def("assembly", &assembly);
  py::module_::import("atexit").attr("register")(py::cpp_function(&wait_for_store));
  around_python_forks({[] {}, [] {}, forget_recordings});
  set_kernel_cache(&store_kernel_cache());
  m.def("clear", &clear);
  m.def("set_enabled", [](bool on) { settings().enabled = on; });
  m.def("enabled", [] { return settings().enabled; });
  m.def("configure", &configure);
  m.def("versions", &versions);
  m.def("cpu_features", &cpu_features);
  bind_encoder(m);
  bind_store(m);
}
