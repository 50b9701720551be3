// What the follower's events make of the trace; traces begun and ended.
#include "trace/recorder/recorder.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "hook/unobserved.h"
#include "trace/recorder/return_actions.h"
#include "trace/recorder/text.h"

namespace dalsegno::recorder {

Recorder::Recorder(PyFunctionObject* function, Options options)
    : options_(std::move(options)), function_(function), sources_(root()), next_number_(options_.first_number) {
  Py_INCREF(function_);
}

Recorder::~Recorder() {
  stop();
  Py_DECREF(function_);
}

// ---- beginning -------------------------------------------------------------------------------------------------------------

void Recorder::start_trace(AnchorKind anchor) {
  open(anchor, next_number_++, root());
  begun();
}

// Nothing is known of the frames yet.
void Recorder::begun() {
  maybe_kept_ = true;
  written_ = false;
  abort_ = false;
  start();
}

void Recorder::set_sources(Shadow* shadow, PyFunctionObject* live, const std::string& code_path) const {
  shadow->code_path = code_path;
  shadow->globals_path = sources_.of_globals(live->func_globals);
  shadow->builtins_path = sources_.of_builtins(live->func_builtins);
}

void Recorder::begin_entry() {
  start_trace(AnchorKind::entry);
  auto* code = reinterpret_cast<PyCodeObject*>(function_->func_code);
  follow({info_of(code), function_});
  Shadow outermost;
  outermost.code = code;
  set_sources(&outermost, function_, "self.code");
  outermost.locals.assign(code->co_nlocalsplus, kNull);
  int n = code->co_argcount + code->co_kwonlyargcount + !!(code->co_flags & CO_VARARGS) + !!(code->co_flags & CO_VARKEYWORDS);
  open_entry(std::move(outermost), n, options_.shape ? nullptr : function_);
  run_prefix();
  release_dead();
}

// MAKE_CELL and COPY_FREE_VARS run before the first announced instruction.
void Recorder::run_prefix() {
  for (const Instr& instr : frame().code->prefix()) {
    if (instr.op == Opcode::MAKE_CELL) {
      ValueId old = shadow().locals[instr.arg];
      ValueId cell = old == kNull ? emit(OpKind::cell_new, {}, {.snapshot = false}) : emit(OpKind::cell_new, {old}, {.snapshot = false});
      set_type(cell, &PyCell_Type);
      set_local(instr.arg, cell);
    } else if (instr.op == Opcode::COPY_FREE_VARS) {
      int first = frame().code->nlocalsplus() - instr.arg;
      for (int i = 0; i < instr.arg; ++i) {
        ValueId cell = emit(OpKind::func_closure, {shadow().function}, {.imm = i, .snapshot = false});
        set_type(cell, &PyCell_Type);
        set_local(first + i, cell);
      }
    }
  }
}

void Recorder::begin_exit(const LiveTrace& parent, int op, int which, PyFunctionObject* const* functions) {
  start_trace(AnchorKind::exit);
  const Op& left = parent.data.ops[op];
  const Snapshot at = parent.data.snapshot(which ? left.exit_snapshot : left.snapshot);
  std::vector<Shadow> shadows(at.frames.size());
  for (size_t i = 0; i < at.frames.size(); ++i) {
    const SnapshotFrame& from = at.frames[i];
    auto* code = reinterpret_cast<PyCodeObject*>(parent.objects[from.code]);  // the function may have got another one since
    Frame frame{info_of(code), functions[i]};
    shadows[i].code = code;
    set_sources(&shadows[i], functions[i], parent.data.objects[from.code].source);
    if (i + 1 < at.frames.size()) {
      frame.call = frame.code->at(from.offset);
      shadows[i].call_at = from.offset;
      shadows[i].call_next = frame.call->next;
      shadows[i].action = from.action;
    }
    follow(std::move(frame));
  }
  constexpr OpKind kBranches[] = {OpKind::guard_true, OpKind::guard_false, OpKind::guard_is, OpKind::guard_is_not};
  const bool branches = std::find(std::begin(kBranches), std::end(kBranches), left.kind) != std::end(kBranches);
  jumped_back_ = branches && frame().code->is_head(at.frames.back().offset);
  is_in_test(at.frames.back().offset);
  open_exit(parent, op, which, at, std::move(shadows));
}

void Recorder::begin_loop(const hook::FrameView& running) {
  constexpr ValueId kBound = 0;  // a parameter takes its place
  Shadow shadow;
  shadow.code = running.code;
  set_sources(&shadow, function_, "self.code");
  shadow.function = kBound;
  const int locals = running.code->co_nlocalsplus;
  auto value = [&](int slot) { return running.localsplus[slot].get() ? kBound : kNull; };
  for (int i = 0; i < locals; ++i) shadow.locals.push_back(value(i));
  for (int i = 0; i < running.stack_depth; ++i) shadow.stack.push_back(value(locals + i));
  follow({info_of(running.code), function_, nullptr, running.id});
  open_running(std::move(shadow), next_number_++, root(), running.offset);
  note_numbers(running);
  is_in_test(running.offset);
  begun();
}

// ---- what became of an instruction -----------------------------------------------------------------------------------------

void Recorder::begins(const Instr& instr) {
  hook::let_frames_run(false);
  finisher_ = nullptr;
  call_ = PendingCall{};
  ended_ = false;
  begin_instruction(instr.start, instr.line);
  if (at_head(instr)) {
    close_loop(instr, instr.start);
    if (!following()) return;
    begin_instruction(instr.start, instr.line);
  }
  if (written_) return has_ended(Reason::frame_kept);
  const std::vector<ValueId>& stack = shadow().stack;
  if (view()->stack_depth >= 0 && view()->stack_depth != static_cast<int>(stack.size())) return has_ended(Reason::lost);
#ifndef NDEBUG
  for (size_t i = 0; i < stack.size(); ++i) {  // the shadow stack against the live frame
    const bool live_null = view()->localsplus[frame().code->nlocalsplus() + i].get() == nullptr;
    if (live_null && stack[i] != kNull) return has_ended(Reason::lost);
  }
#endif
  if (static_cast<int>(trace().data.ops.size()) > options_.max_ops) return has_ended(Reason::too_long);
  abort_ = false;
  (this->*handlers()[static_cast<int>(instr.op)])(instr);
  if (abort_) return has_ended(abort_reason_);
  if (kLocalsWriteThrough && following() && (effects_of_instruction() & kRunsCode)) note_locals(&live_locals_);
}

void Recorder::give_up(Reason reason) {
  abort_ = true;
  abort_reason_ = reason;
}

void Recorder::is_done() {
  const bool ran_code = (effects_of_instruction() & kRunsCode) != 0;
  if (ran_code) {
    maybe_kept_ = true;
    forget();
  }
  if (finisher_) (this->*finisher_)(*pending());
  if (following() && ran_code && kLocalsWriteThrough) {
    std::vector<PyObject*> now;
    note_locals(&now);
    written_ = now != live_locals_;
  }
  if (following() && !abort_) settle(pending()->start, next_start());
  if (following() && abort_) has_ended(abort_reason_);
}

void Recorder::has_entered(const hook::FrameView& view) {
  pop(call_.pops);
  if (call_.instance != kNull) put_below(call_.instance, operands_of(call_.action));
  Shadow inner;
  inner.code = view.code;
  inner.function = call_.function;
  inner.locals = std::move(call_.locals);
  inner.stack = std::move(call_.stack);
  const bool goes_on = inner.goes_on = call_.goes_on;
  set_sources(&inner, view.function, source(object_index(reinterpret_cast<PyObject*>(view.code), "")));
  enter(std::move(inner), goes_on ? pending()->start : pending()->at, pending()->next, call_.action);
  call_ = PendingCall{};
  if (!goes_on) run_prefix();
  release_dead(view.offset, view.offset);
}

void Recorder::has_left(const Instr& call) {
  if (ended_) return has_left_ended(call);
  leave();
  release_dead(call.at, next_start());
}

// The trace ends before the instruction, whatever has been written of it.
void Recorder::has_ended(Reason reason) {
  if (!has_begun()) {  // there is no state to go back to
    set_lost();
    return stop();
  }
  roll_back();
  emit(OpKind::leave, {}, {});
  close(reason);
  stop();
}

// A recursion below what is recorded through runs under our eyes, many times slower than it would. It is given up soon.
void Recorder::runs_elsewhere(const hook::FrameView& view) {
  constexpr int kMost = 2000;
  if (view.code != frame().code->code && view.code != frames().front().code->code) return;
  if (++recursion_ <= kMost) return;
  if (!options_.recursion()) return has_ended(Reason::too_deep);
  abandon();
}

void Recorder::abandon() {
  abandoned_ = true;
  options_.gives_back();
  stop();
  discard();
  done_.clear();
}

// ---- the live frames -------------------------------------------------------------------------------------------------------

PyObject* Recorder::live_top(int below) const {
  return view()->localsplus[frame().code->nlocalsplus() + static_cast<int>(depth_before()) - 1 - below].get();
}

PyObject* Recorder::result() const {
  return view()->localsplus[frame().code->nlocalsplus() + static_cast<int>(shadow().stack.size()) - 1].get();
}

void Recorder::note_locals(std::vector<PyObject*>* out) const {
  out->clear();
  for (const Frame& f : frames()) {
    if (!f.id) continue;
    const hook::Slot* locals = hook::frame_locals(f.id);
    std::transform(locals, locals + f.code->nlocalsplus(), std::back_inserter(*out), [](const hook::Slot& s) { return s.get(); });
  }
}

bool Recorder::frame_is_kept() {
  if (!maybe_kept_) return false;
  maybe_kept_ = std::any_of(frames().begin(), frames().end(), [](const Frame& f) { return f.id && hook::frame_kept(f.id); });
  return maybe_kept_;
}

void Recorder::set_local(int index, ValueId v) {
  if (frame_is_kept()) give_up(Reason::frame_kept);
  Builder::set_local(index, v);
}

ValueId Recorder::code_const(int index) {
  if (const ValueId known = known_constant(const_at(index)); known != kNull) return known;
  const std::string& of = shadow().code_path;
  return constant(const_at(index), of.empty() ? "" : of + ".const[" + std::to_string(index) + "]");
}

void Recorder::fold(PyObject* dict, const std::string& dict_path, PyObject* name, PyObject* value, const std::string& value_path) {
  if (!Builder::fold(dict, dict_path, name, value, value_path)) give_up(Reason::name_changed);
}

// ---- ends ------------------------------------------------------------------------------------------------------------------

void Recorder::close(Reason reason) {
  std::string where;
  if (const Instr* at = pending()) where = text_of(frame().code->code->co_qualname) + ":" + std::to_string(at->line) + " " + name_of(*at);
  done_.push_back(Builder::close(reason, std::move(where)));
}

void Recorder::finish() {
  const bool open = following();
  stop();
  if (abandoned_) return;
  if (lost()) done_.clear();
  if (!open || lost() || !pending()) return discard();  // closed already, or nothing was announced
  if (!returns()) return has_ended(Reason::exception);
  const std::vector<ValueId>& locals = shadow().locals;
  const auto observed = std::count_if(locals.begin(), locals.end(), [&](ValueId v) { return v != kNull && !simple(v); });
  emit(OpKind::return_, {top()}, {.imm = observed > 1 ? snapshot() + 1 : 0, .snapshot = false});
  close(Reason::none);
}

// ---- loops -----------------------------------------------------------------------------------------------------------------

// Of the innermost frame as they are now; of outer ones, what the trace knows.
SlotTypes Recorder::slot_types() const {
  SlotTypes types;
  for (const Shadow& f : shadows()) {
    const hook::Slot* live = &f == &shadow() && view() ? view()->localsplus : nullptr;
    auto add = [&](ValueId v, size_t place) {
      PyObject* o = live && v != kNull ? live[place].get() : nullptr;
      types.push_back(o ? Py_TYPE(o) : v == kNull ? nullptr : info(v).type);
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
  if (look_at(trace())) return trace().data.number;
  return count < kMaxLoopsAtAPlace ? -1 : first;
}

// What the innermost frame's variables are as the loop begins: nothing may be guarded, but a variable that the loop does not look at can be
// carried unboxed.
void Recorder::note_numbers(const hook::FrameView& running) {
  for (size_t k = 0; k < shadow().locals.size(); ++k) {
    const ValueId v = shadow().locals[k];
    PyObject* live = v == kNull ? nullptr : running.localsplus[k].get();
    if (!live || !is_plain_type(Py_TYPE(live)) || !PyNumber_Check(live)) continue;
    op(v).object = object_index(reinterpret_cast<PyObject*>(Py_TYPE(live)), type_path(Py_TYPE(live)));
  }
}

// Where the innermost frame goes on, in a loop's test, behind which the loop's head is?
bool Recorder::is_in_test(int offset) {
  test_ = frame().code->test_at(offset);
  test_depth_ = frames().size();
  return test_ != nullptr;
}

bool Recorder::at_head(const Instr& instr) {
  if (std::exchange(jumped_back_, false)) return true;
  if (!test_ || frames().size() > test_depth_) return false;
  const bool still = frames().size() == test_depth_ && instr.start >= test_->from && instr.start <= test_->to;
  const bool head = still && instr.start == test_->to;
  if (!still || head) test_ = nullptr;
  return head;
}

// The trace jumps to the loop trace anchored at the header; if there is none, its recording begins.
void Recorder::close_loop(const Instr& instr, int header) {
  if (unrolls()) return;
  const int snap = snapshot_now(header);
  const int found = find_loop(anchor_of(trace(), shape_now(header)));
  const ValueId jump = emit(OpKind::jump, {}, {.imm = found >= 0 ? found : next_number_, .leaves_by = snap});
  op(jump).at = instr.start;
  close(Reason::none);
  if (found >= 0) return stop();
  open_loop(next_number_++, root(), header);
  note_numbers(*view());
  begun();
}

}  // namespace dalsegno::recorder
