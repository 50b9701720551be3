// Values, ops and snapshots of the trace being recorded; which slots hold which value.
#include <algorithm>

#include "trace/recorder/recorder.h"
#include "trace/recorder/text.h"

namespace dalsegno::recorder {

ValueId Recorder::emit(OpKind kind, std::span<const ValueId> inputs, EmitArgs args) {
  Trace& t = trace_->data;
  int snap = args.snapshot ? snapshot() : -1;
  Op op;
  op.kind = kind;
  op.effects = args.effects & op_effects(kind);
  op.imm = args.imm;
  op.object = args.object;
  op.object2 = args.object2;
  op.name = args.name;
  op.snapshot = snap;
  op.first_input = static_cast<int>(t.inputs.size());
  op.n_inputs = static_cast<int>(inputs.size());
  op.line = pending_ ? pending_->line : 0;
  op.depth = frames_.empty() ? 0 : static_cast<int>(frames_.size()) - 1;
  t.inputs.insert(t.inputs.end(), inputs.begin(), inputs.end());
  may_change(op);
  t.ops.push_back(op);
  info_.emplace_back();
  auto v = static_cast<ValueId>(t.ops.size()) - 1;
  if (op_has_result(kind)) touched_.push_back(v);
  return v;
}

ValueId Recorder::emit(OpKind kind, std::initializer_list<ValueId> inputs, EmitArgs args) {
  return emit(kind, std::span(inputs.begin(), inputs.size()), args);
}

// ---- snapshots -------------------------------------------------------------------------------------------------------------

// The frame as what differs from how it was last written, or in full where that has become long.
int Recorder::code_object(const Frame& f) {
  if (f.code_object < 0) f.code_object = object_index(reinterpret_cast<PyObject*>(f.code->code), f.code_path);
  return f.code_object;
}

int Recorder::add_frame(const Frame& f, int outer, int offset, int after, int64_t* weight) {
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

int Recorder::write_frame(Frame& f, int outer, int offset, int after) {
  int64_t weight;
  f.written = add_frame(f, outer, offset, after, &weight);
  f.weight = weight;
  f.changed.clear();
  f.kept = f.stack.size();
  return f.written;
}

// They do not change while frames inside them run, so each is written once a call.
int Recorder::write_outer() {
  int outer = -1;
  for (size_t i = 0; i + 1 < frames_.size(); ++i) {
    Frame& f = frames_[i];
    if (f.at_call < 0) f.at_call = write_frame(f, outer, f.call->at, f.call->next);
    outer = f.at_call;
  }
  return outer;
}

int Recorder::add_snapshot(int innermost) {
  Snapshots& to = trace_->data.snapshots;
  to.tops.push_back(innermost);
  return static_cast<int>(to.tops.size()) - 1;
}

void Recorder::swap_state() {
  Frame& f = frame();
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

int Recorder::snapshot() {
  if (check_.snapshot >= 0) return check_.snapshot;
  swap_state();
  check_.snapshot = add_snapshot(write_frame(frame(), write_outer(), pending_->start, 0));
  swap_state();
  return check_.snapshot;
}

int Recorder::snapshot_now(int offset) { return add_snapshot(write_frame(frame(), write_outer(), offset, 0)); }

int Recorder::snapshot_aside(int offset) {
  int64_t ignored;
  return add_snapshot(add_frame(frame(), write_outer(), offset, 0, &ignored));
}

Snapshot Recorder::shape_now(int offset) {
  Snapshot s;
  for (size_t i = 0; i < frames_.size(); ++i) {
    bool innermost = i + 1 == frames_.size();
    s.frames.push_back(frame_image(frames_[i], innermost ? offset : frames_[i].call->at, innermost ? 0 : frames_[i].call->next));
  }
  return s;
}

SnapshotFrame Recorder::frame_image(const Frame& f, int offset, int after) {
  SnapshotFrame image;
  image.function = f.function;
  image.code = code_object(f);
  image.offset = offset;
  image.after = after;
  image.locals = f.locals;
  image.stack = f.stack;
  return image;
}

// ---- names, objects, values ------------------------------------------------------------------------------------------------

int Recorder::name_index(PyObject* name) {
  PyObject* interned = Py_NewRef(name);
  PyUnicode_InternInPlace(&interned);
  auto [it, fresh] = name_index_.try_emplace(interned, static_cast<int>(trace_->names.size()));
  if (!fresh) {
    Py_DECREF(interned);
    return it->second;
  }
  trace_->names.push_back(interned);
  trace_->data.names.push_back(text_of(interned));
  if (!utf8_of(interned)) object_index(interned, "");  // an object without a source: such a trace is not kept
  return it->second;
}

int Recorder::object_index(PyObject* object, const std::string& path) {
  auto [it, fresh] = object_index_.try_emplace(object, static_cast<int>(trace_->objects.size()));
  if (fresh) {
    trace_->objects.push_back(Py_NewRef(object));
    trace_->data.objects.push_back({path, ""});
  } else if (trace_->data.objects[it->second].source.empty()) {
    trace_->data.objects[it->second].source = path;
  }
  return it->second;
}

ValueId Recorder::constant(PyObject* object, const std::string& path) {
  auto found = constants_.find(object);
  if (found != constants_.end()) return found->second;
  int index = object_index(object, path);
  ValueId v = emit(OpKind::constant, {}, {.object = index, .snapshot = false});
  constants_[object] = v;
  info_[v].object = object;
  info_[v].path = path;
  PyTypeObject* type = Py_TYPE(object);
  if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) info_[v].type = type;
  return v;
}

ValueId Recorder::code_const(int index) {
  if (auto known = constants_.find(const_at(index)); known != constants_.end()) return known->second;
  const Frame& f = frame();
  std::string path = f.code_path.empty() ? "" : f.code_path + ".const[" + std::to_string(index) + "]";
  return constant(const_at(index), path);
}

void Recorder::hold(ValueId v, int change) {
  if (v == kNull) return;
  info_[v].slots += change;
  touched_.push_back(v);
}

void Recorder::push(ValueId v) {
  frame().stack.push_back(v);
  changes_.push_back({Change::What::push, 0, kNull});
  hold(v, +1);
}

ValueId Recorder::pop() {
  Frame& f = frame();
  ValueId v = f.stack.back();
  f.stack.pop_back();
  f.kept = std::min(f.kept, f.stack.size());
  changes_.push_back({Change::What::pop, 0, v});
  hold(v, -1);
  return v;
}

void Recorder::set_local(int index, ValueId v) {
  if (frame_is_kept()) give_up(Reason::frame_kept);
  Frame& f = frame();
  hold(v, +1);
  hold(f.locals[index], -1);
  changes_.push_back({Change::What::local, index, f.locals[index]});
  f.locals[index] = v;
  f.changed.push_back(index);
}

// Values that no slot holds any more die here, as in eager: while the instruction at `at` is done, with the next one at `next` (-1: before
// the first instruction, when something else holds them).
void Recorder::release_dead(int at, int next) {
  std::vector<ValueId> dead;
  bool quick = true;
  for (size_t i = 0; i < touched_.size(); ++i) {  // grows: what a dead container held
    const ValueId v = touched_[i];
    if (v < 0 || info_[v].slots != 0 || trace_->data.ops[v].kind == OpKind::constant) continue;
    info_[v].slots = -1;
    dead.push_back(v);
    no_longer_made(v);
    quick = quick && simple(v);
  }
  touched_.clear();
  if (dead.empty()) return;
  quick = quick || next < 0;
  emit(OpKind::release, dead, {.effects = quick ? kNoEffect : kDropsReferences, .snapshot = false});
  if (!quick) stand_behind(at, next);
}

// The op just emitted leaves behind its instruction, the one at `at`.
void Recorder::stand_behind(int at, int next) {
  if (behind_ < 0 || behind_offset_ != next) behind_ = snapshot_now(next);
  behind_offset_ = next;
  trace_->data.ops.back().snapshot = behind_;
  trace_->data.ops.back().at = at;
}

PyObject* Recorder::live_top(int below) const {
  return view_->localsplus[frame().code->nlocalsplus() + static_cast<int>(check_.depth) - 1 - below];
}

PyObject* Recorder::result() const {
  const Frame& f = frame();
  return view_->localsplus[f.code->nlocalsplus() + static_cast<int>(f.stack.size()) - 1];
}

}  // namespace dalsegno::recorder
