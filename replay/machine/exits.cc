// Leaving a program: on to the side trace attached there, or back to the interpreter with its frames rebuilt.
#include <algorithm>
#include <new>
#include <utility>

#include "replay/machine/program.h"
#include "trace/fault.h"

namespace dalsegno::replay {

namespace {
MachineCounters counters;

PyObject* take_exception() {
#if PY_VERSION_HEX >= 0x030c0000
  return PyErr_GetRaisedException();
#else
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return value;
#endif
}
}  // namespace

MachineCounters machine_counters() { return counters; }
void count_guard_failure() { counters.guard_failures++; }
void count_steps(uint64_t n) { counters.steps += n; }

FrameState::~FrameState() {
  hook::stop_if_ended();
  for (auto& frame : slots)
    for (PyObject* o : frame) Py_XDECREF(o);
  for (hook::FrameImage& image : images) {
    Py_XDECREF(image.f_locals);
    Py_XDECREF(reinterpret_cast<PyObject*>(image.frame_object));
  }
  for (PyObject* f : functions) Py_XDECREF(f);
  Py_XDECREF(raised);
}

PyObject* FrameState::resume(hook::OnEntered on_entered, void* context) {
  PyObject* exception = raised;
  raised = nullptr;
  return hook::resume(images.data(), static_cast<int>(images.size()), exception, on_entered, context);
}

PyObject* object_of(const Loc& loc, const Reg* r) {
  if (loc.obj >= 0 && r[loc.obj].o) return Py_NewRef(r[loc.obj].o);
  return box(loc.rep, r[loc.raw]);
}

bool build(const Virtual& what, Reg* r) {
  if (r[what.reg].o) return true;
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(what.parts.size()));
  if (!tuple) return false;
  for (size_t i = 0; i < what.parts.size(); ++i) {
    const Loc& part = what.parts[i];
    if (part.obj >= 0 && !r[part.obj].o) r[part.obj].o = box(part.rep, r[part.raw]);  // one box a value
    PyObject* o = part.obj >= 0 ? Py_XNewRef(r[part.obj].o) : box(part.rep, r[part.raw]);
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), o);
    if (o) continue;
    Py_DECREF(tuple);
    return false;
  }
  r[what.reg].o = tuple;
  return true;
}

const Snapshot& ProgramImpl::snapshot(int32_t i, Snapshot& room) {
  constexpr size_t kMostSlots = 1 << 18;
  if (built.empty()) built.resize(data().snapshots.size());
  if (built[i]) return *built[i];
  room = data().snapshot(i);
  size_t slots = 0;
  for (const SnapshotFrame& f : room.frames) slots += f.locals.size() + f.stack.size();
  if (built_slots + slots > kMostSlots) return room;
  built_slots += slots;
  built[i] = std::make_unique<const Snapshot>(std::move(room));
  return *built[i];
}

void forget_shown(Machine& m, size_t from) {
  while (m.shown.size() > from) {
    Shown gone = m.shown.back();
    m.shown.pop_back();
    Py_XDECREF(gone.f_locals);
    Py_XDECREF(reinterpret_cast<PyObject*>(gone.frame));
  }
}

// ---- frames for the interpreter ------------------------------------------------------------------------------------------------

namespace {

// Values of a snapshot as objects, each value one object however often it occurs.
class Objects {
 public:
  Objects(const ProgramImpl& p, Reg* r) : p_(p), r_(r) {}
  ~Objects() {
    for (auto& [v, o] : boxes_) Py_DECREF(o);
  }
  PyObject* get(ValueId v) {  // new reference
    if (v == kNull) return nullptr;
    const Loc& loc = p_.locs[v];
    if (loc.obj >= 0 && r_[loc.obj].o) return Py_NewRef(r_[loc.obj].o);
    for (auto& [value, o] : boxes_)
      if (value == v) return Py_NewRef(o);
    PyObject* o = box(loc.rep, r_[loc.raw]);
    if (!o) throw std::bad_alloc();
    boxes_.emplace_back(v, o);
    return Py_NewRef(o);
  }

 private:
  const ProgramImpl& p_;
  Reg* r_;
  std::vector<std::pair<ValueId, PyObject*>> boxes_;
};

// Planted faults.
void swap_two_locals(FrameState& state) {
  hook::FrameImage& image = state.images.back();
  std::vector<PyObject*>& slots = state.slots.back();
  size_t n_locals = slots.size() - image.depth;
  for (size_t i = 0; i + 1 < n_locals; ++i) {
    if (!slots[i] || !slots[i + 1] || slots[i] == slots[i + 1]) continue;
    std::swap(slots[i], slots[i + 1]);
    return;
  }
}
void lose_a_local(FrameState& state) {
  std::vector<PyObject*>& slots = state.slots.back();
  for (size_t i = slots.size() - state.images.back().depth; i-- > 0;) {
    if (!slots[i]) continue;
    Py_CLEAR(slots[i]);
    return;
  }
}
void move_offset(const Trace& t, const ExitPlan& plan, FrameState& state) {
  const Snapshot at = t.snapshot(plan.snapshot);
  const SnapshotFrame& here = at.frames.back();
  for (size_t i = plan.op + 1; i < t.ops.size(); ++i) {
    if (t.ops[i].snapshot < 0) continue;
    const Snapshot s = t.snapshot(t.ops[i].snapshot);
    if (s.frames.size() != state.images.size() || s.frames.back().stack.size() != here.stack.size()) continue;
    if (s.frames.back().offset == here.offset) continue;
    state.images.back().offset = s.frames.back().offset;
    return;
  }
}

// Hands what was shown of frame i to its image. A frame object somebody kept gets the variables as they are at the snapshot; but one
// that was assigned to through the object, and not by the trace since, stays.
void attach_shown(Machine& m, size_t i, int32_t snapshot, hook::FrameImage* image, ObjectsWin* wins) {
  if (i >= m.shown.size()) return;
  Shown& shown = m.shown[i];
  image->f_locals = std::exchange(shown.f_locals, nullptr);
  PyFrameObject* frame = std::exchange(shown.frame, nullptr);
  if (!frame) return;
  const Trace& t = m.program->data();
  const Snapshot here = t.snapshot(snapshot);
  const std::vector<ValueId>& now = here.frames[i].locals;
  auto win = std::make_unique<bool[]>(now.size());
  if (shown.written && shown.trace == &t) {
    const Snapshot there = t.snapshot(shown.snapshot);
    const std::vector<ValueId>& then = there.frames[i].locals;
    for (size_t k = 0; k < now.size(); ++k) win[k] = then[k] == now[k];
  }
  image->frame_object = frame;
  image->object_wins = win.get();
  wins->push_back(std::move(win));
}

// Where an exception is to be thrown in behind an instruction, the frame stands at that.
void build_frames(Machine& m, const ExitPlan& plan, FrameState& state, bool raised) {
  ProgramImpl& p = *m.program;
  Snapshot room;
  const Snapshot& snapshot = p.snapshot(plan.snapshot, room);
  Objects objects(p, m.r);
  state.slots.resize(snapshot.frames.size());
  state.images.resize(snapshot.frames.size());
  for (size_t i = 0; i < snapshot.frames.size(); ++i) {
    const SnapshotFrame& frame = snapshot.frames[i];
    std::vector<PyObject*>& slots = state.slots[i];
    hook::FrameImage& image = state.images[i];
    slots.reserve(frame.locals.size() + frame.stack.size());
    for (ValueId v : frame.locals) slots.push_back(objects.get(v));
    for (ValueId v : frame.stack) slots.push_back(objects.get(v));
    state.functions.push_back(objects.get(frame.function));
    image.function = reinterpret_cast<PyFunctionObject*>(state.functions.back());
    image.offset = frame.offset;
    image.after = frame.after;
    image.locals = slots.data();
    image.stack = slots.data() + frame.locals.size();
    image.depth = static_cast<int>(frame.stack.size());
    image.action = static_cast<hook::ReturnAction>(frame.action);
    image.code = reinterpret_cast<PyCodeObject*>(p.live->objects[frame.code]);
    attach_shown(m, i, plan.snapshot, &image, &state.wins);
  }
  if (const int32_t at = p.data().ops[plan.op].at; raised && at >= 0 && !planted(Fault::wrong_raise_line)) state.images.back().offset = at;
  forget_shown(m, 0);
  if (planted(Fault::wrong_snapshot_slot)) swap_two_locals(state);
  if (planted(Fault::lost_snapshot_value)) lose_a_local(state);
  if (planted(Fault::wrong_resume_offset)) move_offset(p.data(), plan, state);
}

enum class Why : uint8_t { kGuard, kDisturbed, kRaised };

const Step* to_interpreter(Machine& m, ExitPlan& plan, Why why, PyObject* raised = nullptr) {
  Exit& exit = m.program->exit_records[plan.exit];
  counters.exits++;
  if (why == Why::kGuard) exit.count++;  // else a side trace would not be taken either
  m.state->raised = raised;
  build_frames(m, plan, *m.state, raised != nullptr);
  *m.exit = &exit;
  m.outcome = Outcome::kLeft;
  // Values that no frame holds die here; while they do, an exception of ours must not be seen.
  drop(m.program->live_of(plan), m.r);
  return nullptr;
}

void build_all(const ExitPlan& plan, Reg* r) {
  for (const Virtual* what : plan.virtuals)
    if (!build(*what, r)) throw std::bad_alloc();
}

// What is live at the exit but not handed over to the side trace.
void prepare_side(ProgramImpl& p, ExitPlan& plan, const Program* side) {
  std::vector<ValueId> values = slots_of(p.data().snapshot(plan.snapshot));
  std::vector<int32_t> kept;
  for (ValueId v : values)
    if (v != kNull && p.locs[v].obj >= 0) kept.push_back(p.locs[v].obj);
  plan.drop.clear();
  std::vector<int32_t> owned = p.live_of(plan);
  for (int32_t op : plan.pending) owned.push_back(p.locs[op].obj);
  for (int32_t reg : owned)
    if (std::find(kept.begin(), kept.end(), reg) == kept.end()) plan.drop.push_back(reg);
  plan.box.clear();
  for (ValueId v : values)
    if (v != kNull && p.locs[v].obj >= 0 && p.locs[v].raw >= 0 && !p.locs[v].raw_after(plan.op)) plan.box.push_back(p.locs[v]);
  plan.prepared = side;
}

const Step* to_side(Machine& m, ExitPlan& plan, ProgramImpl& side) {
  if (plan.prepared != &side) prepare_side(*m.program, plan, &side);
  for (const Loc& loc : plan.box)
    if (!m.r[loc.obj].o && !(m.r[loc.obj].o = box(loc.rep, m.r[loc.raw]))) throw std::bad_alloc();
  drop(plan.drop, m.r);
  m.reserve(side.n_regs);
  start_program(m, side);
  return side.steps.data();
}

const Step* leave_by(Machine& m, ExitPlan& plan, Why why) {
  count_steps(static_cast<uint64_t>(plan.at));
  build_all(plan, m.r);
  if (!plan.pending.empty()) {
    const Step* next;
    if (!run_one_by_one(m, plan.pending, m.program->live_of(plan), &next, nullptr)) return next;
  }
  Exit& exit = m.program->exit_records[plan.exit];
  auto* side = static_cast<ProgramImpl*>(exit.side);
  if (why == Why::kGuard && !undisturbed(m)) why = Why::kDisturbed;
  if (side && why == Why::kGuard && side->world_holds()) return to_side(m, plan, *side);
  if (plan.pending.empty()) return to_interpreter(m, plan, why);
  ExitPlan done;
  done.exit = plan.exit;
  done.op = plan.op;
  done.snapshot = plan.snapshot;
  done.live = m.program->live_of(plan);
  for (int32_t op : plan.pending) done.live.push_back(m.program->locs[op].obj);
  return to_interpreter(m, done, why);
}

}  // namespace

const Step* fail_by(Machine& m, ExitPlan& plan, bool pure) {
  if (pure || planted(Fault::repeated_raise)) PyErr_Clear();
  if (!PyErr_Occurred()) return leave_by(m, plan, Why::kGuard);
  PyObject* raised = take_exception();
  try {
    build_all(plan, m.r);
  } catch (...) {
    Py_DECREF(raised);
    throw;
  }
  return to_interpreter(m, plan, Why::kRaised, raised);
}

// Ops without a snapshot fail only for want of memory: there is no place to leave at, and run() ends with MemoryError.
const Step* leave(Machine& m, int32_t plan) {
  if (plan < 0) throw std::bad_alloc();
  return leave_by(m, m.program->plans[plan], Why::kGuard);
}

const Step* leave_disturbed(Machine& m, int32_t plan) { return leave_by(m, m.program->plans[plan], Why::kDisturbed); }

const Step* fail(Machine& m, int32_t plan, bool pure) {
  if (plan < 0) throw std::bad_alloc();
  return fail_by(m, m.program->plans[plan], pure);
}

const Step* refuse(Machine& m, int32_t plan) {
  m.program->exit_refused[m.program->plans[plan].exit] = true;
  return leave(m, plan);
}

const Step* overflow(Machine& m, int32_t plan) {
  m.program->exit_overflow[m.program->plans[plan].exit] = true;
  return leave(m, plan);
}

// ---- frames shown to unknown code ----------------------------------------------------------------------------------------------

Shows::Shows(Machine& m, int32_t snapshot, int32_t at) : m_(m), snapshot_(snapshot) {
  if (snapshot < 0 || planted(Fault::unlinked_frames)) return;
  ProgramImpl& p = *m.program;
  Snapshot room;
  const std::vector<SnapshotFrame>& frames = p.snapshot(snapshot, room).frames;
  size_t total = 0;
  for (const SnapshotFrame& f : frames) total += f.locals.size();
  if (total > kFewSlots) many_slots_.resize(total);
  if (frames.size() > kFewFrames) many_images_.resize(frames.size());
  PyObject** slots = total > kFewSlots ? many_slots_.data() : few_slots_;
  images_ = frames.size() > kFewFrames ? many_images_.data() : few_images_;
  n_images_ = frames.size();
  auto object = [&](ValueId v) -> PyObject* {
    if (v == kNull) return nullptr;
    const Loc& loc = p.locs[v];
    if (loc.obj >= 0 && m.r[loc.obj].o) return m.r[loc.obj].o;
    PyObject* o = box(loc.rep, m.r[loc.raw]);
    if (!o) throw std::bad_alloc();
    boxes_.push_back(o);
    return o;
  };
  for (size_t i = 0; i < frames.size(); ++i) {
    hook::FrameImage& image = images_[i];
    image.function = reinterpret_cast<PyFunctionObject*>(object(frames[i].function));
    image.offset = frames[i].offset;
    image.after = frames[i].after;
    image.locals = slots;
    for (ValueId v : frames[i].locals) *slots++ = object(v);
    image.code = reinterpret_cast<PyCodeObject*>(p.live->objects[frames[i].code]);
    attach_shown(m, i, snapshot, &image, &wins_);
  }
  if (at >= 0) images_[n_images_ - 1].offset = at;
  if (planted(Fault::wrong_shown_line)) images_[0].offset = p.data().snapshot(0).frames[0].offset;
  linked_.emplace(images_, static_cast<int>(n_images_));
}

Shows::~Shows() {
  hook::stop_if_ended();
  m_.dirty = m_.unsettled = true;
  if (!linked_) return;
  linked_->unlink();
  for (size_t i = 0; i < n_images_; ++i) {
    if (!images_[i].f_locals && !images_[i].frame_object && i >= m_.shown.size()) continue;
    if (m_.shown.size() <= i) m_.shown.resize(i + 1);
    m_.shown[i] = {images_[i].f_locals, images_[i].frame_object, &m_.program->data(), snapshot_, images_[i].written};
    m_.written |= images_[i].written;
  }
  for (PyObject* o : boxes_) Py_DECREF(o);
}

}  // namespace dalsegno::replay
