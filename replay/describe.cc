#include "replay/describe.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "replay/kernels/table.h"

namespace py = pybind11;

namespace dalsegno::replay {
namespace {

struct CounterRow {
  const char* name;
  uint64_t Counters::*field;
};
constexpr CounterRow kRows[] = {
    {"calls", &Counters::calls},
    {"recordings", &Counters::recordings},
    {"replays", &Counters::replays},
    {"eager_calls", &Counters::eager_calls},
    {"exits", &Counters::exits},
    {"side_traces", &Counters::side_traces},
    {"guard_failures", &Counters::guard_failures},
    {"steps", &Counters::steps},
    {"kernel_launches", &Counters::kernel_launches},
    {"kernels_compiled", &Counters::kernels_compiled},
    {"kernels_assembled", &Counters::kernels_assembled},
    {"kernels_loaded", &Counters::kernels_loaded},
    {"traces_loaded", &Counters::traces_loaded},
    {"store_errors", &Counters::store_errors},
    {"loops_entered", &Counters::loops_entered},
};

bool is_guard(OpKind kind) { return std::string(op_name(kind)).rfind("guard_", 0) == 0; }

// Which code object an op's line belongs to: that of the innermost frame of its snapshot, else of the op before it.
class Places {
 public:
  explicit Places(const LiveTrace& live) : live_(live) {}
  PyCodeObject* of(const Op& op) {
    if (op.snapshot >= 0) {
      const auto& frames = live_.data.snapshots.frames;
      int32_t depth = 0, frame = live_.data.snapshots.tops[op.snapshot];
      for (int32_t i = frame; frames[i].outer >= 0; i = frames[i].outer) ++depth;
      for (; depth > op.depth; --depth) frame = frames[frame].outer;
      code_ = reinterpret_cast<PyCodeObject*>(live_.objects[frames[frame].code]);
    }
    return code_;
  }

 private:
  const LiveTrace& live_;
  PyCodeObject* code_ = nullptr;
};

py::list describe_ops(const Program& program, const std::map<int, int>& segment_of) {
  const LiveTrace& live = program.trace();
  const Trace& t = live.data;
  Places places(live);
  py::list ops;
  std::map<int, int> exit_of;
  auto& exits = const_cast<Program&>(program).exits();
  for (size_t i = 0; i < exits.size(); ++i) exit_of.try_emplace(exits[i].op, static_cast<int>(i));
  for (size_t i = 0; i < t.ops.size(); ++i) {
    const Op& op = t.ops[i];
    py::dict d;
    d["kind"] = op_name(op.kind);
    d["text"] = print_op(t, static_cast<int>(i));
    d["line"] = op.line;
    d["depth"] = op.depth;
    PyCodeObject* code = places.of(op);
    d["file"] = code ? py::reinterpret_borrow<py::object>(code->co_filename) : py::str("");
    d["function"] = code ? py::reinterpret_borrow<py::object>(code->co_name) : py::str("");
    auto s = segment_of.find(static_cast<int>(i));
    d["segment"] = s == segment_of.end() ? py::object(py::none()) : py::object(py::int_(s->second));
    auto e = exit_of.find(static_cast<int>(i));
    d["exit"] = e == exit_of.end() ? py::object(py::none()) : py::object(py::int_(e->second));
    d["guard"] = is_guard(op.kind);
    d["note"] = op.fn != ArrayFn::none ? array_fn_name(op.fn) : "";
    ops.append(d);
  }
  return ops;
}

py::list describe_exits(const Program& program, const Policy& policy) {
  py::list exits;
  auto& records = const_cast<Program&>(program).exits();
  for (size_t i = 0; i < records.size(); ++i) {
    const Exit& e = records[i];
    py::dict d;
    d["index"] = i;
    d["op"] = e.op;
    d["line"] = e.op >= 0 ? program.trace().data.ops[e.op].line : 0;
    d["count"] = e.count;
    d["side"] = e.side ? py::object(py::int_(e.side->trace().data.number)) : py::object(py::none());
    d["closed"] = e.patience == 0;
    d["patience"] = e.patience;
    const auto penalty = policy.penalties().find({program.trace().data.number, e.op, e.which});
    d["reason"] = penalty == policy.penalties().end() ? "" : reason_text(penalty->second.reason);
    exits.append(d);
  }
  return exits;
}

py::list describe_segments(const Program& program, std::map<int, int>* segment_of) {
  py::list segments;
  auto groups = program.segment_ops();
  for (size_t i = 0; i < groups.size(); ++i) {
    py::dict d;
    py::list ops, kernels;
    for (int op : groups[i].ops) {
      ops.append(op);
      (*segment_of)[op] = static_cast<int>(i);
    }
    if (groups[i].runner)
      for (const auto& [layout, state] : groups[i].runner->kernels()) kernels.append(py::make_tuple(layout, state));
    if (groups[i].writes >= 0) (*segment_of)[groups[i].writes] = static_cast<int>(i);
    d["ops"] = ops;
    d["writes"] = groups[i].writes >= 0 ? py::object(py::int_(groups[i].writes)) : py::none();
    d["inner_loops"] = groups[i].loops;
    d["kernels"] = kernels;
    d["usable"] = groups[i].runner != nullptr;
    segments.append(d);
  }
  return segments;
}

constexpr const char* kHow[] = {"leaves", "runs code", "step"};  // in the order of NativeInfo::How

py::object describe_native(const Program& program, const std::vector<std::unique_ptr<Program>>& programs) {
  const std::optional<NativeInfo> info = program.native_info();
  if (!info) return py::none();
  py::dict d;
  py::list called;
  for (const NativeInfo::Called& c : info->called) {
    const Program* owner = programs[static_cast<size_t>(c.trace)].get();
    if (!owner) continue;
    const Trace& t = owner->trace().data;
    py::dict one;
    one["how"] = kHow[static_cast<size_t>(c.how)];
    one["trace"] = c.trace, one["op"] = c.op;
    one["text"] = print_op(t, c.op);
    one["line"] = t.ops[static_cast<size_t>(c.op)].line;
    called.append(one);
  }
  d["state"] = info->state, d["traces"] = info->traces, d["called"] = called, d["text"] = info->text;
  return d;
}

template <class F>
PyObject* guarded(F&& f) {
  try {
    return f().release().ptr();
  } catch (py::error_already_set& e) {
    e.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception&) {  // what pybind11 says where it could not make an object
    if (!PyErr_Occurred()) PyErr_NoMemory();
  }
  return nullptr;
}

const char* anchor_name(AnchorKind kind) { return kind == AnchorKind::entry ? "entry" : kind == AnchorKind::loop ? "loop" : "exit"; }

}  // namespace

Counters function_counters(const Tree& tree) {
  Counters c = tree.counters();
  for (const auto& program : *tree.programs()) {
    if (!program) continue;
    for (const auto& runner : program->segments()) {
      if (!runner) continue;
      for (const auto& [layout, state] : runner->kernels()) {
        c.kernels_compiled += state == "compiled";
        c.kernels_loaded += state == "loaded";
        c.kernels_assembled += state == "assembled";
      }
    }
  }
  c.store_errors = process_store_errors();
  return c;
}

void add_counters(Counters* sum, const Counters& more) {
  for (const CounterRow& row : kRows) sum->*row.field += more.*row.field;
}

Counters process_counters() {
  Counters sum = retired_counters();
  for (const Tree* tree : trees()) add_counters(&sum, tree->counters());
  KernelCounters kernels = kernel_counters();
  sum.kernel_launches = kernels.launches;
  sum.kernels_compiled = kernels.compiled;
  sum.kernels_loaded = kernels.loaded;
  sum.kernels_assembled = kernels.assembled;
  sum.store_errors = process_store_errors();
  return sum;
}

PyObject* describe_counters(const Counters& counters) {
  return guarded([&] {
    py::dict d;
    for (const CounterRow& row : kRows) d[row.name] = counters.*row.field;
    return d;
  });
}

PyObject* describe_traces(const Tree& tree) {
  return guarded([&] {
    py::list traces;
    const auto programs = tree.programs();
    for (size_t i = 0; i < programs->size(); ++i) {  // making objects may run finalisers, and they anything
      const Program* program = (*programs)[i].get();
      if (!program) continue;
      const Trace& t = program->trace().data;
      py::dict d;
      std::map<int, int> segment_of;
      d["number"] = t.number;
      d["anchor"] = anchor_name(t.anchor);
      d["parent"] = t.parent < 0 ? py::object(py::none()) : py::object(py::int_(t.parent));
      d["parent_op"] = t.parent_op < 0 ? py::object(py::none()) : py::object(py::int_(t.parent_op));
      d["reason"] = reason_name(t.reason);
      d["reason_text"] = reason_text(t.reason);
      d["remedy"] = reason_remedy(t.reason);
      d["where"] = t.where;
      d["segments"] = describe_segments(*program, &segment_of);
      d["ops"] = describe_ops(*program, segment_of);
      d["exits"] = describe_exits(*program, tree.policy());
      d["native"] = describe_native(*program, *programs);
      d["recursion"] = program->recurses();
      py::list folded;
      for (const Folded& f : t.folded)
        if (f.value >= 0) folded.append(t.names[f.name]);
      d["folded"] = folded;
      traces.append(d);
    }
    return traces;
  });
}

PyObject* describe_companions(const Tree& tree) {
  return guarded([&] {
    py::list all;
    for (const auto& [function, companion] : tree.companions())
      if (companion) all.append(py::reinterpret_borrow<py::object>(companion.get()));
    return py::tuple(all);
  });
}

PyObject* describe_notes(const Tree& tree) {
  return guarded([&] {
    py::list notes;
    for (const auto& [key, n] : tree.notes()) {
      py::dict d;
      d["reason"] = reason_name(n.reason);
      d["text"] = n.what.empty() ? std::string(reason_text(n.reason)) : n.what + ": " + reason_text(n.reason);
      d["remedy"] = reason_remedy(n.reason);
      d["where"] = n.where;
      d["count"] = 1;
      notes.append(d);
    }
    return notes;
  });
}

}  // namespace dalsegno::replay
