// Private to hook/. Catching the next frame of a function (PEP 523, rule 14): an evaluator of ours is set from the moment the function is
// called until the interpreter evaluates its frame. Nothing else runs in between, as the arguments are bound plainly. Guarded by the GIL.
#pragma once
#include "hook/frame_access.h"

namespace dalsegno::hook {

class NextFrame {
 public:
  explicit NextFrame(PyFunctionObject* function) : thread_(PyThreadState_Get()), function_(function) {}
  NextFrame(const NextFrame&) = delete;

 protected:
  ~NextFrame() = default;
  void open();
  void close();                                // nothing, where the frame was caught
  PyObject* evaluate_as_before(Frame* frame);  // by the evaluator that was set
  PyFunctionObject* function() const { return function_; }

 private:
  // The frame that was caught, nothing of ours being set any more: evaluates it.
  virtual PyObject* run(PyThreadState* thread, Frame* frame) = 0;
  // Takes back what was changed for the time.
  virtual void closing() {}
  static PyObject* evaluate(PyThreadState* thread, Frame* frame, int throwflag);

  PyThreadState* thread_;
  PyFunctionObject* function_;
  NextFrame* outer_ = nullptr;               // one that was open already
  _PyFrameEvalFunction previous_ = nullptr;  // from before all of them
  bool open_ = false;
};

}  // namespace dalsegno::hook
