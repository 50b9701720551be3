// run(): a program's steps, one after the other.
#include <new>

#include "hook/arguments.h"
#include "hook/error_aside.h"
#include "hook/generators.h"
#include "replay/machine/run.h"
#include "trace/fault.h"

namespace dalsegno::replay {
namespace {

constexpr volatile unsigned char kNothingWaits = 0;

// Rooms are kept for the next run; a run inside a run takes another. Guarded by the GIL, and never destroyed: threads may outlive it.
std::vector<std::unique_ptr<Room>>& idle_rooms = *new std::vector<std::unique_ptr<Room>>;

class RoomLease {
 public:
  RoomLease() {
    if (!idle_rooms.empty()) {
      room_ = std::move(idle_rooms.back());
      idle_rooms.pop_back();
    } else {
      room_ = std::make_unique<Room>();
    }
  }
  ~RoomLease() {
    if (!room_) return;
    try {
      idle_rooms.push_back(std::move(room_));
    } catch (const std::bad_alloc&) {  // the next run makes one
    }
  }
  RoomLease(const RoomLease&) = delete;
  Room* get() { return room_.get(); }
  // For a run that ended anywhere: no other run may find what is left in its registers.
  void abandon() { room_.reset(); }

 private:
  std::unique_ptr<Room> room_;
};

// Ends a run where it has no place to leave at: what it holds is dropped (registers that are not live are null), with MemoryError.
void let_go(Machine& m) {
  if (!PyErr_Occurred()) PyErr_NoMemory();
  const hook::ErrorAside aside;
  for (;; end_call(m)) {
    unlink(m, m.first_frame);
    forget_kept_frames(m, m.first_frame);
    forget_kept_boxes(m);
    for (const ProgramImpl* p = m.program; p; p = p->parent)
      for (const Loc& loc : p->locs)
        if (loc.obj >= 0 && m.r[loc.obj].o) hook::give_up(m.r[loc.obj].o);
    for (const ProgramImpl* p = m.program; p; p = p->parent)
      for (const Loc& loc : p->locs)
        if (loc.owned && loc.obj >= 0) Py_CLEAR(m.r[loc.obj].o);
    if (!m.calling()) break;
  }
}

}  // namespace

void Machine::reserve(int32_t n) {
  const auto end = static_cast<size_t>(base) + static_cast<size_t>(n);
  if (end > room->registers.size()) room->registers.resize(end + end / 2);
  r = room->registers.data() + base;
}

namespace {

// The state of a run that begins with `program`.
class Run {
 public:
  Run(PyThreadState* thread, ProgramImpl& program, PyObject** result, Exit** exit, FrameState* state) {
    const volatile unsigned char* breaker = hook::eval_breaker();
    m.thread = thread;
    m.collections = hook::collection_counts(thread);
    m.breaker = planted(Fault::ignored_breaker) ? &kNothingWaits : breaker;
    m.room = lease_.get();
    m.result = result;
    m.exit = exit;
    m.state = state;
    m.reserve(program.n_regs);
    start_program(m, program);
  }
  Outcome go(const Step* s) {
    const hook::ThreadGuard guard;
    try {
      for (;; s = end_left_call(m)) {
        while (s) s = s->fn(s, m.r, m);
        if (!m.calling()) break;
      }
    } catch (const std::bad_alloc&) {
      let_go(m);
      lease_.abandon();
      *m.result = nullptr;
      return Outcome::kReturned;
    }
    return m.outcome;
  }

 private:
  RoomLease lease_;

 public:
  Machine m;
};

}  // namespace

Outcome run(Program& root, PyObject* const* params, PyObject** result, Exit** exit, FrameState* state, std::span<const Arguments> take) {
  auto& program = static_cast<ProgramImpl&>(root);
  const bool waits = *hook::eval_breaker() != 0;
  if (waits && !hook::handle_pending()) return Outcome::kReturned;  // *result is null: as if the caller had raised
  if (!program.world_holds()) return Outcome::kRefused;
  PyThreadState* thread = PyThreadState_Get();
  if (!recursion_left(thread)) return Outcome::kTooDeep;
  Run run(thread, program, result, exit, state);
  Machine& m = run.m;
  m.unsettled = waits;
  for (size_t i = 0; i < program.params.size(); ++i) m.r[program.locs[program.params[i]].obj].o = Py_NewRef(params[i]);
  for (const Arguments& a : take)
    if (!planted(Fault::kept_arguments)) hook::take_arguments(a.callable, a.first, a.count);
  return run.go(program.steps.data());
}

// ---- loops of running frames -----------------------------------------------------------------------------------------------------

const Snapshot* loop_of_one_frame(const Program& program) {
  const Trace& t = program.trace().data;
  return t.anchor == AnchorKind::loop && t.entry.frames.size() == 1 ? &t.entry : nullptr;
}

namespace {

// The live frame's values, slot by slot, and what the loop makes of them.
class Takeover {
 public:
  Takeover(ProgramImpl& loop, const hook::FrameView& view) : loop_(loop), view_(view) {}

  // May change nothing: another loop may be of these values, or none.
  bool fits() {
    const SnapshotFrame& f = loop_.data().entry.frames[0];
    const size_t n = f.locals.size();
    if (static_cast<int>(n) != view_.code->co_nlocalsplus || static_cast<int>(f.stack.size()) != view_.stack_depth) return false;
    objects_.assign(loop_.data().n_params, nullptr);
    raws_.resize(objects_.size());
    if (!fits(f.function, reinterpret_cast<PyObject*>(view_.function))) return false;
    for (size_t i = 0; i < n; ++i)
      if (!fits(f.locals[i], view_.localsplus[i].get())) return false;
    for (size_t i = 0; i < f.stack.size(); ++i)
      if (!fits(f.stack[i], view_.localsplus[n + i].get())) return false;
    return true;
  }

  // The frame's references go to the registers: one a value.
  void move(Reg* r) {
    for (size_t v = 0; v < objects_.size(); ++v) {
      if (!objects_[v]) continue;
      const Loc& to = loop_.locs[v];
      if (to.raw >= 0) r[to.raw] = raws_[v];
      if (to.obj >= 0) r[to.obj].o = Py_NewRef(objects_[v]);
    }
    const int n = view_.code->co_nlocalsplus + view_.stack_depth;
    for (int i = 0; i < n; ++i) Py_XDECREF(view_.localsplus[i].take());  // never the last reference of what is not a number
  }

 private:
  bool fits(ValueId v, PyObject* o) {
    if (v == kNull || !o) return v == kNull && !o;
    if (v >= loop_.data().n_params) return loop_.live->objects[loop_.data().ops[v].object] == o;
    if (objects_[v]) return objects_[v] == o;
    objects_[v] = o;
    const Loc& to = loop_.locs[v];
    if (PyObject* type = loop_.types[v].type; type && loop_.types[v].since < 0 && !is_of_type(o, type)) return false;
    return to.rep == Rep::kNone || to.either() || unbox(to.rep, o, &raws_[v]);
  }

  ProgramImpl& loop_;
  const hook::FrameView& view_;
  std::vector<PyObject*> objects_;  // per parameter; borrowed from the frame
  std::vector<Reg> raws_;
};

}  // namespace

uint64_t turns_of(const Program& program) { return static_cast<uint64_t>(static_cast<const ProgramImpl&>(program).turns); }

bool has_native_code(const Program& program) {
  const auto runs = [](const ProgramImpl& loop) { return loop.native && loop.start == &loop.native->entry; };
  const auto& loop = static_cast<const ProgramImpl&>(program);
  return runs(loop) || std::any_of(loop.jumps.begin(), loop.jumps.end(), [&](const JumpPlan& j) { return j.target && runs(*j.target); });
}

Outcome enter_loop(Program& program, hook::RunningFrame& frame, PyObject** result, Exit** exit, FrameState* state) {
  auto& loop = static_cast<ProgramImpl&>(program);
  PyThreadState* thread = PyThreadState_Get();
  if (!recursion_left(thread)) return Outcome::kTooDeep;
  Takeover values(loop, frame.view());
  if (!frame.can_leave() || !values.fits() || !loop.world_holds()) return Outcome::kRefused;
  Run run(thread, loop, result, exit, state);
  run.m.kept_frames.reserve(1);
  const Step* first = loop.enter();  // which may throw: from here on nothing may
  PyObject* f_locals = frame.leave_chain();
  if (f_locals) run.m.kept_frames.push_back({f_locals, nullptr, nullptr, -1, false});
  values.move(run.m.r);
  return run.go(first);
}

}  // namespace dalsegno::replay
