// Throwing an exception into a frame at one of its instructions, with the handler and the traceback that eager would give it.
#include <utility>

#include "hook/frame_access.h"

#if DALSEGNO_PY313
extern "C" PyAPI_FUNC(void) _PyEval_FrameClearAndPop(PyThreadState*, _PyInterpreterFrame*);
#endif

namespace dalsegno::hook {
namespace {

// The evaluator tells tracers and profilers of a call whenever a frame is entered with an exception. Here the frame was called long
// before: that one event, the first of all, is kept from them.
class UnannouncedEntry {
 public:
  UnannouncedEntry(PyThreadState* thread, const Frame* frame) : thread_(thread), frame_(frame) {
    if (thread->tracing != 0) return;  // no events at all
    if (thread->c_tracefunc != nullptr) trace_ = std::exchange(thread->c_tracefunc, skip_trace);
    if (thread->c_profilefunc != nullptr) profile_ = std::exchange(thread->c_profilefunc, skip_profile);
    outer_ = std::exchange(g_entry, this);
  }
  ~UnannouncedEntry() {
    if (outer_ != this) g_entry = outer_;
    if (thread_->c_tracefunc == skip_trace) thread_->c_tracefunc = trace_;
    if (thread_->c_profilefunc == skip_profile) thread_->c_profilefunc = profile_;
  }
  UnannouncedEntry(const UnannouncedEntry&) = delete;

 private:
  static int skip_trace(PyObject* tool, PyFrameObject* object, int what, PyObject* arg) {
    const Py_tracefunc trace = g_entry->thread_->c_tracefunc = g_entry->trace_;
    return g_entry->announces(object, what) ? 0 : trace(tool, object, what, arg);
  }
  static int skip_profile(PyObject* tool, PyFrameObject* object, int what, PyObject* arg) {
    const Py_tracefunc profile = g_entry->thread_->c_profilefunc = g_entry->profile_;
    return g_entry->announces(object, what) ? 0 : profile(tool, object, what, arg);
  }
  bool announces(const PyFrameObject* object, int what) const { return what == PyTrace_CALL && object->f_frame == frame_; }

  static thread_local UnannouncedEntry* g_entry;
  PyThreadState* thread_;
  const Frame* frame_;
  Py_tracefunc trace_ = nullptr;
  Py_tracefunc profile_ = nullptr;
  UnannouncedEntry* outer_ = this;
};
thread_local UnannouncedEntry* UnannouncedEntry::g_entry = nullptr;

PyObject* enter_raising(PyThreadState* thread, Frame* frame) {
  const UnannouncedEntry unannounced(thread, frame);
  return _PyEval_EvalFrameDefault(thread, frame, 1);
}

#if DALSEGNO_PY313
PyObject* leave_frame(PyThreadState* thread, Frame* frame) {
  cut_slots(frame, code_of(frame)->co_nlocalsplus);
  _PyEval_FrameClearAndPop(thread, frame);
  return nullptr;
}
#endif

// A number of the exception table: six bits a byte, most significant first, bit 6 set on all but the last.
int read_number(const unsigned char*& at) {
  unsigned char byte = *at++;
  int value = byte & 63;
  while (byte & 64) {
    byte = *at++;
    value = (value << 6) | (byte & 63);
  }
  return value;
}

}  // namespace

Handler find_handler(const PyCodeObject* code, int offset) {
  const auto* at = reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(code->co_exceptiontable));
  const auto* end = at + PyBytes_GET_SIZE(code->co_exceptiontable);
  while (at < end) {
    const int start = read_number(at);
    const int size = read_number(at);
    const int target = read_number(at);
    const int depth_lasti = read_number(at);
    if (start > offset) break;
    if (offset < start + size) return {target, depth_lasti >> 1, (depth_lasti & 1) != 0};
  }
  return {};
}

void add_traceback_entry(PyThreadState* thread, Frame* frame) {
  PyFrameObject* object = frame_object_of(thread, frame);
  if (object != nullptr) PyTraceBack_Here(object);
}

void cut_to_handler(Frame* frame, const Handler& handler, int offset) {
  PyObject* raised = take_raised();
  cut_slots(frame, code_of(frame)->co_nlocalsplus + handler.level);
  if (handler.lasti) push_reference(frame, place_reference(offset));
  push(frame, raised);
  set_next(frame, handler.target);
}

PyObject* take_raised() {
#if DALSEGNO_PY311
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback != nullptr) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return value;
#else
  return PyErr_GetRaisedException();
#endif
}

#if DALSEGNO_PY313

// 3.13 looks up the handler of the code unit before instr_ptr, but takes the line from instr_ptr itself. In running code instr_ptr
// is past the instruction's first unit by then. Where both units have the same handler, the evaluator does all the work; elsewhere
// its unwinding is done here.
PyObject* throw_into(PyThreadState* thread, Frame* frame, int offset) {
  offset = executing_offset(code_of(frame), offset);
  set_executing(frame, offset);
  const Handler handler = find_handler(code_of(frame), offset);
  if (handler == find_handler(code_of(frame), offset - 1)) return enter_raising(thread, frame);
  frame->previous = current_frame(thread);
  add_traceback_entry(thread, frame);
  if (handler.target < 0) return leave_frame(thread, frame);
  cut_to_handler(frame, handler, offset);
  return _PyEval_EvalFrameDefault(thread, frame, 0);
}

#else

PyObject* throw_into(PyThreadState* thread, Frame* frame, int offset) {
  set_executing(frame, offset);
  return enter_raising(thread, frame);
}

#endif

}  // namespace dalsegno::hook
