/* See monitors.h. */
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include "hook/monitors.h"

#include <Python.h>

#if PY_VERSION_HEX >= 0x030c0000
#include "internal/pycore_interp.h"

unsigned char dalsegno_global_tools(PyThreadState* thread, int event) { return thread->interp->monitors.tools[event]; }

_Static_assert(sizeof(_Py_GlobalMonitors) >= 8 && sizeof(_Py_GlobalMonitors) <= 16, "two overlapping words cover all events");

/* Replay asks this on every call. */
int dalsegno_any_global_event(PyThreadState* thread, unsigned char tools) {
  const uint8_t* events = thread->interp->monitors.tools;
  uint64_t first, last;
  memcpy(&first, events, 8);
  memcpy(&last, events + sizeof(_Py_GlobalMonitors) - 8, 8);
  if (((first | last) & tools * UINT64_C(0x0101010101010101)) == 0) return 0;
  /* A tool that was freed may have left its events on, without callbacks (Hypothesis does so): nobody sees them. */
  for (int event = 0; event < (int)sizeof(_Py_GlobalMonitors); ++event)
    for (int tool = 0; tool < PY_MONITORING_TOOL_IDS; ++tool)
      if ((events[event] & tools) >> tool & 1 && thread->interp->monitoring_callables[tool][event] != NULL) return 1;
  return 0;
}

unsigned char dalsegno_local_tools(PyCodeObject* code, int event) {
  return code->_co_monitoring == NULL ? 0 : code->_co_monitoring->local_monitors.tools[event];
}

int dalsegno_any_local_event(PyCodeObject* code, unsigned char tools) {
  if (code->_co_monitoring == NULL) return 0;
  unsigned char found = 0;
  for (int i = 0; i < _PY_MONITORING_LOCAL_EVENTS; ++i) found |= code->_co_monitoring->local_monitors.tools[i];
  return (found & tools) != 0;
}
#else
typedef int dalsegno_no_monitors; /* a translation unit may not be empty */
#endif
