// run(): a program's steps, one after the other.
#include <new>

#include "hook/error_aside.h"
#include "replay/machine/program.h"
#include "trace/fault.h"

namespace dalsegno::replay {
namespace {

constexpr volatile unsigned char kNothingWaits = 0;

// Rooms are kept for the next run of the thread; a run inside a run takes another.
thread_local std::vector<std::unique_ptr<Room>> idle_rooms;

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

Outcome run(Program& root, PyObject* const* params, PyObject** result, Exit** exit, FrameState* state, std::span<const Arguments> take) {
  auto& program = static_cast<ProgramImpl&>(root);
  const volatile unsigned char* breaker = hook::eval_breaker();
  const bool waits = *breaker != 0;
  if (waits && !hook::handle_pending()) return Outcome::kReturned;  // *result is null: as if the caller had raised
  if (!program.world_holds()) return Outcome::kRefused;
  PyThreadState* thread = PyThreadState_Get();
  if (!recursion_left(thread)) return Outcome::kTooDeep;
  RoomLease lease;
  Machine m;
  m.thread = thread;
  m.breaker = planted(Fault::ignored_breaker) ? &kNothingWaits : breaker;
  m.unsettled = waits;
  m.room = lease.get();
  m.result = result;
  m.exit = exit;
  m.state = state;
  m.reserve(program.n_regs);
  start_program(m, program);
  for (size_t i = 0; i < program.params.size(); ++i) m.r[program.locs[program.params[i]].obj].o = Py_NewRef(params[i]);
  for (const Arguments& a : take)
    if (!planted(Fault::kept_arguments)) hook::take_arguments(a.first, a.count);
  const hook::ThreadGuard guard;
  try {
    const Step* s = program.steps.data();
    for (;; s = end_left_call(m)) {
      while (s) s = s->fn(s, m.r, m);
      if (!m.calling()) break;
    }
  } catch (const std::bad_alloc&) {
    let_go(m);
    lease.abandon();
    *result = nullptr;
    return Outcome::kReturned;
  }
  return m.outcome;
}

}  // namespace dalsegno::replay
