/* See monitors.h. */
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include "hook/monitors.h"

#include <Python.h>

#if PY_VERSION_HEX >= 0x030c0000
#include "internal/pycore_interp.h"

_Static_assert(sizeof(_Py_GlobalMonitors) >= 8 && sizeof(_Py_GlobalMonitors) <= 16, "two overlapping words cover all events");

static int seen_by_any(PyThreadState* thread, const uint8_t* events, int count, unsigned char tools) {
  for (int event = 0; event < count; ++event)
    for (int tool = 0; tool < PY_MONITORING_TOOL_IDS; ++tool)
      if ((events[event] & tools) >> tool & 1 && thread->interp->monitoring_callables[tool][event] != NULL) return 1;
  return 0;
}

static unsigned char with_callback(PyThreadState* thread, unsigned char tools, int event) {
  for (int tool = 0; tool < PY_MONITORING_TOOL_IDS; ++tool)
    if (thread->interp->monitoring_callables[tool][event] == NULL) tools &= (unsigned char)~(1u << tool);
  return tools;
}

unsigned char dalsegno_global_tools(PyThreadState* thread, int event) {
  return with_callback(thread, thread->interp->monitors.tools[event], event);
}

/* Replay asks this on every call. */
int dalsegno_any_global_event(PyThreadState* thread, unsigned char tools) {
  const uint8_t* events = thread->interp->monitors.tools;
  uint64_t first, last;
  memcpy(&first, events, 8);
  memcpy(&last, events + sizeof(_Py_GlobalMonitors) - 8, 8);
  if (((first | last) & tools * UINT64_C(0x0101010101010101)) == 0) return 0;
  return seen_by_any(thread, events, (int)sizeof(_Py_GlobalMonitors), tools);
}

unsigned char dalsegno_local_tools(PyThreadState* thread, PyCodeObject* code, int event) {
  return code->_co_monitoring == NULL ? 0 : with_callback(thread, code->_co_monitoring->local_monitors.tools[event], event);
}

int dalsegno_any_local_event(PyThreadState* thread, PyCodeObject* code, unsigned char tools) {
  return code->_co_monitoring != NULL &&
         seen_by_any(thread, code->_co_monitoring->local_monitors.tools, _PY_MONITORING_LOCAL_EVENTS, tools);
}

int dalsegno_is_behind(PyThreadState* thread, const PyCodeObject* code) {
#if PY_VERSION_HEX >= 0x030d0000
  return code->_co_monitoring != NULL && code->_co_instrumentation_version != thread->interp->ceval.instrumentation_version;
#else
  return code->_co_monitoring != NULL && code->_co_instrumentation_version != thread->interp->monitoring_version;
#endif
}

void dalsegno_free_tool(PyThreadState* thread, int tool, int event) {
  Py_CLEAR(thread->interp->monitoring_callables[tool][event]);
  Py_CLEAR(thread->interp->monitoring_tool_names[tool]);
}
#else
typedef int dalsegno_no_monitors; /* a translation unit may not be empty */
#endif
