// After code nothing is known of: may the run go on?
#include "replay/machine/run.h"
#include "trace/fault.h"
#include "trace/recorder/steady.h"

namespace dalsegno::replay {
namespace {

bool observed(const Machine& m) {
  if (planted(Fault::ignored_observers)) return false;
  if (hook::thread_observed(m.thread)) return true;
  for (PyCodeObject* code : m.program->codes)
    if (hook::code_observed(code)) return true;
  return false;
}

// Signals, collection, other threads: with the frames as eager would show them. False: an exception is set.
bool do_what_waits(const Step* s, Machine& m) {
  LinkedScope frames(m, s->link, m.program->at_of(s->exit));
  return hook::handle_pending();
}

}  // namespace

bool undisturbed(Machine& m) {
  if (!m.unsettled) return true;
  m.unsettled = false;
  return !m.written && m.kept_boxes.empty() && !observed(m);
}

bool settle(const Step* s, Machine& m, const Step** next) {
  if (*m.breaker != 0) {
    if (!do_what_waits(s, m)) return *next = fail(m, s->exit, false), false;
    if (hook::async_exception_waits()) return *next = leave_disturbed(m, s->exit), false;
  }
  if (!undisturbed(m)) return *next = leave_disturbed(m, s->exit), false;
  if (m.program->world_holds()) return true;
  count_guard_failure();
  *next = leave(m, s->exit);
  return false;
}

const Step* step_guard_world(const Step* s, Reg*, Machine& m) {
  if (!m.unsettled && *m.breaker == 0 && m.program->world_holds()) [[likely]]
    return s + 1;
  const Step* next;
  return settle(s, m, &next) ? s + 1 : next;
}

bool ProgramImpl::folded_hold() {
  if (planted(Fault::stale_world)) return true;
  for (FoldedGuards& world : folded) {
    if (world.checked && world.version.unchanged()) [[likely]]
      continue;
    bool holds = true;
    for (auto [name, value] : world.names) {
      PyObject* now = PyDict_GetItemWithError(world.version.dict(), name);
      if (!now && PyErr_Occurred()) PyErr_Clear();
      if (now == value) continue;
      holds = false;
      if (value && recorder::is_plain_value(value)) recorder::note_unsteady(world.version.dict(), name);
    }
    if (!holds) return false;
    world.version.refresh();
    world.checked = true;
  }
  if (hook::g_folded_changes != 0) seen_changes = hook::g_folded_changes;
  return true;
}

}  // namespace dalsegno::replay
