// Array ops that wait: done together by a segment runner, or one by one by NumPy.
#include <algorithm>
#include <new>

#include "numpy/dtypes.h"
#include "numpy/errstate.h"
#include "replay/machine/loop_plan.h"
#include "replay/machine/run.h"
#include "replay/settings.h"

namespace dalsegno::replay {

void drop_quietly(const std::vector<int32_t>& regs, Reg* r) {
  for (int32_t reg : regs)
    if (r[reg].o && drops_quietly(r[reg].o)) Py_CLEAR(r[reg].o);
}

namespace {

// What an array op works on, as objects.
void make_operands(const ProgramImpl& p, int32_t op, Reg* r) {
  for (const Lacking& lack : p.array_lacks[static_cast<size_t>(p.array_step[op])]) {
    if (lack.what ? build(*lack.what, r) : r[lack.number.obj].o || (r[lack.number.obj].o = box(lack.number.rep, r[lack.number.raw])))
      continue;
    throw std::bad_alloc();
  }
}

// Leaves as the i-th of the ops fails. What has been done so far is in its snapshot or not needed; both own their registers.
const Step* fail_at(Machine& m, const std::vector<int32_t>& ops, size_t i, const std::vector<int32_t>& live) {
  ProgramImpl& p = *m.program;
  const Step& s = p.array_steps[p.array_step[ops[i]]];
  ExitPlan here;
  here.exit = p.plans[s.exit].exit;
  here.op = ops[i];
  here.snapshot = p.plans[s.exit].snapshot;
  here.live = live;
  for (size_t k = 0; k < i; ++k) here.live.push_back(p.locs[ops[k]].obj);
  return fail_by(m, here, false);
}

}  // namespace

bool run_one_by_one(Machine& m, const std::vector<int32_t>& ops, const std::vector<int32_t>& live, const Step** next,
                    const std::vector<std::vector<int32_t>>* dead_after, int64_t* most) {
  ProgramImpl& p = *m.program;
  for (size_t i = 0; i < ops.size(); ++i) {
    const Step& s = p.array_steps[p.array_step[ops[i]]];
    make_operands(p, ops[i], m.r);
    bool ok;
    {
      WarningScope frames(m, s.link);  // (no array op runs more)
      ok = s.exec(s, m.r);
    }
    if (ok) {
      if (most) *most = std::max(*most, array_bytes(p, m.r));
      if (dead_after) drop_quietly((*dead_after)[i], m.r);
      continue;
    }
    *next = fail_at(m, ops, i, live);
    return false;
  }
  return true;
}

bool facts_hold(const Group& group, const Reg* r) {
  for (size_t i = 0; i < group.inputs.size(); ++i)
    if (group.facts[i].rank >= 0 && !numpy::has_facts(r[group.inputs[i]].o, group.facts[i])) return false;
  return true;
}

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

namespace {

// Behind ops that were done by NumPy, which may have warned.
const Step* go_on_behind(const Step* s, Machine& m, const Group& group) {
  if (group.after < 0) return s + 1;
  if (!undisturbed(m)) return leave_disturbed(m, group.after);
  if (!m.program->world_holds()) return leave(m, group.after);
  return s + 1;
}

// Warns as NumPy would have. (A warning that raises all the same, as there is no memory for it, comes behind the write.)
const Step* warned(const Step* s, Machine& m, const Group& group, const std::vector<int>& raised) {
  ProgramImpl& p = *m.program;
  std::vector<int32_t> ops = group.ops, live = p.live_of(p.plans[s->exit]);
  if (raised.size() > ops.size()) ops.push_back(group.sink);
  for (size_t i = 0; i < raised.size(); ++i) {
    if (raised[i] == 0) continue;
    bool ok;
    {
      WarningScope frames(m, p.array_steps[p.array_step[ops[i]]].link);
      ok = numpy::warn_of(array_fn_name(group.loops->ops[i].fn), raised[i]);
    }
    if (!ok) return fail_at(m, ops, i, live);
  }
  return go_on_behind(s, m, group);
}

// The write that ends the group, by NumPy.
const Step* written(const Step* s, Machine& m, const Group& group) {
  if (group.sink >= 0) {
    std::vector<int32_t> live = m.program->live_of(m.program->plans[s->exit]);
    live.insert(live.end(), group.outputs.begin(), group.outputs.end());
    if (const Step * next; !run_one_by_one(m, {group.sink}, live, &next, nullptr)) return next;
  }
  return go_on_behind(s, m, group);
}

// What slots hold and is not built would not be there for code that looks at frames.
void make_all(ProgramImpl& p, const Step& s, const Group& group, Reg* r) {
  build_all(p.plans[s.exit], r);
  for (int32_t op : group.ops) make_operands(p, op, r);
}

const Step* one_by_one(const Step* s, Machine& m, Group& group, bool measured) {
  ProgramImpl& p = *m.program;
  const int64_t before = measured ? array_bytes(p, m.r) : 0;
  const Step* next;
  if (!run_one_by_one(m, group.ops, p.live_of(p.plans[s->exit]), &next, &group.dead_after, measured ? &p.most_bytes : nullptr)) return next;
  if (measured) note_measure(group, m.r, before);
  return written(s, m, group);
}

const Step* in_parts(const Step* s, Machine& m, const Group& group) {
  const Step* next;
  bool noticed = false;
  if (!run_in_parts(m, group, m.program->live_of(m.program->plans[s->exit]), &next, &noticed)) return next;
  return noticed || group.sink >= 0 ? written(s, m, group) : s + 1;
}

}  // namespace

// Has it been done while it was reduced? (Then other threads may have run.)
static bool is_done(const ProgramImpl& p, const Group& group, const Reg* r) {
  return group.reduced >= 0 && is_reduced(*p.reduced_groups[static_cast<size_t>(group.reduced)], r);
}

Tried run_at_once(ProgramImpl& p, const Step& s, Reg* r, const Machine& m, Attempt* attempt) {
  Group& group = p.groups[static_cast<size_t>(s.imm)];
  if (*m.breaker != 0 || m.unsettled || !m.kept_frames.empty() || (m.dirty && !facts_hold(group, r)) || is_done(p, group, r))
    return Tried::kNot;
  return run_without_objects(p, group, r, settings().inner_loops, attempt) ? Tried::kDone : Tried::kNeedsObjects;
}

const Step* run_with_objects(const Step* s, Reg* r, Machine& m, Attempt& attempt) {
  ProgramImpl& p = *m.program;
  Group& group = p.groups[s->imm];
  make_all(p, *s, group, r);
  if (!attempt.raised.empty()) return warned(s, m, group, attempt.raised);
  if (group.unread && !m.kept_frames.empty()) return one_by_one(s, m, group, false);  // a frame was kept: it is looked at later
  std::optional<Way>& way = attempt.way;
  if (!way) way = way_of(p, group, r, true);
  if (*way == Way::kAtOnce && run_letting_go(p, group, r, &attempt)) return s + 1;
  if (!attempt.raised.empty()) return warned(s, m, group, attempt.raised);
  if (*way == Way::kAtOnce) way = way_of(p, group, r, false);
  if (*way == Way::kInParts) return in_parts(s, m, group);
  if (*way == Way::kAtOnce && group.runner >= 0 && run_kernel(*p.runners[group.runner], group, r)) [[likely]]
    return group.sink >= 0 ? written(s, m, group) : s + 1;
  return one_by_one(s, m, group, *way == Way::kMeasured);
}

// imm: the group; exit: the plan to leave by before anything is done; link: the frames as they are then.
const Step* step_segment(const Step* s, Reg* r, Machine& m) {
  ProgramImpl& p = *m.program;
  Group& group = p.groups[s->imm];
  if (const Step * next; *m.breaker != 0 && !settle(s, m, &next)) [[unlikely]]
    return next;
  if (m.dirty && !facts_hold(group, r)) return leave(m, s->exit);
  if (is_done(p, group, r)) return go_on(s + 1, r, m);
  Attempt attempt;
  if (m.kept_frames.empty() && run_without_objects(p, group, r, settings().inner_loops, &attempt)) return go_on(s + 1, r, m);
  return run_with_objects(s, r, m, attempt);
}

std::vector<SegmentInfo> ProgramImpl::segment_ops() const {
  std::vector<SegmentInfo> segments;
  for (const Group& g : groups) {
    const SegmentRunner* fused = g.fused >= 0 ? part_runners[g.fused].get() : nullptr;
    const SegmentRunner* runner = g.runner >= 0 ? runners[g.runner].get() : nullptr;
    segments.push_back({g.ops, g.sink, g.loops && g.loops->by_loops, fused && !fused->kernels().empty() ? fused : runner});
  }
  return segments;
}

int ProgramImpl::traverse(visitproc visit, void* arg) const {
  for (PyObject* o : live->objects) Py_VISIT(o);
  for (const FoldedGuards& w : folded) Py_VISIT(w.version.dict());
  return 0;
}

}  // namespace dalsegno::replay
