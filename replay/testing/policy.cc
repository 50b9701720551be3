// dalsegno._testing.policy: verdicts of calls whose times a test says.
#include "replay/policy.h"

#include <pybind11/pybind11.h>

namespace py = pybind11;

namespace dalsegno::replay {
namespace {

// The next call, which takes so long by either way; which one it was.
std::string run(Lane& lane, double replay_ns, double eager_ns, bool settled, size_t replay_memory, size_t eager_memory) {
  const Way way = lane.next();
  const bool replays = way == Way::kReplay || way == Way::kTimeReplay;
  const Took took{replays ? replay_ns : eager_ns, false, 0, replays ? replay_memory : eager_memory};
  if (way == Way::kTimeReplay && !settled)
    lane.timed_early(way, took, false);
  else if (way == Way::kTimeReplay || way == Way::kTimeEager)
    lane.timed(way, took, false);
  return replays ? "replay" : "eager";
}

}  // namespace

void bind_policy(py::module_ m) {
  py::class_<Lane>(m, "Lane")
      .def(py::init([] { return Lane(0); }))
      .def("run", run, py::arg("replay_ns"), py::arg("eager_ns"), py::arg("settled") = true, py::arg("replay_memory") = 0,
           py::arg("eager_memory") = 0)
      .def("reset", &Lane::reset)
      .def("load_ns", [](const Lane& lane) { return lane.pace(false, true).load_ns; })
      .def_readonly("eager_wins", &Lane::eager_wins);
  m.def("calls_to_put_off", &Policy::calls_to_put_off, py::arg("cost"), py::arg("replay_ns"), py::arg("eager_ns"));
}

}  // namespace dalsegno::replay
