// dalsegno._testing: what tests reach that Python otherwise does not. Development builds alone have it. Its code is linked into
// _core's library, whose file has a second name for it: the modules share the one state of the process, and _core's code is the code
// that is installed.
#include <pybind11/pybind11.h>

#include "hook/testing.h"

namespace py = pybind11;

namespace dalsegno::replay {

void bind_machine(py::module_ m);
void bind_segments(py::module_ m);
void bind_numpy_functions(py::module_ m);
void bind_persist(py::module_ m);
void bind_policy(py::module_ m);

}  // namespace dalsegno::replay

PYBIND11_MODULE(_testing, m) {
  using namespace dalsegno;
  m.doc() = "What tests reach of Dal Segno's inside.";
  replay::bind_machine(m.def_submodule("machine", "Traces built by hand."));
  replay::bind_segments(m.def_submodule("segments", "Array segments."));
  replay::bind_numpy_functions(m.def_submodule("numpy_functions", "How NumPy's functions are done."));
  replay::bind_persist(m.def_submodule("persist", "The names of objects in the store."));
  replay::bind_policy(m.def_submodule("policy", "Verdicts of calls whose times a test says."));
  if (!hook::bind_testing(m.def_submodule("hook", "hook.h").ptr())) throw py::error_already_set();
}
