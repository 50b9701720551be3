/* Private to hook/. Where the interpreter notes that something waits for a thread: in its own state, whose header is C only before 3.13. */
#pragma once
#include <Python.h>
#ifdef __cplusplus
extern "C" {
#endif

/* The byte that is not 0 while something waits (eval_breaker). */
const volatile unsigned char* dalsegno_eval_breaker(PyThreadState* thread);

/* Until 3.12: sets that byte, from any thread. Whoever looks at it finds what waits, or nothing, and it is worked out anew. */
void dalsegno_break_evaluator(void);

/* Where the interpreter counts the collections that allocations have begun: of each generation, three words from one to the next. Since
   3.12 none do (the byte above says that one waits), and there is no such place. */
const Py_ssize_t* dalsegno_collections(PyThreadState* thread);

#ifdef __cplusplus
}
#endif
