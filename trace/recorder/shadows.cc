// The builder's frames as values: what their slots hold, and how they are written into snapshots.
#include <algorithm>
#include <utility>

#include "trace/recorder/builder.h"
#include "trace/recorder/deaths.h"
#include "trace/recorder/return_actions.h"

namespace dalsegno::recorder {

// ---- slots -----------------------------------------------------------------------------------------------------------------

void Builder::hold(ValueId v, int change) {
  if (v == kNull) return;
  info_[v].slots += change;
  touched_.push_back(v);
}

void Builder::push(ValueId v) {
  innermost().stack.push_back(v);
  changes_.push_back({Change::What::push, 0, kNull});
  hold(v, +1);
}

void Builder::replace_top(int count, ValueId v) {
  hold(v, +1);
  pop(count);
  push(v);
  hold(v, -1);
}

ValueId Builder::pop() {
  Shadow& f = innermost();
  ValueId v = f.stack.back();
  f.stack.pop_back();
  f.kept = std::min(f.kept, f.stack.size());
  changes_.push_back({Change::What::pop, 0, v});
  hold(v, -1);
  return v;
}

void Builder::pop(int count) {
  for (int i = 0; i < count; ++i) pop();
}

void Builder::set_local(int index, ValueId v) {
  Shadow& f = innermost();
  hold(v, +1);
  hold(f.locals[index], -1);
  changes_.push_back({Change::What::local, index, f.locals[index]});
  f.locals[index] = v;
  f.changed.push_back(index);
}

// Values that no slot holds any more die here, as in eager: while the instruction at `at` is done, with the next one at `next` (-1: before
// the first instruction, when something else holds them).
void Builder::release_dead(int at, int next) {
  std::vector<ValueId> dead, look_at = std::exchange(touched_, {});
  bool quick = true;
  std::reverse(look_at.begin(), look_at.end());  // the next one is the last
  while (!look_at.empty()) {
    const ValueId v = look_at.back();
    look_at.pop_back();
    if (v < 0 || info_[v].slots != 0 || trace_->data.ops[v].kind == OpKind::constant) continue;
    info_[v].slots = -1;
    dead.push_back(v);
    no_longer_made(v);
    quick = quick && simple(v);
    // Next is what a dead container has held: of lists and tuples, the last item first.
    look_at.insert(look_at.end(), touched_.begin(), touched_.end());
    if (info_[v].type == &PyDict_Type) std::reverse(look_at.end() - static_cast<int64_t>(touched_.size()), look_at.end());
    touched_.clear();
  }
  if (dead.empty()) return;
  quick = quick || next < 0;
  emit(OpKind::release, dead, {.effects = quick ? kNoEffect : kDropsReferences, .snapshot = false});
  if (!quick) stand_behind(at, next);
}

// ---- frames entered and left -----------------------------------------------------------------------------------------------

void Builder::enter(Shadow inner, int at, int next, int action) {
  innermost().action = action;
  innermost().call_at = at;
  innermost().call_next = next;
  std::vector<ValueId> inputs{inner.function};
  for (ValueId v : inner.locals)
    if (v != kNull) inputs.push_back(v);
  emit(OpKind::enter, inputs, {.snapshot = false});
  for (ValueId v : inner.locals) hold(v, +1);
  for (ValueId v : inner.stack) hold(v, +1);
  hold(inner.function, +1);
  shadows_.push_back(std::move(inner));
}

void Builder::take_result(ValueId value, int action) {
  const auto what = what_of(action);
  pop(operands_of(action));
  if (what != hook::ReturnAction::kDiscard && what != hook::ReturnAction::kInstance) push(value);
}

void Builder::put_below(ValueId v, int count) {
  const std::vector<ValueId>& stack = innermost().stack;
  const std::vector<ValueId> above(stack.end() - count, stack.end());
  for (const ValueId kept : above) hold(kept, +1);
  pop(count + 1);
  push(v);
  for (const ValueId kept : above) push(kept), hold(kept, -1);
}

ValueId Builder::end_frame() {
  const ValueId value = pop();
  hold(value, +1);
  emit(OpKind::leave_frame, {value}, {.snapshot = false});
  const Shadow gone = std::move(shadows_.back());
  shadows_.pop_back();
  for (ValueId v : in_order_of_deaths(gone.locals, gone.stack)) hold(v, -1);
  hold(gone.function, -1);
  innermost().at_call = -1;
  return value;
}

void Builder::leave() {
  const ValueId value = end_frame();
  take_result(value, std::exchange(innermost().action, 0));
  hold(value, -1);
}

int Builder::leave_ended() {
  hold(end_frame(), -1);
  return std::exchange(innermost().action, 0);
}

ValueId Builder::running_generator() const {
  if (shadows_.size() < 2) return kNull;
  const ValueId* generator = generator_inside(shadows_[shadows_.size() - 2]);
  return generator ? *generator : kNull;
}

// ---- snapshots -------------------------------------------------------------------------------------------------------------

int Builder::code_object(Shadow& f) {
  if (f.code_object < 0) f.code_object = object_index(reinterpret_cast<PyObject*>(f.code), f.code_path);
  return f.code_object;
}

// The frame as what differs from how it was last written, or in full where that has become long.
int Builder::add_frame(Shadow& f, int outer, int offset, int after, int64_t* weight) {
  Snapshots& to = trace_->data.snapshots;
  std::vector<int>& changed = changed_;
  changed = f.changed;
  if (changed.size() > 1) {
    std::sort(changed.begin(), changed.end());
    changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  }
  FrameDelta head;
  head.outer = outer;
  head.function = f.function;
  head.code = code_object(f);
  head.offset = offset;
  head.after = after;
  head.action = f.action;
  head.n_locals = static_cast<int>(f.locals.size());
  *weight = f.weight + 1 + static_cast<int64_t>(changed.size() + f.stack.size() - f.kept);
  if (f.written >= 0 && *weight <= delta_budget(f.locals.size() + f.stack.size())) {
    head.base = f.written;
    head.kept = static_cast<int>(f.kept);
  } else {
    *weight = 0;
    changed.clear();
    for (size_t i = 0; i < f.locals.size(); ++i)
      if (f.locals[i] != kNull) changed.push_back(static_cast<int>(i));
  }
  const int added = to.add_frame(head);
  for (int i : changed) to.change(i, f.locals[i]);
  for (size_t i = head.kept; i < f.stack.size(); ++i) to.push(f.stack[i]);
  return added;
}

int Builder::write_frame(Shadow& f, int outer, int offset, int after) {
  int64_t weight;
  f.written = add_frame(f, outer, offset, after, &weight);
  f.weight = weight;
  f.changed.clear();
  f.kept = f.stack.size();
  return f.written;
}

// They do not change while frames inside them run, so each is written once a call.
int Builder::write_outer() {
  int outer = -1;
  for (size_t i = 0; i + 1 < shadows_.size(); ++i) {
    Shadow& f = shadows_[i];
    if (f.at_call < 0) f.at_call = write_frame(f, outer, f.call_at, f.call_next);
    outer = f.at_call;
  }
  return outer;
}

int Builder::add_snapshot(int innermost) {
  Snapshots& to = trace_->data.snapshots;
  to.tops.push_back(innermost);
  return static_cast<int>(to.tops.size()) - 1;
}

void Builder::swap_state() {
  Shadow& f = innermost();
  for (auto change = changes_.rbegin(); change != changes_.rend(); ++change) {
    switch (change->what) {
      case Change::What::local:
        std::swap(f.locals[change->local], change->v);
        f.changed.push_back(change->local);
        break;
      case Change::What::push:
        change->v = f.stack.back();
        f.stack.pop_back();
        f.kept = std::min(f.kept, f.stack.size());
        break;
      case Change::What::pop:
        f.stack.push_back(change->v);
        break;
    }
  }
  std::reverse(changes_.begin(), changes_.end());
  for (Change& change : changes_)
    if (change.what != Change::What::local) change.what = change.what == Change::What::push ? Change::What::pop : Change::What::push;
}

int Builder::snapshot() {
  if (check_.snapshot >= 0) return check_.snapshot;
  swap_state();
  check_.snapshot = add_snapshot(write_frame(innermost(), write_outer(), start_, 0));
  swap_state();
  return check_.snapshot;
}

int Builder::snapshot_now(int offset) { return add_snapshot(write_frame(innermost(), write_outer(), offset, 0)); }

int Builder::snapshot_aside(int offset) {
  int64_t ignored;
  return add_snapshot(add_frame(innermost(), write_outer(), offset, 0, &ignored));
}

Snapshot Builder::shape_now(int offset) {
  Snapshot s;
  for (size_t i = 0; i < shadows_.size(); ++i) {
    bool innermost = i + 1 == shadows_.size();
    s.frames.push_back(frame_image(shadows_[i], innermost ? offset : shadows_[i].call_at, innermost ? 0 : shadows_[i].call_next));
  }
  return s;
}

SnapshotFrame Builder::frame_image(Shadow& f, int offset, int after) {
  SnapshotFrame image;
  image.function = f.function;
  image.code = code_object(f);
  image.offset = offset;
  image.after = after;
  image.action = f.action;
  image.locals = f.locals;
  image.stack = f.stack;
  return image;
}

}  // namespace dalsegno::recorder
