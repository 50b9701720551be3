// What waits for a thread while it does not run CPython's evaluator: signals, pending calls, collections, other threads.
// All but add_pending_call() need the GIL.
#pragma once
#include <Python.h>

namespace dalsegno::hook {

// The byte of this thread that is not 0 while something waits for it: a signal, a pending call, a collection, another thread that wants the
// GIL, an asynchronous exception. CPython looks at it at back edges, at function entries and after calls. Valid while the thread lives.
const volatile unsigned char* eval_breaker();
// Does what waits, as the interpreter does there; an asynchronous exception alone is left to the interpreter. False: an exception is set.
bool handle_pending();
bool async_exception_waits();
// As Py_AddPendingCall(), from any thread, with or without the GIL; and the main thread does it as it next looks. False: too many wait.
bool add_pending_call(int (*call)(void*), void* argument);
// Changes where an allocation has begun a collection, whose finalisers may run any code. (Since 3.12 collections wait as other things do.)
// Asked around every op that native code has done: `counts` is where the interpreter counts them.
const Py_ssize_t* collection_counts(PyThreadState* thread);
inline Py_ssize_t collections(const Py_ssize_t* counts) {
  if constexpr (PY_VERSION_HEX >= 0x030c0000) return 0;
  return counts[0] + counts[3] + counts[6];
}

}  // namespace dalsegno::hook
