/* Private to hook/. What needs CPython's interpreter state, whose header is C only before 3.13. Nothing here on 3.11. */
#pragma once
#include <Python.h>
#ifdef __cplusplus
extern "C" {
#endif

/* The tools (bit set) that have the event on for all code. */
unsigned char dalsegno_global_tools(PyThreadState* thread, int event);
/* Whether one of these tools (bit set) has a callback for any event that is on for all code. */
int dalsegno_any_global_event(PyThreadState* thread, unsigned char tools);
/* The tools (bit set) that have the event on for this code object. */
unsigned char dalsegno_local_tools(PyCodeObject* code, int event);
/* Whether one of these tools (bit set) has any event on for this code object. */
int dalsegno_any_local_event(PyCodeObject* code, unsigned char tools);

#ifdef __cplusplus
}
#endif
