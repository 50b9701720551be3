// Leaving a program: on to the side trace attached there, or back to the interpreter with its frames rebuilt.
//
// A run may end in the middle of a function, and the interpreter has to find there what eager would have made. The snapshot of the op that
// leaves says what that is: for each frame recorded through its function, its code, where it goes on, and which value each local and stack
// slot holds. A guard's snapshot is the state behind the branch on the other way, that of an op which refuses is the state before its
// instruction. So an exit never does anything twice. The values themselves stand in registers; some are unboxed, some exist as their parts
// alone, some have not been computed yet. An exit turns them into objects, in this order (leave_by):
//
//   build_all        An index tuple that a slot holds is built from its parts.
//   run_one_by_one   Array ops that wait in a group are done as NumPy's own calls: their kernel would do the whole group. One that raises
//                    leaves by its own plan instead.
//   undisturbed      Is the thread traced now, does a signal wait? Then the interpreter goes on, whatever side trace there is.
//   to_side          The side trace takes over, if there is one and its folded names still hold. Its parameters are its parent's registers,
//                    so nothing moves: what it does not know to be unboxed is boxed, and what it has no slot for is dropped.
//   to_interpreter   Or the frames are built. A value becomes one object, in however many slots it is. Frame objects that somebody keeps
//                    become those of the new frames. What is in no slot dies last, as a finaliser may look at the frames.
//
// An example:
//
//     def f(a, b, i):
//         t = a + 1
//         x = b[i]
//         if x < 0: return t
//         return t * x
//
// was recorded with x = 2.0, on arrays of floats. A call with x = -1.0 fails the guard after `x < 0`. Its snapshot is frame f where `return
// t` begins, with a, b, i, t and x in their slots. Of x there is only an unboxed np.float64, and `a + 1` waits for `t * x`, which shares
// its kernel. The exit does `a + 1` by np.add, boxes x and hands the frame its references, and the interpreter returns t. The second time a
// recorder watches it: the side trace begins where this exit stands.
//
// What has to be dropped where is known when the program is lowered: the live log (live_log.h) says which registers own a reference at a
// point. Plans are small, as there is one for nearly each op; lists are written out when an exit is first taken (live_of, prepare_side).
#include <algorithm>
#include <new>
#include <utility>

#include "replay/machine/run.h"
#include "trace/fault.h"

namespace dalsegno::replay {

// ---- what a run leaves behind ------------------------------------------------------------------------------------------------------

namespace {
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

MachineCounters g_machine_counters{};

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

// As the program did, in as many steps.
static bool build_row(const Virtual& what, Reg* r) {
  PyObject* row = Py_NewRef(r[what.parts[0].obj].o);
  for (size_t i = 1; row && i < what.parts.size(); ++i) {
    PyObject* position = PyLong_FromLongLong(planted(Fault::wrong_row) ? 0 : r[what.parts[i].raw].i);
    PyObject* next = position ? PyObject_GetItem(row, position) : nullptr;
    Py_XDECREF(position);
    Py_SETREF(row, next);
  }
  r[what.reg].o = row;
  return row != nullptr;
}

// One box a value; a new reference.
static PyObject* object_of_part(const Loc& part, Reg* r) {
  if (part.obj >= 0 && !r[part.obj].o) r[part.obj].o = box(part.rep, r[part.raw]);
  return part.obj >= 0 ? Py_XNewRef(r[part.obj].o) : box(part.rep, r[part.raw]);
}

static bool build_range(const Virtual& what, Reg* r) {
  PyObject* parts[3] = {};
  const size_t n = what.parts.size();
  bool have = true;
  for (size_t i = 0; i < n; ++i) have &= (parts[i] = object_of_part(what.parts[i], r)) != nullptr;
  if (have) r[what.reg].o = PyObject_Vectorcall(reinterpret_cast<PyObject*>(&PyRange_Type), parts, n, nullptr);
  for (PyObject* part : parts) Py_XDECREF(part);
  return r[what.reg].o != nullptr;
}

static PyObject* new_slice(const Virtual& what, Reg* r) {
  PyObject* parts[3] = {};
  bool have = true;
  for (size_t i = 0; i < what.parts.size(); ++i) have &= (parts[i] = object_of_part(what.parts[i], r)) != nullptr;
  PyObject* made = have ? PySlice_New(parts[0], parts[1], parts[2]) : nullptr;
  for (PyObject* part : parts) Py_XDECREF(part);
  return made;
}

static PyObject* new_sequence(const Virtual& what, Reg* r) {
  const auto n = static_cast<Py_ssize_t>(what.parts.size());
  const bool list = what.kind == Virtual::kList;
  PyObject* made = list ? PyList_New(n) : PyTuple_New(n);
  for (size_t i = 0; made && i < what.parts.size(); ++i) {
    const bool there = what.parts[i].obj >= 0 && r[what.parts[i].obj].o;
    const Virtual* slice = there || i >= what.inner.size() ? nullptr : what.inner[i];
    PyObject* o = slice ? new_slice(*slice, r) : object_of_part(what.parts[i], r);
    const auto at = static_cast<Py_ssize_t>(i);
    list ? PyList_SET_ITEM(made, at, o) : PyTuple_SET_ITEM(made, at, o);
    if (!o) Py_CLEAR(made);
  }
  return made;
}

PyObject* bound_method(PyObject* descriptor, PyObject* self) {
  return Py_TYPE(descriptor)->tp_descr_get(descriptor, self, reinterpret_cast<PyObject*>(Py_TYPE(self)));
}

static bool build_bound(const Virtual& what, Reg* r) {
  PyObject *method = object_of_part(what.parts[0], r), *self = object_of_part(what.parts[1], r);
  r[what.reg].o = method && self ? bound_method(method, self) : nullptr;
  Py_XDECREF(method);
  Py_XDECREF(self);
  return r[what.reg].o != nullptr;
}

// What it was made of in its turn dies at once: no slot holds that any more.
static bool build_delayed(const Virtual& what, Reg* r) {
  const Virtual* inner = what.inner.empty() ? nullptr : what.inner[0];
  if (inner && !build(*inner, r)) return false;
  const bool made = what.step->exec(*what.step, r);
  if (!made) PyErr_Clear(), r[what.reg].o = nullptr;
  if (inner) Py_CLEAR(r[inner->reg].o);
  return made;
}

bool build(const Virtual& what, Reg* r) {
  if (r[what.reg].o) return true;
  switch (what.kind) {
    case Virtual::kRow:
      return build_row(what, r);
    case Virtual::kRange:
      return build_range(what, r);
    case Virtual::kSlice:
      return (r[what.reg].o = new_slice(what, r)) != nullptr;
    case Virtual::kBound:
      return build_bound(what, r);
    case Virtual::kDelayed:
      return build_delayed(what, r);
    case Virtual::kView:
      return (r[what.reg].o = new_view(what, r)) != nullptr;
    case Virtual::kList:
    case Virtual::kTuple:
      break;
  }
  return (r[what.reg].o = new_sequence(what, r)) != nullptr;
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
  plan.own.clear();
  for (ValueId v : values)
    if (v != kNull && p.locs[v].borrowed && std::find(plan.own.begin(), plan.own.end(), p.locs[v].obj) == plan.own.end())
      plan.own.push_back(p.locs[v].obj);
  plan.drop.clear();
  std::vector<int32_t> owned = p.live_of(plan);
  for (int32_t op : plan.pending) owned.push_back(p.locs[op].obj);
  for (int32_t reg : owned)
    if (std::find(kept.begin(), kept.end(), reg) == kept.end()) plan.drop.push_back(reg);
  plan.box.clear();
  const auto& to = static_cast<const ProgramImpl&>(*side);
  const std::vector<ValueId> params = slots_of(to.data().entry);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == kNull || to.locs[params[i]].either()) continue;
    const Loc& loc = p.locs[values[i]];
    if (loc.either() && loc.raw == to.locs[params[i]].raw) continue;
    if (loc.obj >= 0 && loc.raw >= 0 && !loc.raw_after(plan.op)) plan.box.push_back(loc);
  }
  plan.prepared = side;
}

// ---- frames for the interpreter ------------------------------------------------------------------------------------------------

namespace {

// Values of a snapshot as objects, each value one object however often it occurs.
class Objects {
 public:
  explicit Objects(const Machine& m) : m_(m), p_(*m.program), r_(m.r) {}
  ~Objects() {
    for (auto& [v, o] : boxes_) Py_DECREF(o);
  }
  PyObject* get(ValueId v) {  // new reference
    if (v == kNull) return nullptr;
    const Loc& loc = p_.locs[v];
    if (loc.obj >= 0 && r_[loc.obj].o) return Py_NewRef(r_[loc.obj].o);
    for (auto& [value, o] : boxes_)
      if (value == v) return Py_NewRef(o);
    if (loc.raw < 0) return nullptr;  // an argument that a call has taken, which raised: nobody looks at that slot any more
    PyObject* o = box_seen(m_, r_, loc);
    boxes_.emplace_back(v, o);
    return Py_NewRef(o);
  }

 private:
  const Machine& m_;
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

// Where an exception is to be thrown in behind an instruction, the frame stands at that.
void build_frames(Machine& m, const ExitPlan& plan, FrameState& state, bool raised) {
  unlink(m, m.first_frame);
  ProgramImpl& p = *m.program;
  Framing room;
  const Snapshot& snapshot = p.framing(plan.snapshot, room).snapshot;
  Objects objects(m);
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
    image.action = what_of(frame.action);
    image.drops = operands_of(frame.action);
    image.code = reinterpret_cast<PyCodeObject*>(p.live->objects[frame.code]);
    state.from_object.emplace_back();
    if (const ValueId* generator = generator_of(snapshot, i)) {
      image.generator = state.slots[i - 1][snapshot.frames[i - 1].locals.size() + (generator - snapshot.frames[i - 1].stack.data())];
    } else {
      attach_kept_frame(m, p, m.first_frame + i, i, plan.snapshot, &image, &state.from_object.back());
    }
  }
  if (const int32_t at = p.data().ops[plan.op].at; raised && at >= 0 && !planted(Fault::wrong_raise_line)) state.images.back().offset = at;
  forget_kept_frames(m, m.first_frame);
  forget_kept_boxes(m);
  if (planted(Fault::wrong_snapshot_slot)) swap_two_locals(state);
  if (planted(Fault::lost_snapshot_value)) lose_a_local(state);
  if (planted(Fault::wrong_resume_offset)) move_offset(p.data(), plan, state);
}

// ---- the two ways on -----------------------------------------------------------------------------------------------------------

enum class Why : uint8_t { kGuard, kDisturbed, kRaised };

const Step* to_interpreter(Machine& m, ExitPlan& plan, Why why, PyObject* raised = nullptr) {
  Exit& exit = m.program->exit_records[plan.exit];
  ++g_machine_counters.exits;
  if (why == Why::kGuard) exit.count++;  // else a side trace would not be taken either
  if (m.calling()) m.inner_state = std::make_unique<FrameState>();
  FrameState& state = m.calling() ? *m.inner_state : *m.state;
  state.raised = raised;
  build_frames(m, plan, state, raised != nullptr);
  *m.exit = &exit;
  m.outcome = Outcome::kLeft;
  // Values that no frame holds die here; while they do, an exception of ours must not be seen.
  drop(m.program->live_of(plan), m.r);
  return nullptr;
}

const Step* to_side(Machine& m, ExitPlan& plan, ProgramImpl& side) {
  if (plan.prepared != &side) prepare_side(*m.program, plan, &side);
  for (int32_t reg : plan.own) Py_INCREF(m.r[reg].o);
  for (const Loc& loc : plan.box)
    if (!m.r[loc.obj].o && !(m.r[loc.obj].o = box(loc.rep, m.r[loc.raw]))) throw std::bad_alloc();
  drop(plan.drop, m.r);
  m.reserve(side.n_regs);
  start_program(m, side);
  return side.steps.data();
}

// ---- leaving ---------------------------------------------------------------------------------------------------------------------

// To the side trace that was taken here before, where nothing needs to be made, done or asked first. Null: the general way.
const Step* straight_on(Machine& m, ExitPlan& plan) {
  if (!plan.prepared || m.unsettled || !plan.own.empty() || !plan.box.empty() || !plan.virtuals.empty() || !plan.pending.empty())
    return nullptr;
  auto* side = static_cast<ProgramImpl*>(m.program->exit_records[plan.exit].side);
  if (side != plan.prepared || !side->world_holds()) return nullptr;
  count_steps(static_cast<uint64_t>(plan.at));
  return to_side(m, plan, *side);
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

// ---- what steps say: the words are explained in program.h ----------------------------------------------------------------------

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
  if (const Step* first = straight_on(m, m.program->plans[plan])) [[likely]]
    return first;
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

}  // namespace dalsegno::replay
