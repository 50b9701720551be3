// JitFunction: what dalsegno.jit returns. Callable (vectorcall), descriptor, pickles by name, weakrefs, collected by the GC.
#pragma once
#include <Python.h>

#include "replay/tree.h"

namespace dalsegno::replay {

// The type, ready; null with an exception set on failure. Borrowed.
PyTypeObject* jit_type();
// New JitFunction of a Python function. Null with an exception set.
PyObject* make_jit(PyObject* function, TreeOptions options);
// The JitFunction that traces call in the place of a plain function that has loops or calls itself: one for all traces (which hold it),
// made where there is none. New reference, or null with an exception set. `store`: its traces are kept. Of a code: that of all functions
// with it and these globals, which takes the function as its first argument.
PyObject* companion_of(PyObject* function_or_code, PyObject* globals, bool store);

}  // namespace dalsegno::replay
