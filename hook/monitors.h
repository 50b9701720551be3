/* Private to hook/. What needs CPython's interpreter state, whose header is C only before 3.13. Nothing here on 3.11. */
#pragma once
#include <Python.h>
#ifdef __cplusplus
extern "C" {
#endif

/* The tools (bit set) that have the event on for all code. */
unsigned char dalsegno_global_tools(PyThreadState* thread, int event);
/* The tools (bit set) that have any event on for all code. */
unsigned char dalsegno_any_global_tools(PyThreadState* thread);
/* The tools (bit set) that have the event on for this code object. */
unsigned char dalsegno_local_tools(PyCodeObject* code, int event);
/* The tools (bit set) that have any event on for this code object. */
unsigned char dalsegno_any_local_tools(PyCodeObject* code);

#ifdef __cplusplus
}
#endif
