#include "hook/pending.h"

#include "hook/frame_access.h"
#include "hook/interrupts.h"

namespace dalsegno::hook {

const volatile unsigned char* eval_breaker() { return dalsegno_eval_breaker(PyThreadState_Get()); }

// In the order of the evaluator's own (Python/ceval_gil.c, _Py_HandlePending). Taking the GIL back also works out the eval breaker anew.
bool handle_pending() {
  if (Py_MakePendingCalls() != 0 || PyErr_CheckSignals() != 0) return false;  // CheckSignals: collection, too, since 3.12
  Py_BEGIN_ALLOW_THREADS;
  Py_END_ALLOW_THREADS;
  return true;
}

// Where another thread than the main one adds a pending call, 3.11 and 3.12 work out the eval breaker for that one, which is not to do
// pending calls (COMPUTE_EVAL_BREAKER, _Py_ThreadCanHandlePendingCalls): the main thread would learn of it as it next takes the GIL.
bool add_pending_call(int (*call)(void*), void* argument) {
  if (Py_AddPendingCall(call, argument) != 0) return false;
  dalsegno_break_evaluator();
  return true;
}

const Py_ssize_t* collection_counts(PyThreadState* thread) { return dalsegno_collections(thread); }

bool async_exception_waits() { return PyThreadState_Get()->async_exc != nullptr; }

}  // namespace dalsegno::hook
