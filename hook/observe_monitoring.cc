// Observing on CPython 3.12 and later: sys.monitoring INSTRUCTION events, set locally on each watched code object.
#include "hook/watch_state.h"

#if !DALSEGNO_PY311
#include <utility>

#include "hook/monitors.h"

namespace dalsegno::hook {
namespace {

constexpr int kInstruction = 6, kJump = 7;  // PY_MONITORING_EVENT_INSTRUCTION and _JUMP; checked in init_observe
constexpr int kToolIds[] = {4, 3, 5};       // 0 to 2 are meant for debuggers, coverage and profilers
constexpr unsigned char kUserTools = 0x3f;  // 6 and 7 are sys.setprofile and sys.settrace, of any thread

PyObject* g_callback = nullptr;
PyObject* g_jump_callback = nullptr;
PyObject* g_disable = nullptr;  // what a callback returns where it is not to be called again
PyObject* g_use_tool_id = nullptr;
PyObject* g_get_tool = nullptr;
PyObject* g_register_callback = nullptr;
PyObject* g_set_local_events = nullptr;
int g_tool = -1;      // the tool id taken, while
int g_tool_uses = 0;  // so many need it: a recording, and those who wait for frames

constexpr unsigned char tool_bit(int tool) { return tool < 0 ? 0 : static_cast<unsigned char>(1u << tool); }

// Calls that must not fail for the user: an exception is swallowed and reported as null.
template <typename... Args>
PyObject* quietly(PyObject* callable, const char* format, Args... args) {
  PyObject* result = PyObject_CallFunction(callable, format, args...);
  if (result == nullptr) PyErr_Clear();
  return result;
}

template <typename... Args>
bool done(PyObject* callable, const char* format, Args... args) {
  PyObject* result = quietly(callable, format, args...);
  Py_XDECREF(result);
  return result != nullptr;
}

// An event of the frame's own code; null: something else.
Frame* frame_of_event(PyThreadState* thread, PyObject* code) {
  Frame* frame = current_frame(thread);
  return frame != nullptr && reinterpret_cast<PyObject*>(code_of(frame)) == code ? frame : nullptr;
}

PyObject* on_instruction(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyThreadState* thread = PyThreadState_Get();
  Frame* frame = count == 2 ? frame_of_event(thread, args[0]) : nullptr;
  if (frame != nullptr) {
    const long bytes = PyLong_AsLong(args[1]);
    announce(thread, frame, static_cast<int>(bytes / static_cast<long>(sizeof(_Py_CODEUNIT))), -1);
  }
  Py_RETURN_NONE;
}

PyMethodDef g_definition = {"on_instruction", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(on_instruction)), METH_FASTCALL,
                            nullptr};

PyObject* on_jump(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 3) Py_RETURN_NONE;
  const long from = PyLong_AsLong(args[1]), to = PyLong_AsLong(args[2]);
  if (to > from) return Py_NewRef(g_disable);  // at this place, until the events are set anew
  PyThreadState* thread = PyThreadState_Get();
  Frame* frame = frame_of_event(thread, args[0]);
  LoopWaiter* waiter = frame != nullptr ? waiter_of(thread, frame) : nullptr;
  if (waiter != nullptr && !reach_loop(thread, frame, waiter, static_cast<int>(to / static_cast<long>(sizeof(_Py_CODEUNIT)))))
    return nullptr;
  Py_RETURN_NONE;
}

PyMethodDef g_jump_definition = {"on_jump", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(on_jump)), METH_FASTCALL, nullptr};

void release_tool_id(PyThreadState* thread) {
  dalsegno_free_tool(thread, g_tool, kInstruction);
  dalsegno_free_tool(thread, g_tool, kJump);
  g_tool = -1;
}

bool take_tool_id() {
  for (const int tool : kToolIds) {
    PyObject* owner = quietly(g_get_tool, "i", tool);
    const bool is_free = owner == Py_None;
    Py_XDECREF(owner);
    if (!is_free || !done(g_use_tool_id, "is", tool, "dalsegno")) continue;
    g_tool = tool;
    if (done(g_register_callback, "iiO", tool, 1 << kInstruction, g_callback) &&
        done(g_register_callback, "iiO", tool, 1 << kJump, g_jump_callback))
      return true;
    release_tool_id(PyThreadState_Get());
  }
  return false;
}

bool use_tool() {
  if (g_tool_uses == 0 && !take_tool_id()) return false;
  ++g_tool_uses;
  return true;
}

void leave_tool(PyThreadState* thread) {
  if (--g_tool_uses == 0) release_tool_id(thread);
}

// The events that are wanted of a code object, beside instructions.
int jump_events(const PyCodeObject* code) { return is_awaited(code) ? 1 << kJump : 0; }

bool set_events(PyCodeObject* code, int events) { return done(g_set_local_events, "iOi", g_tool, code, events | jump_events(code)); }
int instruction_events(const PyCodeObject* code) { return is_watched(code) ? 1 << kInstruction : 0; }

bool set_events_of_watched(int events) {
  bool all = true;
  for (PyCodeObject* code : g_watch.codes) all &= set_events(code, events);
  return all;
}

unsigned char instruction_tools(PyThreadState* thread, PyCodeObject* code) {
  return dalsegno_local_tools(thread, code, kInstruction) | dalsegno_global_tools(thread, kInstruction);
}

bool fetch(PyObject* monitoring, const char* name, PyObject** to) {
  *to = PyObject_GetAttrString(monitoring, name);
  return *to != nullptr;
}

bool check_event_number(PyObject* monitoring, const char* name, int event) {
  PyObject* events = PyObject_GetAttrString(monitoring, "events");
  PyObject* number = events != nullptr ? PyObject_GetAttrString(events, name) : nullptr;
  const bool same = number != nullptr && PyLong_AsLong(number) == 1 << event;
  Py_XDECREF(number);
  Py_XDECREF(events);
  if (!same && !PyErr_Occurred()) PyErr_SetString(PyExc_ImportError, "dalsegno: unknown numbers of sys.monitoring events");
  return same;
}

}  // namespace

WatchStatus start_events(PyThreadState* thread) {
  if ((dalsegno_global_tools(thread, kInstruction) & kUserTools) != 0) return WatchStatus::kOtherTool;
  return use_tool() ? WatchStatus::kOk : WatchStatus::kOtherTool;
}

// Rule 10: of two tools with INSTRUCTION events on one code object only one gets them.
bool arm_code(PyCodeObject* code) {
  const unsigned char tools = instruction_tools(g_watch.thread, code) & kUserTools;
  if ((tools & ~tool_bit(g_tool)) != 0) return false;
  // The event may still be on, and yet not in the code, where memory ended half way through an earlier recording.
  if (tools != 0 && !done(g_set_local_events, "iOi", g_tool, code, 0)) return false;
  return set_events(code, 1 << kInstruction);
}

std::vector<Frame*> marked_frames(PyThreadState*) { return {}; }  // instrumentation is on code objects
void mark_frames(const std::vector<Frame*>&) {}

bool pause_events(PyThreadState* thread) {
  if (set_events_of_watched(0)) return true;
  if (!go_on_with_events(thread)) g_watch.lost = true;
  return false;
}

bool go_on_with_events(PyThreadState*) { return set_events_of_watched(1 << kInstruction); }

bool stop_events(PyThreadState* thread) {
  bool complete = thread->c_tracefunc == nullptr && thread->c_profilefunc == nullptr;
  for (PyCodeObject* code : g_watch.codes) {
    if ((instruction_tools(thread, code) & kUserTools) != tool_bit(g_tool)) complete = false;
    set_events(code, 0);
  }
  leave_tool(thread);
  return complete;
}

void end_resting(PyThreadState* thread) { leave_tool(thread); }

bool arm_waiter(LoopWaiter* waiter) {
  if (!use_tool()) return false;
  if (set_events(waiter->code(), 1 << kJump | instruction_events(waiter->code()))) return true;
  leave_tool(waiter->thread());
  return false;
}

void disarm_waiter(LoopWaiter* waiter) {
  set_events(waiter->code(), instruction_events(waiter->code()));
  leave_tool(PyThreadState_Get());
}

void arm_begun(LoopWaiter*) {}  // instrumentation is on code objects

OutsideEvent::OutsideEvent(PyThreadState* thread)
    : thread_(thread), tracing_(std::exchange(thread->tracing, 0)), what_(std::exchange(thread->what_event, -1)) {}

OutsideEvent::~OutsideEvent() {
  stop_if_ended();
  thread_->tracing = tracing_;
  thread_->what_event = what_;
}

bool is_traced(const PyThreadState* thread) { return thread->c_tracefunc != nullptr || thread->c_profilefunc != nullptr; }

void forget_events(PyThreadState* thread) { stop_events(thread); }  // instrumentation is on code objects, not on the thread

// Rule 11: events that ended when the code did not run are still in its instructions, and those that began since are not. Any change of
// its own events makes CPython see to that.
void announce_entered(PyThreadState* thread, Frame* frame) {
  PyCodeObject* code = code_of(frame);
  if (!dalsegno_is_behind(thread, code) || !use_tool()) return;
  const int events = instruction_events(code) | jump_events(code);
  done(g_set_local_events, "iOi", g_tool, code, events ^ 1 << kJump);
  done(g_set_local_events, "iOi", g_tool, code, events);
  leave_tool(thread);
}

bool init_observe() {
  if (g_callback != nullptr) return true;
  PyObject* monitoring = PySys_GetObject("monitoring");  // borrowed
  if (monitoring == nullptr) {
    PyErr_SetString(PyExc_ImportError, "dalsegno: sys.monitoring is missing");
    return false;
  }
  if (!check_event_number(monitoring, "INSTRUCTION", kInstruction) || !check_event_number(monitoring, "JUMP", kJump)) return false;
  if (!fetch(monitoring, "use_tool_id", &g_use_tool_id) || !fetch(monitoring, "get_tool", &g_get_tool) ||
      !fetch(monitoring, "register_callback", &g_register_callback) || !fetch(monitoring, "set_local_events", &g_set_local_events) ||
      !fetch(monitoring, "DISABLE", &g_disable)) {
    return false;
  }
  g_jump_callback = PyCFunction_New(&g_jump_definition, nullptr);
  g_callback = PyCFunction_New(&g_definition, nullptr);
  return g_callback != nullptr && g_jump_callback != nullptr;
}

bool thread_observed() { return thread_observed(PyThreadState_Get()); }

bool thread_observed(PyThreadState* thread) {
  if (is_traced(thread)) return true;
  return dalsegno_any_global_event(thread, kUserTools & ~tool_bit(g_tool)) != 0;
}

bool code_observed(PyCodeObject* code) { return dalsegno_any_local_event(PyThreadState_Get(), code, kUserTools & ~tool_bit(g_tool)) != 0; }

}  // namespace dalsegno::hook
#endif
