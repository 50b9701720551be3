// Values, ops and snapshots of the trace being recorded; which slots hold which value.
#include "trace/recorder/recorder.h"

namespace dalsegno::recorder {

ValueId Recorder::emit(OpKind kind, const std::vector<ValueId>& inputs, EmitArgs args) {
  Trace& t = trace_->data;
  int snap = args.snapshot ? snapshot() : -1;
  Op op;
  op.kind = kind;
  op.flags = args.flags;
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
  t.ops.push_back(op);
  info_.emplace_back();
  auto v = static_cast<ValueId>(t.ops.size()) - 1;
  if (op_has_result(kind)) touched_.push_back(v);
  return v;
}

ValueId Recorder::emit(OpKind kind, std::initializer_list<ValueId> inputs, EmitArgs args) {
  return emit(kind, std::vector<ValueId>(inputs), args);
}

SnapshotFrame Recorder::frame_image(const Frame& f, int offset, int after) {
  SnapshotFrame image;
  image.function = f.function;
  image.code = object_index(reinterpret_cast<PyObject*>(f.code->code), f.code_path);
  image.offset = offset;
  image.after = after;
  image.locals = f.locals;
  image.stack = f.stack;
  return image;
}

int Recorder::add_snapshot(Snapshot snapshot) {
  trace_->data.snapshots.push_back(std::move(snapshot));
  return static_cast<int>(trace_->data.snapshots.size()) - 1;
}

int Recorder::snapshot() {
  if (check_.snapshot >= 0) return check_.snapshot;
  Snapshot s;
  for (size_t i = 0; i + 1 < check_.frames; ++i) s.frames.push_back(frame_image(frames_[i], frames_[i].call->at, frames_[i].call->next));
  s.frames.push_back(frame_image(check_.top, pending_->start, 0));
  return check_.snapshot = add_snapshot(std::move(s));
}

Snapshot Recorder::shape_now(int offset) {
  Snapshot s;
  for (size_t i = 0; i < frames_.size(); ++i) {
    bool innermost = i + 1 == frames_.size();
    s.frames.push_back(frame_image(frames_[i], innermost ? offset : frames_[i].call->at, innermost ? 0 : frames_[i].call->next));
  }
  return s;
}

int Recorder::snapshot_now(int offset) { return add_snapshot(shape_now(offset)); }

int Recorder::name_index(PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) {
    PyErr_Clear();
    text = "?";
  }
  auto [it, fresh] = name_index_.try_emplace(text, static_cast<int>(trace_->names.size()));
  if (fresh) {
    PyObject* interned = Py_NewRef(name);
    PyUnicode_InternInPlace(&interned);
    trace_->names.push_back(interned);
    trace_->data.names.emplace_back(text);
  }
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
  ValueId v = emit(OpKind::constant, {}, {.object = index, .flags = kQuiet | kPure, .snapshot = false});
  constants_[object] = v;
  info_[v].object = object;
  info_[v].path = path;
  PyTypeObject* type = Py_TYPE(object);
  if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) info_[v].type = type;
  return v;
}

ValueId Recorder::code_const(int index) {
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
  hold(v, +1);
}

ValueId Recorder::pop() {
  ValueId v = frame().stack.back();
  frame().stack.pop_back();
  hold(v, -1);
  return v;
}

void Recorder::set_local(int index, ValueId v) {
  if (frame_is_kept()) give_up(Reason::frame_kept);
  hold(v, +1);
  hold(frame().locals[index], -1);
  frame().locals[index] = v;
}

// Values that no slot holds any more die here, as in eager.
void Recorder::release_dead() {
  std::vector<ValueId> dead;
  for (ValueId v : touched_) {
    if (v < 0 || info_[v].slots != 0 || trace_->data.ops[v].kind == OpKind::constant) continue;
    info_[v].slots = -1;
    dead.push_back(v);
  }
  touched_.clear();
  if (!dead.empty()) emit(OpKind::release, dead, {.flags = kQuiet | kPure, .snapshot = false});
}

PyObject* Recorder::live_top(int below) const {
  const Frame& f = check_.top;
  return view_->localsplus[f.code->nlocalsplus() + static_cast<int>(f.stack.size()) - 1 - below];
}

PyObject* Recorder::result() const {
  const Frame& f = frame();
  return view_->localsplus[f.code->nlocalsplus() + static_cast<int>(f.stack.size()) - 1];
}

}  // namespace dalsegno::recorder
