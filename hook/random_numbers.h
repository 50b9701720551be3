// The standard library's generators of random numbers (random.Random and what is derived from it), asked without a call.
#pragma once
#include <Python.h>

namespace dalsegno::hook {

// Is the callee Random.random, as its C code has it: the method, or one bound to a generator? Needs `random` to have been imported, and
// a layout that has been found to be as it is taken to be here. Needs the GIL.
bool draws_random_number(PyObject* callee);
// The generator that the callee, or the call's one argument (null: there is none), is; null: it is none. Borrowed.
PyObject* random_generator(PyObject* callee, PyObject* argument);
// What generator.random() gives. Needs the GIL.
double next_random_number(PyObject* generator);

}  // namespace dalsegno::hook
