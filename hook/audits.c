/* See audits.h. (should_audit() of Python/sysmodule.c.) */
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include "hook/audits.h"

#include <Python.h>

#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"

int dalsegno_is_audited(void) {
#if PY_VERSION_HEX >= 0x030c0000
  const int of_process = _PyRuntime.audit_hooks.head != NULL;
#else
  const int of_process = _PyRuntime.audit_hook_head != NULL;
#endif
  return of_process || PyInterpreterState_Get()->audit_hooks != NULL;
}
