// Throwing an exception into a frame at one of its instructions, with the handler and the traceback that eager would give it.
#include "hook/frame_access.h"

#if DALSEGNO_PY313
extern "C" PyAPI_FUNC(void) _PyEval_FrameClearAndPop(PyThreadState*, _PyInterpreterFrame*);
#endif

namespace dalsegno::hook {

#if DALSEGNO_PY313
namespace {

struct Handler {
  int target = -1;  // instruction, in code units; -1: none
  int level = -1;   // depth the stack is cut to
  bool lasti = false;
  bool operator==(const Handler&) const = default;
};

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

// The part of the evaluator's exception_unwind that prepares the handler's stack.
void cut_to_handler(Frame* frame, const Handler& handler, int offset) {
  PyObject* raised = PyErr_GetRaisedException();
  const int bottom = code_of(frame)->co_nlocalsplus;
  while (frame->stacktop > bottom + handler.level) Py_XDECREF(frame->localsplus[--frame->stacktop]);
  if (handler.lasti) frame->localsplus[frame->stacktop++] = PyLong_FromLong(offset);
  frame->localsplus[frame->stacktop++] = raised;
  set_next(frame, handler.target);
}

PyObject* leave_frame(PyThreadState* thread, Frame* frame) {
  const int bottom = code_of(frame)->co_nlocalsplus;
  while (frame->stacktop > bottom) Py_XDECREF(frame->localsplus[--frame->stacktop]);
  _PyEval_FrameClearAndPop(thread, frame);
  return nullptr;
}

}  // namespace

// 3.13 looks up the handler of the code unit before instr_ptr, but takes the line from instr_ptr itself. In running code instr_ptr
// is past the instruction's first unit by then. Where both units have the same handler, the evaluator does all the work; elsewhere
// its unwinding is done here.
PyObject* throw_into(PyThreadState* thread, Frame* frame, int offset) {
  offset = executing_offset(code_of(frame), offset);
  set_executing(frame, offset);
  const Handler handler = find_handler(code_of(frame), offset);
  if (handler == find_handler(code_of(frame), offset - 1)) return _PyEval_EvalFrameDefault(thread, frame, 1);
  frame->previous = current_frame(thread);
  add_traceback_entry(thread, frame);
  if (handler.target < 0) return leave_frame(thread, frame);
  cut_to_handler(frame, handler, offset);
  return _PyEval_EvalFrameDefault(thread, frame, 0);
}

#else

PyObject* throw_into(PyThreadState* thread, Frame* frame, int offset) {
  set_executing(frame, offset);
  return _PyEval_EvalFrameDefault(thread, frame, 1);
}

#endif

}  // namespace dalsegno::hook
