/* See monitors.h. */
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include <Python.h>

#include "hook/monitors.h"

#if PY_VERSION_HEX >= 0x030c0000
#include "internal/pycore_interp.h"

unsigned char dalsegno_global_tools(PyThreadState* thread, int event) { return thread->interp->monitors.tools[event]; }

unsigned char dalsegno_any_global_tools(PyThreadState* thread) {
  const _Py_GlobalMonitors* monitors = &thread->interp->monitors;
  unsigned char tools = 0;
  for (size_t i = 0; i < sizeof monitors->tools; ++i) tools |= monitors->tools[i];
  return tools;
}

unsigned char dalsegno_local_tools(PyCodeObject* code, int event) {
  return code->_co_monitoring == NULL ? 0 : code->_co_monitoring->local_monitors.tools[event];
}
#else
typedef int dalsegno_no_monitors; /* a translation unit may not be empty */
#endif
