/* See pending.h. An int in the interpreter's state until 3.12, later a word of the thread's whose lowest byte holds what waits. */
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include "hook/pending.h"

#if PY_VERSION_HEX < 0x030d0000
#include "internal/pycore_interp.h"
#endif

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the lowest byte comes first");

const volatile unsigned char* dalsegno_eval_breaker(PyThreadState* thread) {
#if PY_VERSION_HEX < 0x030d0000
  return (const volatile unsigned char*)&thread->interp->ceval.eval_breaker;
#else
  return (const volatile unsigned char*)&thread->eval_breaker;
#endif
}

void dalsegno_break_evaluator(void) {
#if PY_VERSION_HEX < 0x030d0000
  *(volatile int*)&PyInterpreterState_Main()->ceval.eval_breaker = 1;
#endif
}

const Py_ssize_t* dalsegno_collections(PyThreadState* thread) {
#if PY_VERSION_HEX < 0x030c0000
  _Static_assert(NUM_GENERATIONS == 3 && sizeof thread->interp->gc.generation_stats == 9 * sizeof(Py_ssize_t), "as hook.h reads them");
  return &thread->interp->gc.generation_stats[0].collections;
#else
  (void)thread;
  return NULL;
#endif
}
