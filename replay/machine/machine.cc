// run(): a program's steps, one after the other.
#include <new>

#include "hook/error_aside.h"
#include "replay/machine/program.h"
#include "trace/fault.h"

namespace dalsegno::replay {
namespace {

constexpr volatile unsigned char kNothingWaits = 0;

// Register files are kept for the next run of the thread; a run inside a run takes another.
thread_local std::vector<std::unique_ptr<std::vector<Reg>>> idle_files;

class FileLease {
 public:
  FileLease() {
    if (!idle_files.empty()) {
      file_ = std::move(idle_files.back());
      idle_files.pop_back();
    } else {
      file_ = std::make_unique<std::vector<Reg>>(256);
    }
  }
  ~FileLease() {
    if (!file_) return;
    try {
      idle_files.push_back(std::move(file_));
    } catch (const std::bad_alloc&) {  // the next run makes one
    }
  }
  FileLease(const FileLease&) = delete;
  std::vector<Reg>* get() { return file_.get(); }
  // For a run that ended anywhere: no other run may find what is left in its registers.
  void abandon() { file_.reset(); }

 private:
  std::unique_ptr<std::vector<Reg>> file_;
};

// Ends a run where it has no place to leave at: what it holds is dropped (registers that are not live are null), with MemoryError.
void let_go(Machine& m) {
  if (!PyErr_Occurred()) PyErr_NoMemory();
  const hook::ErrorAside aside;
  for (const ProgramImpl* p = m.program; p; p = p->parent)
    for (const Loc& loc : p->locs)
      if (loc.owned && loc.obj >= 0) Py_CLEAR(m.r[loc.obj].o);
  forget_shown(m, 0);
}

}  // namespace

void Machine::reserve(int32_t n) {
  if (n <= capacity) return;
  file->resize(static_cast<size_t>(n) + static_cast<size_t>(n) / 2);
  capacity = static_cast<int32_t>(file->size());
  r = file->data();
}

Outcome run(Program& root, PyObject* const* params, PyObject** result, Exit** exit, FrameState* state, std::span<const Arguments> take) {
  auto& program = static_cast<ProgramImpl&>(root);
  const volatile unsigned char* breaker = hook::eval_breaker();
  const bool waits = *breaker != 0;
  if (waits && !hook::handle_pending()) return Outcome::kReturned;  // *result is null: as if the caller had raised
  if (!program.world_holds()) return Outcome::kRefused;
  if (!hook::recursion_left()) return Outcome::kTooDeep;
  FileLease lease;
  Machine m;
  m.thread = PyThreadState_Get();
  m.breaker = planted(Fault::ignored_breaker) ? &kNothingWaits : breaker;
  m.unsettled = waits;
  m.file = lease.get();
  m.r = m.file->data();
  m.capacity = static_cast<int32_t>(m.file->size());
  m.result = result;
  m.exit = exit;
  m.state = state;
  m.reserve(program.n_regs);
  start_program(m, program);
  for (size_t i = 0; i < program.param_regs.size(); ++i) m.r[program.param_regs[i]].o = Py_NewRef(params[i]);
  for (const Arguments& a : take)
    if (!planted(Fault::kept_arguments)) hook::take_arguments(a.first, a.count);
  const hook::ThreadGuard guard;
  try {
    for (const Step* s = program.steps.data(); s;) s = s->fn(s, m.r, m);
  } catch (const std::bad_alloc&) {
    let_go(m);
    lease.abandon();
    *result = nullptr;
    return Outcome::kReturned;
  }
  return m.outcome;
}

}  // namespace dalsegno::replay
