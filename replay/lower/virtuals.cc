// Objects that are not built: they exist as their parts, and a plan to leave by builds them first (exits.cc).
#include <algorithm>
#include <utility>

#include "replay/lower/lower.h"
#include "replay/typed/virtual.h"

namespace dalsegno::replay {

void Lowering::emit_index(const Op& o, ValueId i) {
  if (form(i).mode != Mode::kVirtual) return emit_python(o, i);
  const bool slice = o.kind == OpKind::build_slice;
  put_off(o, i, slice ? Virtual::kSlice : o.kind == OpKind::build_list ? Virtual::kList : Virtual::kTuple, 0);
}

void Lowering::emit_bind_method(const Op& o, ValueId i) {
  if (form(i).mode != Mode::kVirtual) return emit_python(o, i);
  put_off(o, i, Virtual::kBound, 0);
}

// range() itself raises where the step is 0.
void Lowering::emit_range(const Op& o, ValueId i) {
  if (o.n_inputs == 4) {
    Step s = base(o, i);
    s.fn = step_range_step;
    s.does = native::Do::kGuardTruth;
    s.link = -1;
    s.a = loc(in(o)[3]).raw;
    s.n = 1;
    push(s);
  }
  put_off(o, i, Virtual::kRange, 1);
}

// The op's inputs from `first` on are its parts.
void Lowering::put_off(const Op& o, ValueId i, Virtual::Kind kind, int32_t first) {
  Virtual& what = p_->virtuals.emplace_back();
  what.reg = loc(i).obj;
  what.kind = kind;
  for (int32_t k = first; k < o.n_inputs; ++k) {
    Loc part = loc(in(o)[k]);
    if (values_[in(o)[k]].passing) part.obj = -1;
    what.parts.push_back(part);
    const Virtual* inner = virtual_of(in(o)[k]);
    what.inner.push_back(inner && inner->kind == Virtual::kSlice ? inner : nullptr);
  }
  is_not_built(i, &what);
}

// Operands that are released before it is made, if it is, are held until then.
void Lowering::delay(const Op& o, ValueId i) {
  Step made = python_step(o, i);
  Virtual& what = p_->virtuals.emplace_back();
  what.kind = Virtual::kDelayed;
  what.reg = loc(i).obj;
  const auto operand = [&](int32_t k) {
    const ValueId v = in(o)[k];
    if (const Virtual* inner = virtual_of(v)) what.inner.push_back(inner);
    return is_constant(v) || virtual_of(v) ? loc(v).obj : held_for_later(o, v);
  };
  if (made.list) {
    std::vector<int32_t> regs;
    for (int32_t k = 0; k < o.n_inputs; ++k) regs.push_back(operand(k));
    made.list = list(std::move(regs)).data();
  } else {
    made.a = operand(0), made.b = operand(1);
  }
  what.step = &p_->delayed.emplace_back(made);
  is_not_built(i, &what);
}

int32_t Lowering::held_for_later(const Op& o, ValueId v) {
  const Quick hold = hold_step();
  Step s;
  s.fn = hold.fn;
  s.exec = hold.quick;
  s.does = native::Do::kQuick;
  s.only_called = true;
  s.a = loc(v).obj;
  s.dst = new_reg();
  push(s);
  p_->live_log.begins(s.dst);
  version_++;
  return s.dst;
}

void Lowering::emit_make_function(const Op& o, ValueId i) { form(i).mode == Mode::kDelayed ? delay(o, i) : emit_python(o, i); }

// A call that uses up a generator which is not made, if it and its function have not been by now.
void Lowering::emit_use(const Op& o, ValueId i) {
  const ValueId used_up = in(o)[o.n_inputs - 1];
  const Virtual* generator = virtual_of(used_up);
  const Virtual* function = generator && !generator->inner.empty() ? generator->inner[0] : nullptr;
  if (!function || (!function->step->list && function->inner.empty())) {
    if (generator) build_virtuals(i);
    return emit_python(o, i);
  }
  UsedUp& of = p_->used_up.emplace_back();
  of.generator = generator;
  of.iterator = generator->step->list[1];
  if (!function->step->list) {
    of.closure = function->step->b;
    function = function->inner[0];
  } else if (function->step->n > 1) {
    of.closure = function->step->list[1];
  }
  of.code = function->step->list[0];
  of.globals = function->step->object;
  Step s = python_step(o, i);
  const Quick use = fold_unmade_step(object(op(in(o)[0]).object));
  s.fn = use.fn;
  s.exec = use.quick;
  s.silent = [](const Step& made, const Reg* r) { return r[made.used_up->generator->reg].o == nullptr; };
  s.does = native::Do::kStep;
  s.only_called = true;
  s.used_up = &of;
  forget_virtual(used_up);
  push(s);
  for (const int32_t held : {of.iterator, of.closure})
    if (held >= 0) p_->live_log.ends(held);
  defined(i);
}

// iter() of a range that is not built.
void Lowering::emit_get_iter(const Op& o, ValueId i) {
  if (form(i).mode != Mode::kIterator) return emit_python(o, i);
  const Op& range = op(in(o)[0]);
  std::vector<int32_t> parts;
  for (int32_t k = 1; k < range.n_inputs; ++k) parts.push_back(loc(in(range)[k]).raw);
  Step s = base(o, i);
  s.fn = step_range_iterator;
  s.does = native::Do::kRangeIterator;
  s.link = -1;
  s.dst = loc(i).obj;
  s.n = static_cast<int32_t>(parts.size());
  s.list = list(std::move(parts)).data();
  push(s);
  defined(i);
  proven(i, reinterpret_cast<PyObject*>(&PyRangeIter_Type), i);
}

// A row of an array, or of a row that is not built either.
void Lowering::emit_row(const Op& o, ValueId i) {
  std::vector<ValueId> positions = {in(o)[1]};
  ValueId array = in(o)[0];
  int32_t facts = form(i).facts;
  for (; form(array).mode == Mode::kVirtual; array = in(op(array))[0]) {
    positions.insert(positions.begin(), in(op(array))[1]);
    facts = form(array).facts;
  }
  Step s = base(o, i);
  s.fn = step_row;
  s.a = boxed(array, o, i);
  s.imm = t().facts[facts].rank;
  Virtual& what = p_->virtuals.emplace_back();
  what.reg = loc(i).obj;
  what.kind = Virtual::kRow;
  what.parts.push_back(loc(array));
  std::vector<int32_t> regs;
  for (ValueId v : positions) {
    what.parts.push_back(loc(v));
    what.parts.back().obj = -1;  // the row does not hold it
    regs.push_back(loc(v).raw);
  }
  s.n = static_cast<int32_t>(regs.size());
  s.list = list(std::move(regs)).data();
  push(s);
  is_not_built(i, &what);
}

void Lowering::is_not_built(ValueId v, const Virtual* what) {
  defined(v);
  virtuals_.emplace_back(v, what);
  version_++;
}

// A part of something that is not built, and dies neither before nor in the same release, of which others may hold the object.
bool Lowering::is_part(ValueId v, const Op& release) const {
  const int32_t reg = loc(v).obj;
  if (values_[v].passing || reg < 0) return false;
  return std::any_of(virtuals_.begin(), virtuals_.end(), [&](const auto& one) {
    const bool dead = std::find(deferred_.begin(), deferred_.end(), one.first) != deferred_.end();
    if (dead || typed::takes(t(), release, one.first)) return false;
    return std::any_of(one.second->parts.begin(), one.second->parts.end(), [&](const Loc& part) { return part.obj == reg; });
  });
}

bool Lowering::uses_up(const Op& o) const {
  if (o.kind != OpKind::call || o.n_inputs < 2) return false;
  const ValueId last = in(o)[o.n_inputs - 1];
  return op(last).kind == OpKind::call && form(last).mode == Mode::kDelayed;
}

bool Lowering::is_virtual(ValueId v) const {
  return std::any_of(virtuals_.begin(), virtuals_.end(), [&](const auto& one) { return one.first == v; });
}

// Numbers, texts and iterators over ranges die without running code.
bool Lowering::dies_quietly(ValueId v) const {
  const PyObject* type = values_[v].type;
  return values_[v].rep != Rep::kNone || type == reinterpret_cast<PyObject*>(&PyUnicode_Type) ||
         type == reinterpret_cast<PyObject*>(&PyRangeIter_Type);
}

// A number that a tuple which is not built holds, and nobody else: it dies with the tuple, or behind its birth.
bool Lowering::is_held(ValueId v, const Op& release) const { return values_[v].rep != Rep::kNone && is_part(v, release); }

// May op i be done while something is not built? What shows no frames, takes no object that is not built, and changes none of the parts.
bool Lowering::leaves_virtuals(const Op& o, ValueId i) const {
  const auto delayed = [&](const auto& one) { return one.second->kind == Virtual::kDelayed; };
  const bool quiet = o.kind != OpKind::release && !shows_frames(o.effects);
  if ((quiet || uses_up(o)) && std::all_of(virtuals_.begin(), virtuals_.end(), delayed)) return true;
  if (takes_views(o, i)) return false;
  if (o.kind == OpKind::guard_world) return world_proven_;
  if (o.kind == OpKind::release)
    return std::all_of(in(o), in(o) + o.n_inputs, [&](ValueId v) { return is_virtual(v) || is_held(v, o) || !is_part(v, o); });
  return typed::leaves_unbuilt(typed_, i);
}

void Lowering::build_virtuals(ValueId because) {
  for (const auto& [v, what] : virtuals_) {
    Step s;
    s.fn = step_build;
    s.what = what;
    s.exit = plan(because, 0);
    push(s);
  }
  virtuals_.clear();
  version_++;
  release(std::exchange(held_, {}), because);
}

// What of `values` is to be released now, in the op `release`: not what is held, but what those have held that die.
void Lowering::find_released(std::vector<ValueId>* values, const Op& release) {
  std::erase_if(*values, [&](ValueId v) { return dies_unbuilt(v); });
  std::erase_if(*values, [&](ValueId v) { return is_held(v, release) && (held_.push_back(v), true); });
  std::erase_if(held_, [&](ValueId v) { return !is_part(v, release) && (values->push_back(v), true); });
}

// Is there nothing to release?
bool Lowering::dies_unbuilt(ValueId v) {
  if (!is_virtual(v)) return false;
  forget_virtual(v);
  if (values_[v].lent) return false;
  p_->live_log.ends(loc(v).obj);
  return true;
}

// The step before may have built all there are.
void Lowering::lend_virtuals() {
  for (const auto& [v, what] : virtuals_) values_[v].lent = true;
}

void Lowering::forget_virtual(ValueId v) {
  version_ += std::erase_if(virtuals_, [&](const auto& one) { return one.first == v; });
}

}  // namespace dalsegno::replay
