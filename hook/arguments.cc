// Arguments that lie on the caller's stack: taking them over, as a frame made by the instruction itself does.
#include "hook/next_frame.h"

namespace dalsegno::hook {
namespace {

// A call under way whose frame is still to be made.
class Taking final : public NextFrame {
 public:
  Taking(PyFunctionObject* function, PyObject* const* args, Py_ssize_t count) : NextFrame(function), args_(args), count_(count) {}
  PyObject* call(size_t nargsf, PyObject* kwnames) {
    open();
    PyObject* result = function()->vectorcall(reinterpret_cast<PyObject*>(function()), args_, nargsf, kwnames);
    close();  // still open where there was no frame
    return result;
  }

 private:
  PyObject* run(PyThreadState*, Frame* frame) override {
    take_arguments(args_, count_);
    return evaluate_as_before(frame);
  }
  PyObject* const* args_;
  Py_ssize_t count_;
};

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
  if (!binds_plainly(function)) return function->vectorcall(reinterpret_cast<PyObject*>(function), args, nargsf, kwnames);
  return Taking(function, args, count_of(nargsf, kwnames)).call(nargsf, kwnames);
}

}  // namespace dalsegno::hook
