// Generators that have not begun yet.
#pragma once
#include "hook/hook.h"

namespace dalsegno::hook {

// The local variables (and cells) of a generator that has not begun and that nobody looks into, and its function, borrowed; null of others.
Slot* variables_of_unborn(PyObject* generator, PyFunctionObject** function);
// It will never begin: what it holds goes with it, and no code of its own runs.
void never_begins(PyObject* generator);

}  // namespace dalsegno::hook
