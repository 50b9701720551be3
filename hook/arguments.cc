// Arguments that lie on the caller's stack: taking them over, as a frame made by the instruction itself does.
#include "hook/frame_access.h"

namespace dalsegno::hook {
namespace {

// A call under way whose frame is still to be made.
struct Taking {
  PyThreadState* thread;
  PyFunctionObject* function;
  PyObject* const* args;
  Py_ssize_t count;
  _PyFrameEvalFunction previous;
  Taking* outer;
  bool open;
};
Taking* g_taking = nullptr;  // with the GIL, which is not released until the frame is evaluated

void close(Taking* taking) {
  if (!taking->open) return;
  taking->open = false;
  g_taking = taking->outer;
  _PyInterpreterState_SetEvalFrameFunc(taking->thread->interp, taking->previous);
}

PyObject* evaluate_taking(PyThreadState* thread, Frame* frame, int throwflag) {
  Taking* taking = g_taking;
  if (taking == nullptr) return _PyEval_EvalFrameDefault(thread, frame, throwflag);
  const _PyFrameEvalFunction previous = taking->previous;
  if (taking->thread != thread || taking->function != function_of(frame) || throwflag) return previous(thread, frame, throwflag);
  close(taking);
  take_arguments(taking->args, taking->count);
  return previous(thread, frame, 0);
}

// What is bound without making an object, so that nothing else can run before the frame does.
bool binds_plainly(const PyFunctionObject* function) { return !(code_of(function)->co_flags & (CO_VARARGS | CO_VARKEYWORDS)); }

}  // namespace

bool caller_gives_up(PyObject* callable, PyObject* const* args, Py_ssize_t count) {
  const Frame* frame = current_frame(PyThreadState_Get());
  if (frame == nullptr || count == 0) return false;
  const auto* first = reinterpret_cast<PyObject* const*>(frame->localsplus);
  const PyCodeObject* code = code_of(frame);
  const auto* stack = first + code->co_nlocalsplus;
  if (args < stack + 1 || args + count > stack + code->co_stacksize) return false;
    // Below the arguments lies the callable; something in between may have put an argument of its own there.
#if PY_VERSION_HEX >= 0x030d0000
  return args[-1] == callable || (args[-1] == nullptr && args >= stack + 2 && args[-2] == callable);
#else
  return args[-1] == callable;
#endif
}

void take_arguments(PyObject* const* args, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; ++i) Py_SETREF(const_cast<PyObject**>(args)[i], Py_NewRef(Py_None));
}

PyObject* call_taking(PyFunctionObject* function, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  auto* callable = reinterpret_cast<PyObject*>(function);
  if (!binds_plainly(function)) return function->vectorcall(callable, args, nargsf, kwnames);
  PyThreadState* thread = PyThreadState_Get();
  Taking taking{thread, function, args, count_of(nargsf, kwnames), _PyInterpreterState_GetEvalFrameFunc(thread->interp), g_taking, true};
  g_taking = &taking;
  _PyInterpreterState_SetEvalFrameFunc(thread->interp, evaluate_taking);
  PyObject* result = function->vectorcall(callable, args, nargsf, kwnames);
  close(&taking);  // still open where there was no frame
  return result;
}

}  // namespace dalsegno::hook
