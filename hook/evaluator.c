/* See evaluator.h. */
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include "hook/evaluator.h"

#include "internal/pycore_interp.h"

dalsegno_evaluate* dalsegno_evaluator(PyThreadState* thread) { return &thread->interp->eval_frame; }

PyObject* dalsegno_evaluate_as_usual(PyThreadState* thread, struct _PyInterpreterFrame* frame, int raised) {
  return _PyEval_EvalFrameDefault(thread, frame, raised);
}
