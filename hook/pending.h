/* Private to hook/. Where the interpreter notes that something waits for a thread: in its own state, whose header is C only before 3.13. */
#pragma once
#include <Python.h>
#ifdef __cplusplus
extern "C" {
#endif

/* The byte that is not 0 while something waits (eval_breaker). */
const volatile unsigned char* dalsegno_eval_breaker(PyThreadState* thread);

/* Collections so far that allocations have begun. Since 3.12 none do: the byte above says that one waits. */
Py_ssize_t dalsegno_collections(PyThreadState* thread);

#ifdef __cplusplus
}
#endif
