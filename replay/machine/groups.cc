// Array ops that wait: done together by a segment runner, or one by one by NumPy.
#include <new>

#include "numpy/dtypes.h"
#include "replay/machine/program.h"

namespace dalsegno::replay {

// What dies in an order of its own only where nobody can tell.
static void drop_quietly(const std::vector<int32_t>& regs, Reg* r) {
  for (int32_t reg : regs)
    if (r[reg].o && drops_quietly(r[reg].o)) Py_CLEAR(r[reg].o);
}

bool run_one_by_one(Machine& m, const std::vector<int32_t>& ops, const std::vector<int32_t>& live, const Step** next,
                    const std::vector<std::vector<int32_t>>* dead_after) {
  ProgramImpl& p = *m.program;
  for (size_t i = 0; i < ops.size(); ++i) {
    const Step& s = p.array_steps[p.array_step[ops[i]]];
    bool ok;
    {
      Shows frames(m, s.link);
      ok = s.exec(s, m.r);
    }
    if (ok) {
      if (dead_after) drop_quietly((*dead_after)[i], m.r);
      continue;
    }
    // What has been done so far is in the failing op's snapshot or not needed; both own their registers.
    ExitPlan here;
    here.exit = p.plans[s.exit].exit;
    here.op = ops[i];
    here.snapshot = p.plans[s.exit].snapshot;
    here.live = live;
    for (size_t k = 0; k < i; ++k) here.live.push_back(p.locs[ops[k]].obj);
    *next = fail_by(m, here, false);
    return false;
  }
  return true;
}

bool facts_hold(const Group& group, const Reg* r) {
  for (size_t i = 0; i < group.inputs.size(); ++i)
    if (group.facts[i].rank >= 0 && !numpy::has_facts(r[group.inputs[i]].o, group.facts[i])) return false;
  return true;
}

namespace {

bool run_kernel(SegmentRunner& runner, const Group& group, Reg* r) {
  constexpr size_t kFew = 32;
  PyObject *few_in[kFew], *few_out[kFew];
  std::vector<PyObject*> many(group.inputs.size() + group.outputs.size() > kFew ? group.inputs.size() + group.outputs.size() : 0);
  PyObject** in = many.empty() ? few_in : many.data();
  PyObject** out = many.empty() ? few_out : many.data() + group.inputs.size();
  for (size_t i = 0; i < group.inputs.size(); ++i) in[i] = r[group.inputs[i]].o;
  try {
    if (runner.run(in, out) != RunResult::kDone) return false;
  } catch (const std::bad_alloc&) {  // NumPy may have more luck
    return false;
  }
  for (size_t i = 0; i < group.outputs.size(); ++i) r[group.outputs[i]].o = out[i];
  return true;
}

}  // namespace

// imm: the group; exit: the plan to leave by before anything is done; link: the frames as they are then.
const Step* step_segment(const Step* s, Reg* r, Machine& m) {
  ProgramImpl& p = *m.program;
  const Group& group = p.groups[s->imm];
  if (const Step * next; *m.breaker != 0 && !settle(s, m, &next)) [[unlikely]]
    return next;
  if (m.dirty && !facts_hold(group, r)) return leave(m, s->exit);
  if (group.runner >= 0 && run_kernel(*p.runners[group.runner], group, r)) [[likely]]
    return s + 1;
  const Step* next;
  if (!run_one_by_one(m, group.ops, p.live_of(p.plans[s->exit]), &next, &group.dead_after)) return next;
  if (group.after < 0) return s + 1;
  if (!undisturbed(m)) return leave_disturbed(m, group.after);
  if (!p.world_holds()) return leave(m, group.after);
  return s + 1;
}

std::vector<SegmentInfo> ProgramImpl::segment_ops() const {
  std::vector<SegmentInfo> segments;
  for (const Group& g : groups) segments.push_back({g.ops, g.runner >= 0 ? runners[g.runner].get() : nullptr});
  return segments;
}

int ProgramImpl::traverse(visitproc visit, void* arg) const {
  for (PyObject* o : live->objects) Py_VISIT(o);
  for (const World& w : worlds) Py_VISIT(w.version.dict());
  return 0;
}

}  // namespace dalsegno::replay
