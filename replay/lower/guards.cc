// Guards: those that something before has proven need no step.
#include <algorithm>
#include <iterator>

#include "replay/lower/lower.h"
#include "replay/machine/scalars.h"
#include "trace/fault.h"

namespace dalsegno::replay {

void Lowering::emit_guard(const Op& o, ValueId i) {
  const bool callee = o.kind == OpKind::guard_function || o.kind == OpKind::guard_builtin;
  if (callee && planted(Fault::dropped_function_guard)) return;
  if (o.kind == OpKind::guard_quiet_lookup && form(i + 1).mode == Mode::kLookup) return;  // it looks itself
  int32_t reg = o.n_inputs ? boxed(in(o)[0], o, i) : -1, other = o.n_inputs > 1 ? boxed(in(o)[1], o, i) : -1;
  Step s = base(o, i);
  s.fn = guard_step(o.kind);
  s.a = reg;
  s.b = other;
  if (o.kind == OpKind::guard_function) s.name = object(o.imm);
  s.exec = guard_holds(o.kind);
  if (s.exec) s.does = native::Do::kQuick;
  if (o.kind == OpKind::guard_is || o.kind == OpKind::guard_is_not) s.does = native::Do::kGuardIs, s.n = o.kind == OpKind::guard_is;
  if (o.kind == OpKind::guard_function) s.does = native::Do::kGuardFunction;
  if (o.kind == OpKind::guard_waiting) s.does = native::Do::kGuardWaiting;
  if (o.kind == OpKind::guard_defaults) s.does = native::Do::kGuardDefaults;
  if (o.kind == OpKind::guard_truthy) s.does = native::Do::kGuardTruthy;
  if (o.kind == OpKind::guard_type) s.does = native::Do::kGuardType;
  if (o.kind == OpKind::guard_array && typed::rep_of_dtype(t().facts[o.facts].dtype) != Rep::kNone)
    s.does = native::Do::kGuardArray, s.rep = typed::rep_of_dtype(t().facts[o.facts].dtype), s.n = t().facts[o.facts].rank;
  push(s);
}

void Lowering::emit_guard_quiet(const Op& o, ValueId i) {
  auto& known = p_->types[in(o)[0]];
  if (known.type == quiet_mark()) return;
  emit_guard(o, i);
  known = {quiet_mark(), i};
}

void Lowering::emit_guard_type(const Op& o, ValueId i) {
  ValueId v = in(o)[0];
  Value& value = values_[v];
  PyObject* type = object(o.object);
  if (value.type == type) return;
  const Rep named = typed::rep_of_type(typed_.known.objects[o.object].names);
  constexpr Mode kTakingParts[] = {Mode::kItem, Mode::kLookup, Mode::kAttribute, Mode::kHeap, Mode::kPart};
  const bool taken = std::find(std::begin(kTakingParts), std::end(kTakingParts), form(v).mode) != std::end(kTakingParts);
  const bool natural = value.rep == Rep::kNatural && named == Rep::kInt && value.born_raw;
  if (natural || ((value.born_raw || taken) && named == value.rep && named != Rep::kNone)) {
    proven(v, type, i);
    return;
  }
  const bool unboxes = !value.born_raw && loc(v).raw >= 0 && value.since == i;
  if (!unboxes && !value.born_raw) boxed(v, o, i);
  Step s = base(o, i);
  s.fn = value.born_raw ? step_leave : guard_step(o.kind);
  s.does = value.born_raw ? native::Do::kEnd : native::Do::kGuardType;
  s.a = loc(v).obj;
  if (unboxes) {
    s.fn = guard_unbox_step(value.rep);
    s.does = native::Do::kUnbox;
    s.rep = value.rep;
    s.dst = loc(v).raw;
  }
  push(s);
  proven(v, type, i);
}

void Lowering::proven(ValueId v, PyObject* type, ValueId since) {
  values_[v].type = type;
  if (may_change_class(type)) {
    learned_.push_back(v);
  } else {
    p_->types[v] = {type, since};
  }
}

void Lowering::emit_guard_array(const Op& o, ValueId i) {
  if (form(in(o)[0]).mode == Mode::kVirtual) return;  // its elements look at the array
  Value& value = values_[in(o)[0]];
  if (value.facts == t().facts[o.facts]) return;
  emit_guard(o, i);
  p_->steps.back().imm = o.facts;
  value.facts = t().facts[o.facts];
  learned_.push_back(in(o)[0]);
}

void Lowering::emit_guard_truth(const Op& o, ValueId i) {
  if (planted(Fault::dropped_guard)) return;
  if (values_[in(o)[0]].rep != Rep::kBool) return emit_guard(o, i);
  Step s = base(o, i);
  bool wanted = o.kind == OpKind::guard_true;
  s.a = loc(in(o)[0]).raw;
  s.fn = wanted ? step_guard_raw_true : step_guard_raw_false;
  s.does = native::Do::kGuardTruth;
  s.n = wanted;
  // A comparison just made is guarded in the same step.
  Step* last = p_->steps.empty() ? nullptr : &p_->steps.back();
  StepFn both = last && last->dst == s.a ? guarded_compare(last->fn, wanted) : nullptr;
  if (!both) {
    push(s);
    return;
  }
  last->fn = both;
  last->does = native::Do::kGuardedCompare;
  last->n = wanted;
  last->exit = s.exit;
}

void Lowering::emit_guard_world(const Op& o, ValueId i) {
  if (world_proven_ || planted(Fault::dropped_world_guard)) return;
  if (settles_ >= 0 && settles_ + 1 == static_cast<int32_t>(p_->steps.size())) p_->steps.back().n = 1;
  Step s = base(o, i);
  s.fn = step_guard_world;
  s.does = native::Do::kGuardWorld;
  s.link = o.snapshot;
  push(s);
  world_proven_ = true;
}

}  // namespace dalsegno::replay
