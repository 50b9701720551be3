// Observing on CPython 3.11: a C trace function and per-frame opcode events.
#include "hook/unobserved.h"
#include "hook/watch_state.h"

#if DALSEGNO_PY311
#include <opcode.h>

#include <utility>

namespace dalsegno::hook {
namespace {

// f_trace_opcodes is a bool to Python, but a char here: our own bit leaves a user's True alone.
constexpr char kOurBit = 2;

void mark(PyFrameObject* object) { object->f_trace_opcodes = static_cast<char>(object->f_trace_opcodes | kOurBit); }
void unmark(PyFrameObject* object) { object->f_trace_opcodes = static_cast<char>(object->f_trace_opcodes & ~kOurBit); }
bool marked(const PyFrameObject* object) { return (object->f_trace_opcodes & kOurBit) != 0; }

bool arm_frame(PyThreadState* thread, Frame* frame) {
  PyFrameObject* object = frame_object_of(thread, frame);
  if (object == nullptr) return false;
  mark(object);
  return true;
}

bool is_prefix(_Py_CODEUNIT unit) { return _Py_OPCODE(unit) == EXTENDED_ARG || _Py_OPCODE(unit) == EXTENDED_ARG_QUICK; }

// The interpreter does not trace the instruction behind an EXTENDED_ARG. Nothing has changed by then, so it is announced from here.
void announce_prefixed(PyThreadState* thread, Frame* frame) {
  const _Py_CODEUNIT* code = _PyCode_CODE(code_of(frame));
  int offset = _PyInterpreterFrame_LASTI(frame);
  const int depth = frame->stacktop - code_of(frame)->co_nlocalsplus;
  announce(thread, frame, offset, depth);
  while (is_prefix(code[offset])) announce(thread, frame, ++offset, depth);
}

bool g_inside = false;  // on_trace runs

// ---- generators and callbacks at full speed: while C code runs them, an evaluator of ours is set that switches tracing off around each of
// their frames. It is not set while one runs, nor when the C code has ended (rule 14).

bool g_letting = false;
PyObject* evaluate_untraced(PyThreadState* thread, Frame* frame, int throwflag);

void set_evaluator(PyThreadState* thread, _PyFrameEvalFunction from, _PyFrameEvalFunction to) {
  if (_PyInterpreterState_GetEvalFrameFunc(thread->interp) == from) _PyInterpreterState_SetEvalFrameFunc(thread->interp, to);
}

void stop_letting(PyThreadState* thread) {
  if (std::exchange(g_letting, false)) set_evaluator(thread, evaluate_untraced, _PyEval_EvalFrameDefault);
}

constexpr int kPatience = 12000;  // events for nothing, while nothing is recorded: a millisecond or two

// Is the frame awaited, and has it just jumped back? False: an exception is set.
bool look_for_loop(PyThreadState* thread, Frame* frame) {
  LoopWaiter* waiter = waiter_of(thread, frame);
  if (waiter == nullptr) return true;
  const int offset = _PyInterpreterFrame_LASTI(frame);
  const bool back = offset < waiter->last_offset;
  waiter->last_offset = offset;
  if (!back) return true;
  waiter->patience = kPatience;
  const bool watched = watches(thread);
  const bool done = reach_loop(thread, frame, waiter, offset);
  waiter->last_offset = _PyInterpreterFrame_LASTI(frame);
  if (waiter->waiting()) arm_frame(thread, frame);                            // it may have got another frame object
  if (done && !watched && watches(thread)) announce_prefixed(thread, frame);  // there is no other event where it goes on
  return done;
}

// Tracing is dear: who waits in vain gives up.
void lose_patience(PyThreadState* thread) {
  if (watches(thread)) return;
  for (LoopWaiter* w = g_waiters; w != nullptr; w = w->outer())
    if (w->waiting() && w->thread() == thread && --w->patience < 0) w->stop_waiting();
}

// Trace function. Called with the thread's `tracing` raised, so nothing that runs in here is traced.
int on_trace(PyObject*, PyFrameObject* object, int what, PyObject*) {
  PyThreadState* thread = PyThreadState_Get();
  g_inside = true;
  if (what != PyTrace_OPCODE && g_watch.thread == thread) stop_letting(thread);
  bool done = true;
  if (g_waiters != nullptr) lose_patience(thread);
  if (what == PyTrace_OPCODE) {
    if (marked(object)) announce_prefixed(thread, object->f_frame);
    if (marked(object) && g_waiters != nullptr) done = look_for_loop(thread, object->f_frame);
  } else if (what == PyTrace_CALL) {
    // At RESUME, which has no opcode event of its own, nor one on later versions.
    if (watches(thread) && is_watched(code_of(object->f_frame))) mark(object);
  } else if (what == PyTrace_RETURN) {
    unmark(object);
  }
  g_inside = false;
  return done ? 0 : -1;
}

void set_tracing(PyThreadState* thread, bool on) {
  // As _PyEval_SetTrace, without its audit event; sys.gettrace() shows c_traceobj, which stays null.
  thread->c_tracefunc = on ? on_trace : nullptr;
  const bool use = thread->c_tracefunc != nullptr || thread->c_profilefunc != nullptr;
  if (thread->tracing == 0) thread->cframe->use_tracing = use ? 255 : 0;  // inside a trace function: set when it returns
}

// `awaited`: those, too, that somebody waits for at the heads of their loops.
void unmark_frames(PyThreadState* thread, bool awaited) {
  for (Frame* frame = current_frame(thread); frame != nullptr; frame = frame->previous)
    if (frame->frame_obj != nullptr && (awaited || waiter_of(thread, frame) == nullptr)) unmark(frame->frame_obj);
}

// sys.settrace, exchanged for this one: a trace function of the user's would be told of the instructions of the frames that are marked.
PyCFunction g_settrace = nullptr;
PyObject* settrace(PyObject* module, PyObject* function) {
  PyThreadState* thread = PyThreadState_Get();
  if (thread->c_tracefunc == on_trace) unmark_frames(thread, true);
  if (g_watch.thread == thread) stop_letting(thread);  // nobody is told any more where it is to end
  return g_settrace(module, function);
}

// Where somebody traces the thread behind it, that is theirs.
PyObject* evaluate_untraced(PyThreadState* thread, Frame* frame, int throwflag) {
  const Watcher* watcher = g_watch.watcher;
  if (g_watch.thread == thread && thread->c_tracefunc != on_trace) stop_letting(thread);
  if (!g_letting || g_watch.thread != thread || thread->c_tracefunc != on_trace || thread->tracing != 0)
    return _PyEval_EvalFrameDefault(thread, frame, throwflag);
  stop_letting(thread);
  set_tracing(thread, false);
  PyObject* result = _PyEval_EvalFrameDefault(thread, frame, throwflag);
  if (watcher == nullptr || g_watch.watcher != watcher || g_watch.thread != thread || thread->c_tracefunc != nullptr) return result;
  set_tracing(thread, true);
  let_frames_run(true);
  return result;
}

}  // namespace

void let_frames_run(bool on) {
  if (on == g_letting) return;
  PyThreadState* thread = PyThreadState_Get();
  if (!on) return stop_letting(thread);
  set_evaluator(thread, _PyEval_EvalFrameDefault, evaluate_untraced);
  g_letting = true;
}

std::vector<Frame*> marked_frames(PyThreadState* thread) {
  std::vector<Frame*> frames;
  for (Frame* frame = current_frame(thread); frame != nullptr; frame = frame->previous)
    if (frame->frame_obj != nullptr && marked(frame->frame_obj)) frames.push_back(frame);
  return frames;
}

void mark_frames(const std::vector<Frame*>& frames) {
  for (const Frame* frame : frames)
    if (frame->frame_obj != nullptr) mark(frame->frame_obj);
}

WatchStatus start_events(PyThreadState* thread) {
  set_tracing(thread, true);
  return WatchStatus::kOk;
}

bool arm_code(PyCodeObject*) { return true; }  // frames are marked as they are entered

void announce_entered(PyThreadState* thread, Frame* frame) {
  if (watches(thread) && is_watched(code_of(frame))) arm_frame(thread, frame);
}

bool pause_events(PyThreadState* thread) {
  if (thread->c_tracefunc != on_trace || thread->tracing != 0) return false;
  stop_letting(thread);
  set_tracing(thread, false);
  return true;
}

bool go_on_with_events(PyThreadState* thread) {
  if (thread->c_tracefunc != nullptr && thread->c_tracefunc != on_trace) return false;  // sys.settrace was called
  set_tracing(thread, true);
  return true;
}

bool stop_events(PyThreadState* thread) {
  // The interpreter forgets to lower it again where there is no memory for the frame object of a trace function's call. It was 0 at the
  // start.
  if (!g_inside) thread->tracing = 0;
  stop_letting(thread);
  unmark_frames(thread, false);
  if (thread->c_tracefunc != on_trace) return false;  // sys.settrace was called: it is the user's now
  if (!thread_waits(thread)) set_tracing(thread, false);
  return true;
}

void end_resting(PyThreadState*) {}

// Its frame, if it has begun, runs.
bool arm_waiter(LoopWaiter* waiter) {
  set_tracing(waiter->thread(), true);
  waiter->patience = kPatience;
  auto* frame = static_cast<Frame*>(waiter->frame());
  return frame == nullptr || arm_frame(waiter->thread(), frame);
}

void arm_begun(LoopWaiter* waiter) { arm_frame(waiter->thread(), static_cast<Frame*>(waiter->frame())); }

// The frame may have ended; then it has told, and is not marked any more.
void disarm_waiter(LoopWaiter* waiter) {
  PyThreadState* thread = PyThreadState_Get();
  if (thread != waiter->thread() || thread->c_tracefunc != on_trace) return;
  for (Frame* frame = current_frame(thread); frame != nullptr; frame = frame->previous) {
    const bool watched = watches(thread) && is_watched(code_of(frame));
    if (frame == waiter->frame() && frame->frame_obj != nullptr && !watched) unmark(frame->frame_obj);
  }
  if (!thread_waits(thread) && !watches(thread)) set_tracing(thread, false);
}

OutsideEvent::OutsideEvent(PyThreadState* thread)
    : thread_(thread), tracing_(std::exchange(thread->tracing, 0)), what_(std::exchange(thread->tracing_what, -1)) {
  g_inside = false;
  if (thread->c_tracefunc == on_trace) set_tracing(thread, watches(thread));
}

OutsideEvent::~OutsideEvent() {
  stop_if_ended();
  if (thread_->c_tracefunc == nullptr && thread_waits(thread_)) set_tracing(thread_, true);
  thread_->tracing = tracing_;
  thread_->tracing_what = what_;
  g_inside = true;
}

bool is_traced(const PyThreadState* thread) {
  return thread->c_profilefunc != nullptr || (thread->c_tracefunc != nullptr && thread->c_tracefunc != on_trace);
}

void forget_events(PyThreadState*) {}  // the thread took its trace function with it

bool init_observe() {
  PyObject* function = PySys_GetObject("settrace");  // borrowed
  if (function == nullptr || !PyCFunction_CheckExact(function) || PyCFunction_GetFlags(function) != METH_O) return true;
  g_settrace = std::exchange(reinterpret_cast<PyCFunctionObject*>(function)->m_ml->ml_meth, settrace);
  return true;
}

bool thread_observed() { return thread_observed(PyThreadState_Get()); }

bool thread_observed(PyThreadState* thread) { return is_traced(thread); }

bool code_observed(PyCodeObject*) { return false; }

}  // namespace dalsegno::hook
#endif
