/* See stack_effects.h. */
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include "hook/stack_effects.h"

#include <Python.h>

#if PY_VERSION_HEX >= 0x030e0000
#define NEED_OPCODE_METADATA
#include "internal/pycore_opcode_metadata.h"

int dalsegno_popped(int opcode, int argument) { return _PyOpcode_num_popped(opcode, argument); }
int dalsegno_pushed(int opcode, int argument) { return _PyOpcode_num_pushed(opcode, argument); }
#else
typedef int dalsegno_no_stack_effects; /* a translation unit may not be empty */
#endif
