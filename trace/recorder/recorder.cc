// The life of a recording: events from hook, one instruction at a time, frames entered and left, traces begun and ended.
#include "trace/recorder/recorder.h"

#include <algorithm>

#include "trace/recorder/text.h"

namespace dalsegno::recorder {

Recorder::Recorder(PyFunctionObject* function, Options options)
    : options_(std::move(options)), function_(function), next_number_(options_.first_number) {
  Py_INCREF(function_);
}

Recorder::~Recorder() {
  stop();
  Py_DECREF(function_);
}

// ---- beginning -------------------------------------------------------------------------------------------------------------

void Recorder::start_trace(AnchorKind anchor) {
  trace_ = std::make_unique<LiveTrace>();
  trace_->data.number = next_number_++;
  trace_->data.anchor = anchor;
  info_.clear();
  touched_.clear();
  made_.clear();
  constants_.clear();
  object_index_.clear();
  name_index_.clear();
  maybe_kept_ = true;
  written_ = false;
  ++epoch_;
  recording_ = true;
  abort_ = false;
  pending_ = nullptr;
  behind_ = -1;
  object_index(reinterpret_cast<PyObject*>(function_), "self");
}

void Recorder::begin_entry() {
  start_trace(AnchorKind::entry);
  auto* code = reinterpret_cast<PyCodeObject*>(function_->func_code);
  Frame frame;
  frame.code = codes_[code] = CodeInfo::of(code);
  frame.live = function_;
  set_paths(frame, function_, "self.code");
  frame.locals.assign(code->co_nlocalsplus, kNull);
  int n = code->co_argcount + code->co_kwonlyargcount + !!(code->co_flags & CO_VARARGS) + !!(code->co_flags & CO_VARKEYWORDS);
  for (int i = 0; i < n; ++i) frame.locals[i] = emit(OpKind::param, {}, {.imm = i, .snapshot = false});
  trace_->data.n_params = n;
  frames_.push_back(std::move(frame));
  for (int i = 0; i < n; ++i) hold(this->frame().locals[i], +1);
  this->frame().function = constant(reinterpret_cast<PyObject*>(function_), "self");
  hold(this->frame().function, +1);
  run_prefix();
  release_dead();
}

// MAKE_CELL and COPY_FREE_VARS run before the first announced instruction.
void Recorder::run_prefix() {
  for (const Instr& instr : frame().code->prefix()) {
    if (instr.op == Ins::MAKE_CELL) {
      ValueId old = frame().locals[instr.arg];
      ValueId cell = old == kNull ? emit(OpKind::cell_new, {}, {.snapshot = false}) : emit(OpKind::cell_new, {old}, {.snapshot = false});
      set_type(cell, &PyCell_Type);
      set_local(instr.arg, cell);
    } else if (instr.op == Ins::COPY_FREE_VARS) {
      int first = frame().code->nlocalsplus() - instr.arg;
      for (int i = 0; i < instr.arg; ++i) {
        ValueId cell = emit(OpKind::func_closure, {frame().function}, {.imm = i, .snapshot = false});
        set_type(cell, &PyCell_Type);
        set_local(first + i, cell);
      }
    }
  }
}

void Recorder::begin_exit(const LiveTrace& parent, int op, int which, PyFunctionObject* const* functions) {
  start_trace(AnchorKind::exit);
  Trace& t = trace_->data;
  t.parent = parent.data.number;
  t.parent_op = op;
  t.parent_exit = which;
  const Op& left = parent.data.ops[op];
  const Snapshot at = parent.data.snapshot(which ? left.exit_snapshot : left.snapshot);
  std::unordered_map<ValueId, ValueId> params;
  auto param = [&](ValueId v) {
    if (v == kNull) return kNull;
    auto [it, fresh] = params.try_emplace(v, kNull);
    if (fresh) it->second = emit(OpKind::param, {}, {.imm = static_cast<int>(params.size()) - 1, .snapshot = false});
    return it->second;
  };
  for (size_t i = 0; i < at.frames.size(); ++i) {
    const SnapshotFrame& from = at.frames[i];
    Frame frame;
    frame.live = functions[i];
    auto* code = reinterpret_cast<PyCodeObject*>(parent.objects[from.code]);  // the function may have got another one since
    auto& info = codes_[code];
    if (!info) info = CodeInfo::of(code);
    frame.code = info;
    set_paths(frame, functions[i], parent.data.objects[from.code].source);
    frame.function = param(from.function);
    for (ValueId v : from.locals) frame.locals.push_back(param(v));
    for (ValueId v : from.stack) frame.stack.push_back(param(v));
    if (i + 1 < at.frames.size()) frame.call = info->at(from.offset);
    frames_.push_back(std::move(frame));
  }
  t.n_params = static_cast<int>(params.size());
  for (Frame& f : frames_) {
    hold(f.function, +1);
    for (ValueId v : f.locals) hold(v, +1);
    for (ValueId v : f.stack) hold(v, +1);
  }
  touched_.clear();
  t.entry = shape_now(at.frames.back().offset);
}

void Recorder::entered(int index, void* frame_id) {
  if (index < static_cast<int>(frames_.size())) frames_[index].id = frame_id;
}

bool Recorder::watch() {
  for (const Frame& f : frames_)
    if (!hook::watch_code(f.code->code)) return false;
  return true;
}

// ---- events ----------------------------------------------------------------------------------------------------------------

void Recorder::before(const hook::FrameView& view) noexcept {
  if (!recording_) return;
  const hook::ThreadGuard guard;
  view_ = &view;
  try {
    step(view);
  } catch (const std::exception&) {  // no memory: the recording is lost, the program goes on
    lost_ = true;
    stop();
  }
  view_ = nullptr;
}

bool Recorder::is_outer(void* id) const {
  return std::any_of(frames_.begin(), frames_.end() - 1, [&](const Frame& f) { return f.id == id; });
}

// A recursion below what is recorded through runs under our eyes, many times slower than it would. It is given up soon.
void Recorder::count_recursion(const hook::FrameView& view) {
  constexpr int kMost = 2000;
  if (view.code != frame().code->code && view.code != frames_.front().code->code) return;
  if (++recursion_ <= kMost) return;
  abandoned_ = options_.recursion();
  if (!abandoned_) return end_with_leave(Reason::too_deep);
  stop();
  trace_.reset();
  done_.clear();
}

// Decides what an event says about the instruction before it: done, still going on, a frame entered or left, or raised.
void Recorder::step(const hook::FrameView& view) {
  Frame& f = frame();
  if (!f.id && view.code == f.code->code) f.id = view.id;  // the call being recorded begins
  if (pending_ && view.id != f.id) {
    if (returning_ && frames_.size() > 1 && view.id == frames_[frames_.size() - 2].id) {
      const Frame& caller = frames_[frames_.size() - 2];
      const Instr* now = caller.code->at(view.offset);
      if (now && now->start == caller.call->next) {
        leave_frame();
        begin(*now);
        return;
      }
    }
    if (call_.code && view.previous == f.id && view.code == call_.code && codes_[call_.code]->is_entry(view.offset)) {
      enter_frame(view);
      return;
    }
    if (is_outer(view.id)) return end_with_leave(Reason::exception);
    count_recursion(view);
    return;  // code run by an opaque step, a finaliser, a signal handler
  }
  if (view.id != f.id) return;
  const Instr* now = f.code->at(view.offset);
  if (pending_ && now == pending_ && view.offset > last_offset_ && view.offset <= pending_->at) {
    last_offset_ = view.offset;  // the instruction behind its EXTENDED_ARG, KW_NAMES or PRECALL
    return;
  }
  if (pending_) {
    bool legal = now && now->start == view.offset && (now->start == successors_[0] || now->start == successors_[1]);
    if (!legal || returning_) {
      end_with_leave(Reason::exception);
      return;
    }
    commit();
    if (!recording_) return;
  }
  if (!now) {
    end_with_leave(Reason::lost);
    return;
  }
  begin(*now);
}

void Recorder::begin(const Instr& instr) {
  const Frame& f = frame();
  pending_ = &instr;
  last_offset_ = view_->offset;
  finisher_ = nullptr;
  returning_ = false;
  call_ = PendingCall{};
  successors_[0] = instr.next;
  successors_[1] = -1;
  checkpoint();
  if (behind_offset_ == instr.start) check_.snapshot = behind_;  // the same state
  behind_ = -1;
  if (written_) return end_with_leave(Reason::frame_kept);
  if (view_->stack_depth >= 0 && view_->stack_depth != static_cast<int>(f.stack.size())) return end_with_leave(Reason::lost);
#ifndef NDEBUG
  for (size_t i = 0; i < f.stack.size(); ++i) {  // the shadow stack against the live frame
    bool live_null = !view_->localsplus[f.code->nlocalsplus() + i];
    if (live_null && f.stack[i] != kNull) return end_with_leave(Reason::lost);
  }
#endif
  if (static_cast<int>(trace_->data.ops.size()) > options_.max_ops) return end_with_leave(Reason::too_long);
  abort_ = false;
  (this->*handlers()[static_cast<int>(instr.op)])(instr);
  if (abort_) return end_with_leave(abort_reason_);
  if (kLocalsWriteThrough && recording_ && (effects_since_begin() & kRunsCode)) note_locals(&live_locals_);
}

void Recorder::commit() {
  const bool ran_code = (effects_since_begin() & kRunsCode) != 0;
  if (ran_code) unknown_code();
  if (finisher_) (this->*finisher_)(*pending_);
  if (recording_ && ran_code && kLocalsWriteThrough) {
    std::vector<PyObject*> now;
    note_locals(&now);
    written_ = now != live_locals_;
  }
  if (recording_ && !abort_) settle(next_start());
  if (recording_ && abort_) end_with_leave(abort_reason_);
}

uint32_t Recorder::effects_since_begin() const {
  uint32_t effects = kNoEffect;
  for (size_t i = check_.ops; i < trace_->data.ops.size(); ++i) effects |= trace_->data.ops[i].effects;
  return effects;
}

// Where the frame stands behind the instruction that is done.
int Recorder::next_start() const { return frame().code->at(view_->offset)->start; }

// Behind an instruction: did it change what the trace relies on? And what it leaves without a slot dies.
void Recorder::settle(int next) {
  if (disturbs(effects_since_begin())) {
    emit(OpKind::guard_world, {}, {.snapshot = false});
    stand_behind(pending_->start, next);
  }
  release_dead(pending_->start, next);
}

void Recorder::enter_frame(const hook::FrameView& view) {
  Frame& caller = frame();
  for (int i = 0; i < call_.pops; ++i) pop();
  caller.call = pending_;
  std::vector<ValueId> inputs{call_.function};
  for (ValueId v : call_.locals)
    if (v != kNull) inputs.push_back(v);
  emit(OpKind::enter, inputs, {.snapshot = false});
  Frame inner;
  inner.id = view.id;
  inner.code = codes_[view.code];
  inner.live = view.function;
  inner.function = call_.function;
  int code = object_index(reinterpret_cast<PyObject*>(view.code), "");
  set_paths(inner, view.function, trace_->data.objects[code].source);
  inner.locals = std::move(call_.locals);
  for (ValueId v : inner.locals) hold(v, +1);
  hold(inner.function, +1);
  frames_.push_back(std::move(inner));
  call_ = PendingCall{};
  run_prefix();
  release_dead(view_->offset, view_->offset);
  begin(*frame().code->at(view.offset));
}

void Recorder::leave_frame() {
  ValueId value = pop();
  hold(value, +1);
  emit(OpKind::leave_frame, {value}, {.snapshot = false});
  const int at = frames_[frames_.size() - 2].call->at;
  Frame gone = std::move(frames_.back());
  frames_.pop_back();
  for (ValueId v : gone.locals) hold(v, -1);
  for (ValueId v : gone.stack) hold(v, -1);
  hold(gone.function, -1);
  frame().call = nullptr;
  frame().at_call = -1;
  push(value);
  hold(value, -1);
  returning_ = false;
  release_dead(at, next_start());
  pending_ = nullptr;
}

// ---- ends ------------------------------------------------------------------------------------------------------------------

void Recorder::checkpoint() {
  check_.ops = trace_->data.ops.size();
  check_.inputs = trace_->data.inputs.size();
  check_.snapshots = trace_->data.snapshots.mark();
  check_.frames = frames_.size();
  check_.depth = frame().stack.size();
  check_.top = frame().stack.empty() ? kNull : frame().stack.back();
  check_.snapshot = -1;
  changes_.clear();
}

void Recorder::rollback() {
  trace_->data.ops.resize(check_.ops);
  trace_->data.inputs.resize(check_.inputs);
  trace_->data.snapshots.back_to(check_.snapshots);
  info_.resize(check_.ops);
  for (auto it = constants_.begin(); it != constants_.end();)
    it = it->second >= static_cast<ValueId>(check_.ops) ? constants_.erase(it) : std::next(it);
  swap_state();
  changes_.clear();
  for (Frame& f : frames_) {  // what they were last written as may be gone
    if (f.written >= static_cast<int>(check_.snapshots.frames)) f.written = -1, f.kept = 0;
    if (f.at_call >= static_cast<int>(check_.snapshots.frames)) f.at_call = -1;
  }
  check_.snapshot = behind_ = -1;
  touched_.clear();
}

void Recorder::end_with_leave(Reason reason) {
  if (check_.frames == 0) {  // before the first instruction: there is no state to go back to
    lost_ = true;
    return stop();
  }
  rollback();
  emit(OpKind::leave, {}, {});
  close(reason);
  stop();
}

void Recorder::close(Reason reason) {
  Trace& t = trace_->data;
  t.reason = reason;
  if (pending_) {
    t.where = text_of(frame().code->code->co_qualname) + ":" + std::to_string(pending_->line) + " " + ins_name(pending_->op);
  }
  done_.push_back(std::move(trace_));
}

void Recorder::stop() {
  recording_ = false;
  if (hook::watching()) lost_ |= hook::watch_stop() == hook::WatchStatus::kLost;
}

void Recorder::finish() {
  bool open = recording_;
  stop();
  if (abandoned_) return;
  if (lost_) done_.clear();
  if (!open || lost_ || !pending_) {  // closed already, or nothing was announced
    trace_.reset();
    return;
  }
  if (returning_ && frames_.size() == 1) {
    emit(OpKind::return_, {top()}, {.snapshot = false});
    close(Reason::none);
  } else {
    end_with_leave(Reason::exception);
  }
}

// ---- loops -----------------------------------------------------------------------------------------------------------------

namespace {

void add_shape(const SnapshotFrame& f, size_t* shape) {
  for (ValueId v : f.locals) *shape = *shape * 3 + (v == kNull ? 1 : 2);
  for (ValueId v : f.stack) *shape = *shape * 5 + (v == kNull ? 1 : 2);
}

}  // namespace

// Frames' codes and offsets, and which slots are bound.
AnchorKey Recorder::anchor_of(const LiveTrace& trace, const Snapshot& at) {
  AnchorKey key;
  size_t shape = 1;
  for (const SnapshotFrame& f : at.frames) {
    key.emplace_back(reinterpret_cast<PyCodeObject*>(trace.objects[f.code]), f.offset);
    add_shape(f, &shape);
  }
  key.emplace_back(nullptr, static_cast<int>(shape & 0x7fffffff));
  return key;
}

bool Recorder::takes(const LiveTrace& loop, const SlotTypes& types) {
  const Trace& t = loop.data;
  std::vector<PyObject*> expected(t.n_params, nullptr);
  for (const Op& op : t.ops) {
    if (op.kind != OpKind::guard_type) continue;
    const ValueId v = t.inputs_of(op)[0];
    if (v < t.n_params && !expected[v]) expected[v] = loop.objects[op.object];
  }
  size_t slot = 0;
  auto fits = [&](ValueId v) {
    const PyObject* type = slot < types.size() ? reinterpret_cast<PyObject*>(types[slot]) : nullptr;
    ++slot;
    return v == kNull || v >= t.n_params || !type || !expected[v] || expected[v] == type;
  };
  for (const SnapshotFrame& f : t.entry.frames) {
    if (!fits(f.function)) return false;
    for (ValueId v : f.locals)
      if (!fits(v)) return false;
    for (ValueId v : f.stack)
      if (!fits(v)) return false;
  }
  return true;
}

// Of the innermost frame as they are now; of outer ones, what the trace knows.
SlotTypes Recorder::slot_types() const {
  SlotTypes types;
  for (const Frame& f : frames_) {
    PyObject* const* live = &f == &frames_.back() && view_ ? view_->localsplus : nullptr;
    auto add = [&](ValueId v, size_t place) {
      PyObject* o = live && v != kNull ? live[place] : nullptr;
      types.push_back(o ? Py_TYPE(o) : v == kNull ? nullptr : info_[v].type);
    };
    types.push_back(nullptr);
    for (size_t i = 0; i < f.locals.size(); ++i) add(f.locals[i], i);
    for (size_t i = 0; i < f.stack.size(); ++i) add(f.stack[i], f.locals.size() + i);
  }
  return types;
}

int Recorder::find_loop(const AnchorKey& key) const {
  const SlotTypes types = slot_types();
  const int found = options_.find_loop(key, types);
  if (found >= 0) return found;
  int first = -1, count = 0;
  auto look_at = [&](const LiveTrace& t) {
    if (t.data.anchor != AnchorKind::loop || anchor_of(t, t.data.entry) != key) return false;
    if (first < 0) first = t.data.number;
    ++count;
    return takes(t, types);
  };
  for (const auto& t : done_)
    if (look_at(*t)) return t->data.number;
  if (look_at(*trace_)) return trace_->data.number;
  return count < kMaxLoopsAtAPlace ? -1 : first;
}

void Recorder::close_loop(const Instr& instr, int header) {
  int snap = snapshot_now(header);
  const int found = find_loop(anchor_of(*trace_, shape_now(header)));
  emit(OpKind::jump, {}, {.imm = found >= 0 ? found : next_number_, .snapshot = false});
  trace_->data.ops.back().snapshot = snap;
  trace_->data.ops.back().at = instr.start;
  trace_->data.ops.back().line = instr.line;
  close(Reason::none);
  if (found >= 0) return stop();
  start_loop(header);
}

// Begins the loop trace at the header the frames stand at: every bound slot is a parameter of its own.
void Recorder::start_loop(int header) {
  const Instr* pending = pending_;
  start_trace(AnchorKind::loop);
  pending_ = pending;
  int n = 0;
  auto param = [&](ValueId& v) {
    if (v == kNull) return;
    v = emit(OpKind::param, {}, {.imm = n++, .snapshot = false});
    info_[v].slots = 1;
  };
  for (Frame& f : frames_) {
    f.written = f.at_call = f.code_object = -1;
    f.changed.clear();
    f.kept = 0;
    param(f.function);
    for (ValueId& v : f.locals) param(v);
    for (ValueId& v : f.stack) param(v);
  }
  trace_->data.n_params = n;
  trace_->data.entry = shape_now(header);
  checkpoint();
}

}  // namespace dalsegno::recorder
