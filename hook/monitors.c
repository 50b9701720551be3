/* See monitors.h. */
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include "hook/monitors.h"

#include <Python.h>

#if PY_VERSION_HEX >= 0x030c0000
#include "internal/pycore_interp.h"

unsigned char dalsegno_global_tools(PyThreadState* thread, int event) { return thread->interp->monitors.tools[event]; }

static unsigned char any_of(const uint8_t* events, size_t count) {
  unsigned char tools = 0;
  for (size_t i = 0; i < count; ++i) tools |= events[i];
  return tools;
}

unsigned char dalsegno_any_global_tools(PyThreadState* thread) {
  return any_of(thread->interp->monitors.tools, sizeof thread->interp->monitors.tools);
}

unsigned char dalsegno_local_tools(PyCodeObject* code, int event) {
  return code->_co_monitoring == NULL ? 0 : code->_co_monitoring->local_monitors.tools[event];
}

unsigned char dalsegno_any_local_tools(PyCodeObject* code) {
  if (code->_co_monitoring == NULL) return 0;
  return any_of(code->_co_monitoring->local_monitors.tools, _PY_MONITORING_LOCAL_EVENTS);
}
#else
typedef int dalsegno_no_monitors; /* a translation unit may not be empty */
#endif
