// Calls of trees inside a run: the machine runs the callee's entry itself, on registers behind the caller's. The caller's frames are
// linked only when somebody may look. Where the callee leaves, the interpreter ends its frames, and the caller's step goes on with the
// result.
#include <algorithm>
#include <new>
#include <utility>

#include "hook/arguments.h"
#include "replay/machine/run.h"

namespace dalsegno::replay {

Jitted* (*jitted_at)(PyObject* callable) = [](PyObject*) -> Jitted* { return nullptr; };

uint64_t ProgramImpl::next_id() {
  static uint64_t last = 0;
  return ++last;
}

namespace {

// Where the arguments go. A parameter that is an unboxed number there comes unboxed.
void aim(CallSite& site, const ProgramImpl& entry) {
  site.target = entry.id;
  for (size_t k = 0; k < site.arguments.size(); ++k) {
    Handover& h = site.arguments[k];
    const Loc& to = entry.locs[entry.params[k]];
    h.to_obj = to.obj;
    h.to_raw = h.takes && h.from.raw >= 0 && to.raw >= 0 && to.rep == h.from.rep ? to.raw : -1;
  }
}

// From the caller's registers to the callee's.
void hand_over(const CallSite& site, Reg* from, Reg* to) {
  for (const Handover& h : site.arguments) {
    PyObject* o = h.from.obj >= 0 ? from[h.from.obj].o : nullptr;
    if (h.takes && o) from[h.from.obj].o = nullptr;
    if (o) {
      to[h.to_obj].o = h.takes ? o : Py_NewRef(o);
    } else if (h.to_raw >= 0) {
      to[h.to_raw] = from[h.from.raw];
    } else if (!(to[h.to_obj].o = box(h.from.rep, from[h.from.raw]))) {
      throw std::bad_alloc();
    }
  }
}

// Parameters that the caller leaves to the callee's defaults.
void hand_over_defaults(size_t given, const ProgramImpl& entry, PyObject* callee, Reg* to) {
  const size_t n = entry.params.size();
  if (given == n) return;
  PyObject* defaults = reinterpret_cast<PyFunctionObject*>(callee)->func_defaults;
  const size_t first = n - static_cast<size_t>(PyTuple_GET_SIZE(defaults));
  for (size_t k = given; k < n; ++k)
    to[entry.locs[entry.params[k]].obj].o = Py_NewRef(PyTuple_GET_ITEM(defaults, static_cast<Py_ssize_t>(k - first)));
}

void keep(Machine& m, const GilShared<Programs>& programs) {
  std::vector<GilShared<Programs>>& kept = m.room->kept;
  if (std::find(kept.begin(), kept.end(), programs) == kept.end()) kept.push_back(programs);
}

const GilShared<Programs>& kept(const Machine& m, const ProgramImpl& program) {
  return *std::find_if(m.room->kept.begin(), m.room->kept.end(), [&](const auto& p) { return p.get() == program.tree; });
}

// May one call more begin here? Then its frames are counted.
bool count_caller(Machine& m, size_t frames) {
  m.first_frame += frames;
  count_frames(m);
  if (recursion_left(m.thread)) return true;
  m.first_frame -= frames;
  count_frames(m);
  return false;
}

// The arguments as objects, for a call like any other, which gives up those that die in it.
class Boxed {
 public:
  Boxed(const CallSite& site, Reg* r) : objects_(site.arguments.size() + 1) {
    objects_[0] = Py_NewRef(r[site.callee].o);
    for (size_t k = 0; k < site.arguments.size(); ++k) {
      const Handover& h = site.arguments[k];
      PyObject** const held = h.takes && h.from.obj >= 0 && r[h.from.obj].o ? &r[h.from.obj].o : nullptr;
      objects_[k + 1] = held ? std::exchange(*held, nullptr) : object_of(h.from, r);
    }
  }
  ~Boxed() {
    hook::stop_if_ended();
    drop();
  }
  void drop() {
    for (PyObject*& o : objects_) Py_CLEAR(o);
  }
  Boxed(const Boxed&) = delete;
  bool all() const { return std::find(objects_.begin(), objects_.end(), nullptr) == objects_.end(); }
  PyObject* call() {
    const size_t count = objects_.size() - 1;
    const hook::GivenUp given(objects_.data() + 1, static_cast<Py_ssize_t>(count));
    return PyObject_Vectorcall(objects_[0], objects_.data() + 1, count | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
  }

 private:
  std::vector<PyObject*> objects_;
};

const Step* call_object(const Step* s, const CallSite& site, Reg* r, Machine& m) {
  PyObject* result = nullptr;
  {
    Boxed arguments(site, r);
    LinkedScope frames(m, s->link);
    if (arguments.all()) result = arguments.call();
    arguments.drop();  // while the frames are shown
  }
  if (!result) return fail(m, s->exit, false);
  r[site.result.obj].o = result;
  return s + 1;
}

}  // namespace

// imm: the call site.
const Step* step_call_tree(const Step* s, Reg* r, Machine& m) {
  ProgramImpl& caller = *m.program;
  CallSite& site = caller.calls[s->imm];
  Jitted* callee = jitted_at(r[site.callee].o);
  const GilShared<Programs>* programs =
      callee && *m.breaker == 0 ? callee->ready(m.thread, static_cast<Py_ssize_t>(site.arguments.size()), caller.tree) : nullptr;
  if (!programs) return call_object(s, site, r, m);
  auto& entry = static_cast<ProgramImpl&>(*(*programs)->front());
  const int32_t frames = s->n;
  if (!entry.world_holds()) return call_object(s, site, r, m);
  const size_t given = site.arguments.size();
  if (const uint64_t calls = given == entry.params.size() ? calls_done(m, site, entry, frames) : 0)
    return callee->count_replays(calls), s + 1;
  if (!count_caller(m, static_cast<size_t>(frames))) return call_object(s, site, r, m);
  keep(m, *programs);
  if (site.target != entry.id) aim(site, entry);
  m.room->calls.push_back({&caller, s, m.base, frames, callee, m.code_run, m.dirty, m.unsettled});
  callee->count_replays(1);
  m.base += caller.n_regs;
  m.reserve(entry.n_regs);
  m.dirty = m.unsettled = false;
  start_program(m, entry);
  hand_over(site, m.r - caller.n_regs, m.r);
  hand_over_defaults(given, entry, callee->plain(), m.r);
  return entry.steps.data();
}

void end_call(Machine& m) {
  std::vector<PendingCall>& calls = m.room->calls;
  const PendingCall call = calls.back();
  calls.pop_back();
  m.linked_calls = std::min(m.linked_calls, calls.size());
  if (m.n_links >= m.first_frame) unlink(m, m.first_frame - 1);  // the caller's innermost frame goes on
  m.first_frame -= static_cast<size_t>(call.frames);
  count_frames(m);
  m.program = call.program;
  m.base = call.base;
  m.r = m.room->registers.data() + m.base;
  const bool ran = m.code_run != call.code_run;
  if (ran) unlink_touched(m);
  m.dirty = call.dirty || ran;
  m.unsettled = call.unsettled || ran;
  if (calls.empty()) m.room->kept.clear();
}

// A result may come unboxed where the caller expects that representation.
const Step* return_to_caller(const Step* s, Reg* r, Machine& m) {
  const Loc& from = m.program->locs[s->imm];
  PyObject* o = from.obj >= 0 ? Py_XNewRef(r[from.obj].o) : nullptr;
  const Rep rep = from.rep;
  Reg raw{};
  if (!o) raw = r[from.raw];
  if (m.n_links > m.first_frame) unlink(m, m.first_frame);
  drop_at_return(*s, r, m);
  count_steps(static_cast<uint64_t>(s - m.program->steps.data()) + 1);
  if (!m.kept_frames.empty()) forget_kept_frames(m, m.first_frame);
  const Step* call = m.room->calls.back().step;
  end_call(m);
  const Loc& to = m.program->calls[call->imm].result;
  if (!o && (to.raw < 0 || to.rep != rep) && !(o = box(rep, raw))) return fail(m, call->exit, false);
  m.r[to.obj].o = o;
  if (!o) m.r[to.raw] = raw;
  return call + 1;
}

const Step* end_left_call(Machine& m) {
  const PendingCall call = m.room->calls.back();
  const std::unique_ptr<FrameState> state = std::move(m.inner_state);
  const GilShared<Programs> ran = kept(m, *m.program);
  link_callers(m);
  count_frames(m);
  PyObject* result = call.callee->leave(*m.exit, state.get(), ran);
  ++m.code_run;
  end_call(m);
  if (!result) return fail(m, call.step->exit, false);
  m.r[m.program->calls[call.step->imm].result.obj].o = result;
  return call.step + 1;
}

}  // namespace dalsegno::replay
