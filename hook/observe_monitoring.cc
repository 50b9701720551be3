// Observing on CPython 3.12 and later: sys.monitoring INSTRUCTION events, set locally on each watched code object.
#include "hook/watch_state.h"

#if !DALSEGNO_PY311
#include "hook/monitors.h"

namespace dalsegno::hook {
namespace {

constexpr int kInstruction = 6;             // PY_MONITORING_EVENT_INSTRUCTION; checked in init_observe
constexpr int kToolIds[] = {4, 3, 5};       // 0 to 2 are meant for debuggers, coverage and profilers
constexpr unsigned char kUserTools = 0x3f;  // 6 and 7 are sys.setprofile and sys.settrace, of any thread

PyObject* g_callback = nullptr;
PyObject* g_use_tool_id = nullptr;
PyObject* g_get_tool = nullptr;
PyObject* g_register_callback = nullptr;
PyObject* g_set_local_events = nullptr;
int g_tool = -1;  // the tool id taken for the present recording

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

PyObject* on_instruction(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyThreadState* thread = PyThreadState_Get();
  Frame* frame = current_frame(thread);
  if (count == 2 && frame != nullptr && reinterpret_cast<PyObject*>(code_of(frame)) == args[0]) {
    const long bytes = PyLong_AsLong(args[1]);
    announce(thread, frame, static_cast<int>(bytes / static_cast<long>(sizeof(_Py_CODEUNIT))), -1);
  }
  Py_RETURN_NONE;
}

PyMethodDef g_definition = {"on_instruction", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(on_instruction)), METH_FASTCALL,
                            nullptr};

bool take_tool_id() {
  for (const int tool : kToolIds) {
    PyObject* owner = quietly(g_get_tool, "i", tool);
    const bool is_free = owner == Py_None;
    Py_XDECREF(owner);
    if (!is_free || !done(g_use_tool_id, "is", tool, "dalsegno")) continue;
    if (done(g_register_callback, "iiO", tool, 1 << kInstruction, g_callback)) {
      g_tool = tool;
      return true;
    }
    dalsegno_free_tool(PyThreadState_Get(), tool, kInstruction);
  }
  return false;
}

void release_tool_id(PyThreadState* thread) {
  dalsegno_free_tool(thread, g_tool, kInstruction);
  g_tool = -1;
}

unsigned char instruction_tools(PyThreadState* thread, PyCodeObject* code) {
  return dalsegno_local_tools(thread, code, kInstruction) | dalsegno_global_tools(thread, kInstruction);
}

bool fetch(PyObject* monitoring, const char* name, PyObject** to) {
  *to = PyObject_GetAttrString(monitoring, name);
  return *to != nullptr;
}

bool check_event_number(PyObject* monitoring) {
  PyObject* events = PyObject_GetAttrString(monitoring, "events");
  PyObject* number = events != nullptr ? PyObject_GetAttrString(events, "INSTRUCTION") : nullptr;
  const bool same = number != nullptr && PyLong_AsLong(number) == 1 << kInstruction;
  Py_XDECREF(number);
  Py_XDECREF(events);
  if (!same && !PyErr_Occurred()) PyErr_SetString(PyExc_ImportError, "dalsegno: unknown numbers of sys.monitoring events");
  return same;
}

}  // namespace

WatchStatus start_events(PyThreadState* thread) {
  if ((dalsegno_global_tools(thread, kInstruction) & kUserTools) != 0) return WatchStatus::kOtherTool;
  return take_tool_id() ? WatchStatus::kOk : WatchStatus::kOtherTool;
}

// Rule 10: of two tools with INSTRUCTION events on one code object only one gets them.
bool arm_code(PyCodeObject* code) {
  const unsigned char tools = instruction_tools(g_watch.thread, code) & kUserTools;
  if ((tools & ~tool_bit(g_tool)) != 0) return false;
  // The event may still be on, and yet not in the code, where memory ended half way through an earlier recording.
  if (tools != 0 && !done(g_set_local_events, "iOi", g_tool, code, 0)) return false;
  return done(g_set_local_events, "iOi", g_tool, code, 1 << kInstruction);
}

bool stop_events(PyThreadState* thread) {
  bool complete = thread->c_tracefunc == nullptr && thread->c_profilefunc == nullptr;
  for (PyCodeObject* code : g_watch.codes) {
    if ((instruction_tools(thread, code) & kUserTools) != tool_bit(g_tool)) complete = false;
    done(g_set_local_events, "iOi", g_tool, code, 0);
  }
  release_tool_id(thread);
  return complete;
}

void forget_events(PyThreadState* thread) { stop_events(thread); }  // instrumentation is on code objects, not on the thread

bool init_observe() {
  if (g_callback != nullptr) return true;
  PyObject* monitoring = PySys_GetObject("monitoring");  // borrowed
  if (monitoring == nullptr) {
    PyErr_SetString(PyExc_ImportError, "dalsegno: sys.monitoring is missing");
    return false;
  }
  if (!check_event_number(monitoring)) return false;
  if (!fetch(monitoring, "use_tool_id", &g_use_tool_id) || !fetch(monitoring, "get_tool", &g_get_tool) ||
      !fetch(monitoring, "register_callback", &g_register_callback) || !fetch(monitoring, "set_local_events", &g_set_local_events)) {
    return false;
  }
  g_callback = PyCFunction_New(&g_definition, nullptr);
  return g_callback != nullptr;
}

bool thread_observed() { return thread_observed(PyThreadState_Get()); }

bool thread_observed(PyThreadState* thread) {
  if (thread->c_tracefunc != nullptr || thread->c_profilefunc != nullptr) return true;
  return dalsegno_any_global_event(thread, kUserTools & ~tool_bit(g_tool)) != 0;
}

bool code_observed(PyCodeObject* code) { return dalsegno_any_local_event(PyThreadState_Get(), code, kUserTools & ~tool_bit(g_tool)) != 0; }

}  // namespace dalsegno::hook
#endif
