/* Private to hook/. What needs CPython's interpreter state, whose header is C only before 3.13. Nothing here on 3.11. */
#pragma once
#include <Python.h>
#ifdef __cplusplus
extern "C" {
#endif

/* Tools are bit sets. An event that is on without a callback is seen by nobody and counts as off: a tool may have been freed
   with its events on (Hypothesis does so), or their end may have met the end of memory. */

/* The tools that see the event in all code. */
unsigned char dalsegno_global_tools(PyThreadState* thread, int event);
/* Whether one of these tools sees any event in all code. */
int dalsegno_any_global_event(PyThreadState* thread, unsigned char tools);
/* The tools that see the event in this code object. */
unsigned char dalsegno_local_tools(PyThreadState* thread, PyCodeObject* code, int event);
/* Whether one of these tools sees any event in this code object. */
int dalsegno_any_local_event(PyThreadState* thread, PyCodeObject* code, unsigned char tools);
/* Whether events were set or taken back for all code since the code object was last instrumented. CPython looks at this where a frame
   begins (RESUME), and keeps all that runs up to date; code that is entered in the middle may be behind. */
int dalsegno_is_behind(PyThreadState* thread, const PyCodeObject* code);
/* Ends the tool's callback for the event, then the tool itself. Allocates nothing, so that it cannot fail. */
void dalsegno_free_tool(PyThreadState* thread, int tool, int event);

#ifdef __cplusplus
}
#endif
