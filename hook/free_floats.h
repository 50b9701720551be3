/* Where the interpreter keeps floats that have died for the next ones. */
#pragma once
#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The first of the list (PyFloat_FromDouble() of Objects/floatobject.c): what it would be told its type by is the next one. The int that
   counts them stands DALSEGNO_FREE_FLOATS_COUNT bytes from there. Null: this interpreter keeps them otherwise. Needs the GIL. */
PyFloatObject** dalsegno_free_floats(PyThreadState* thread);
#define DALSEGNO_FREE_FLOATS_COUNT (-8)

#ifdef __cplusplus
}
#endif
