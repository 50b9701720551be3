#include "hook/next_frame.h"

namespace dalsegno::hook {
namespace {
NextFrame* g_next = nullptr;  // the innermost one that is open
}  // namespace

void NextFrame::open() {
  outer_ = g_next;
  previous_ = outer_ != nullptr ? outer_->previous_ : _PyInterpreterState_GetEvalFrameFunc(thread_->interp);
  open_ = true;
  g_next = this;
  _PyInterpreterState_SetEvalFrameFunc(thread_->interp, evaluate);
}

void NextFrame::close() {
  if (!open_) return;
  open_ = false;
  g_next = outer_;
  _PyInterpreterState_SetEvalFrameFunc(thread_->interp, outer_ != nullptr ? evaluate : previous_);
  closing();
}

PyObject* NextFrame::evaluate_as_before(Frame* frame) { return (outer_ != nullptr ? evaluate : previous_)(thread_, frame, 0); }

PyObject* NextFrame::evaluate(PyThreadState* thread, Frame* frame, int throwflag) {
  NextFrame* next = g_next;
  if (next == nullptr) return _PyEval_EvalFrameDefault(thread, frame, throwflag);
  if (next->thread_ != thread || next->function_ != function_of(frame) || throwflag) return next->previous_(thread, frame, throwflag);
  next->close();
  return next->run(thread, frame);
}

}  // namespace dalsegno::hook
