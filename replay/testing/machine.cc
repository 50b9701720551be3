// dalsegno._testing.machine: lets tests build traces by hand, lower them, run them and look at what comes out.
#include "replay/machine/machine.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>

#include "replay/kernels/native_code.h"
#include "replay/settings.h"
#include "trace/fault.h"

namespace py = pybind11;

namespace dalsegno::replay {
namespace {

OpKind kind_by_name(const std::string& name) {
  for (int k = 0; k < static_cast<int>(OpKind::kCount); ++k)
    if (name == op_name(static_cast<OpKind>(k))) return static_cast<OpKind>(k);
  throw py::value_error("no op kind " + name);
}

// Trace <- dict; see tests/machine_traces.py for the form.
class Builder {
 public:
  explicit Builder(const py::dict& d) : live_(std::make_unique<LiveTrace>()) {
    Trace& t = live_->data;
    object(d["self"]);
    t.number = d["number"].cast<int>();
    t.anchor = static_cast<AnchorKind>(d["anchor"].cast<int>());
    t.parent = get(d, "parent", -1);
    t.parent_op = get(d, "parent_op", -1);
    t.parent_exit = get(d, "parent_exit", 0);
    for (py::handle s : d["snapshots"]) t.snapshots.add(snapshot(s));
    if (d.contains("entry")) t.entry = snapshot(d["entry"]);
    for (py::handle o : d["ops"]) op(o.cast<py::dict>());
    if (d.contains("folded"))
      for (py::handle f : d["folded"]) folded(f.cast<py::tuple>());
  }
  std::unique_ptr<LiveTrace> take() { return std::move(live_); }

 private:
  static int get(const py::dict& d, const char* key, int otherwise) { return d.contains(key) ? d[key].cast<int>() : otherwise; }
  int object(py::handle o) {
    for (size_t i = 0; i < live_->objects.size(); ++i)
      if (live_->objects[i] == o.ptr()) return static_cast<int>(i);
    live_->objects.push_back(Py_NewRef(o.ptr()));
    live_->data.objects.emplace_back();
    return static_cast<int>(live_->objects.size()) - 1;
  }
  int object_at(const py::dict& d, const char* key) { return d.contains(key) ? object(d[key]) : -1; }
  int name(const std::string& text) {
    live_->data.names.push_back(text);
    live_->names.push_back(PyUnicode_InternFromString(text.c_str()));
    return static_cast<int>(live_->names.size()) - 1;
  }
  Snapshot snapshot(py::handle frames) {
    Snapshot s;
    for (py::handle h : frames) {
      auto d = h.cast<py::dict>();
      SnapshotFrame f;
      f.function = d["function"].cast<int>();
      f.code = object_at(d, "code");
      f.offset = d["offset"].cast<int>();
      f.after = get(d, "after", 0);
      f.action = get(d, "action", 0);
      for (py::handle v : d["locals"]) f.locals.push_back(v.is_none() ? kNull : v.cast<int>());
      for (py::handle v : d["stack"]) f.stack.push_back(v.is_none() ? kNull : v.cast<int>());
      s.frames.push_back(std::move(f));
    }
    return s;
  }
  void op(const py::dict& d) {
    Trace& t = live_->data;
    Op op;
    op.kind = kind_by_name(d["kind"].cast<std::string>());
    if (op.kind == OpKind::param) t.n_params++;
    if (d.contains("fn")) op.fn = array_fn_by_name(d["fn"].cast<std::string>().c_str());
    op.effects = static_cast<uint32_t>(get(d, "effects", static_cast<int>(op_effects(op.kind))));
    op.imm = d.contains("imm_object") ? object(d["imm_object"]) : get(d, "imm", 0);
    op.object = object_at(d, "object");
    op.object2 = object_at(d, "object2");
    if (d.contains("name")) op.name = name(d["name"].cast<std::string>());
    op.first_input = static_cast<int>(t.inputs.size());
    if (d.contains("in"))
      for (py::handle v : d["in"]) t.inputs.push_back(v.cast<int>());
    op.n_inputs = static_cast<int>(t.inputs.size()) - op.first_input;
    op.snapshot = get(d, "snapshot", -1);
    op.exit_snapshot = get(d, "exit_snapshot", -1);
    op.at = get(d, "at", -1);
    if (d.contains("facts")) {
      auto f = d["facts"].cast<std::pair<int, int>>();
      op.facts = static_cast<int>(t.facts.size());
      t.facts.push_back({static_cast<DType>(f.first), f.second});
    }
    t.ops.push_back(op);
  }
  void folded(const py::tuple& f) {
    Folded made;
    made.dict = object(f[0]);
    made.name = name(f[1].cast<std::string>());
    made.value = f.size() > 2 ? object(f[2]) : -1;
    live_->data.folded.push_back(made);
  }

  std::unique_ptr<LiveTrace> live_;
};

py::list objects(PyObject** from, size_t n) {
  py::list out;
  for (size_t i = 0; i < n; ++i) out.append(from[i] ? py::reinterpret_borrow<py::object>(from[i]) : py::object(py::ellipsis()));
  return out;
}

// A tree of programs. Unbound slots are shown as Ellipsis.
class Tree {
 public:
  // Returns the trace's number.
  int add(const py::dict& d) {
    auto live = Builder(d).take();
    std::string wrong = verify(live->data);
    if (!wrong.empty()) throw py::value_error(wrong);
    Exit* parent = nullptr;
    if (live->data.parent >= 0) parent = find_exit(live->data.parent, live->data.parent_op, live->data.parent_exit);
    int number = live->data.number;
    auto program = Program::lower(std::move(live), parent, &programs_);
    if (!program) throw py::value_error("cannot be lowered");
    if (parent) parent->side = program.get();
    programs_.push_back(std::move(program));
    return number;
  }

  py::dict run(int number, const py::tuple& params) {
    FrameState state;
    Exit* exit = nullptr;
    py::object value = once(number, params, &exit, &state);
    py::dict d;
    d["outcome"] = outcome_ == Outcome::kReturned ? "returned" : outcome_ == Outcome::kLeft ? "left" : "refused";
    if (outcome_ == Outcome::kReturned) d["value"] = value;
    if (outcome_ != Outcome::kLeft) return d;
    d["trace"] = exit->owner->trace().data.number;
    d["op"] = exit->op;
    d["which"] = exit->which;
    d["raised"] = state.raised ? py::reinterpret_borrow<py::object>(state.raised) : py::none();
    py::list frames;
    for (size_t i = 0; i < state.images.size(); ++i) {
      const hook::FrameImage& image = state.images[i];
      py::dict f;
      f["function"] = py::reinterpret_borrow<py::object>(state.functions[i]);
      f["offset"] = image.offset;
      f["after"] = image.after;
      f["locals"] = objects(image.locals, static_cast<size_t>(image.stack - image.locals));
      f["stack"] = objects(image.stack, static_cast<size_t>(image.depth));
      frames.append(f);
    }
    d["frames"] = frames;
    return d;
  }

  // As a call: runs, and lets the interpreter go on where the trace is left.
  py::object call(int number, const py::tuple& params) {
    FrameState state;
    Exit* exit = nullptr;
    py::object value = once(number, params, &exit, &state);
    if (outcome_ == Outcome::kReturned) return value;
    if (outcome_ == Outcome::kRefused) throw py::value_error("refused");
    PyObject* v = state.resume();
    if (!v) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(v);
  }

  // Many runs whose outcome does not matter: for timing, and for counting references.
  void repeat(int number, const py::tuple& params, int times) {
    for (int i = 0; i < times; ++i) {
      FrameState state;
      Exit* exit = nullptr;
      once(number, params, &exit, &state);
    }
  }

  py::list exits(int number) {
    py::list out;
    for (const Exit& e : find(number).exits()) {
      py::dict d;
      d["op"] = e.op;
      d["which"] = e.which;
      d["count"] = e.count;
      d["side"] = e.side ? py::object(py::int_(e.side->trace().data.number)) : py::object(py::none());
      out.append(d);
    }
    return out;
  }

  size_t segments(int number) { return find(number).segments().size(); }

 private:
  Program& find(int number) {
    for (auto& p : programs_)
      if (p->trace().data.number == number) return *p;
    throw py::value_error("no such trace");
  }
  Exit* find_exit(int number, int op, int which) {
    for (Exit& e : find(number).exits())
      if (e.op == op && e.which == which) return &e;
    throw py::value_error("no such exit");
  }
  py::object once(int number, const py::tuple& params, Exit** exit, FrameState* state) {
    PyObject* result = nullptr;
    std::vector<PyObject*> args;
    for (py::handle p : params) args.push_back(p.ptr());
    outcome_ = replay::run(find(number), args.data(), &result, exit, state);
    return outcome_ == Outcome::kReturned ? py::reinterpret_steal<py::object>(result) : py::none();
  }

  std::vector<std::unique_ptr<Program>> programs_;
  Outcome outcome_ = Outcome::kReturned;
};

}  // namespace

void bind_machine(py::module_ m) {
  py::class_<Tree>(m, "Tree")
      .def(py::init<>())
      .def("add", &Tree::add)
      .def("run", &Tree::run)
      .def("call", &Tree::call)
      .def("repeat", &Tree::repeat)
      .def("exits", &Tree::exits)
      .def("segments", &Tree::segments);
  m.def("set_fault", [](const std::string& name) {
    if (!plant(name)) throw py::value_error("no such fault");
  });
  m.def("faults", &faults);
  m.def("force_exit", &force_native_exit);
  m.def("native", [] {
    const NativeCounters c = native_counters();
    return py::make_tuple(c.regions, c.instructions, c.forced);
  });
  m.def("native_times", [] {
    const NativeTimes t = native_times();
    return py::make_tuple(t.compiled, t.loaded, t.milliseconds, t.longest);
  });
  m.def("set_kernels", [](bool on) { settings().kernels = on; });
  m.def("counters", [] {
    MachineCounters c = g_machine_counters;
    py::dict d;
    d["steps"] = c.steps;
    d["exits"] = c.exits;
    d["guard_failures"] = c.guard_failures;
    d["growing"] = c.growing;
    d["in_place"] = c.in_place;
    return d;
  });
}

}  // namespace dalsegno::replay
