// JitFunction: what dalsegno.jit returns. Callable (vectorcall), descriptor, pickles by name, weakrefs, collected by the GC.
#pragma once
#include <Python.h>

#include "replay/tree.h"

namespace dalsegno::replay {

// The type, ready; null with an exception set on failure. Borrowed.
PyTypeObject* jit_type();
// New JitFunction of a Python function. Null with an exception set.
PyObject* make_jit(PyObject* function, TreeOptions options);

}  // namespace dalsegno::replay
