// hook.h as Python sees it, for tests (dalsegno._testing.hook).
#pragma once
#include <Python.h>

namespace dalsegno::hook {

// Puts the functions into a module. False: an exception is set. Once a process, after init().
bool bind_testing(PyObject* module);

}  // namespace dalsegno::hook
