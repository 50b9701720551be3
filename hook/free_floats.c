/* See free_floats.h. */
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include "hook/free_floats.h"

#include <stddef.h>

#if PY_VERSION_HEX < 0x030d0000 && !defined(Py_DEBUG) && !defined(Py_REF_DEBUG) && !defined(Py_TRACE_REFS)
#include "internal/pycore_interp.h"

_Static_assert(offsetof(struct _Py_float_state, numfree) - offsetof(struct _Py_float_state, free_list) ==
                   (size_t)DALSEGNO_FREE_FLOATS_COUNT,
               "the count stands elsewhere");

PyFloatObject** dalsegno_free_floats(PyThreadState* thread) { return &thread->interp->float_state.free_list; }
#else
PyFloatObject** dalsegno_free_floats(PyThreadState* thread) {
  (void)thread;
  return NULL;
}
#endif
