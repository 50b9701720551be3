// The standard library's generators of random numbers (random.Random and what is derived from it), asked without a call.
#pragma once
#include <Python.h>

namespace dalsegno::hook {

// Is the callee Random.random, as its C code has it: the method, or one bound to a generator? Needs `random` to have been imported, and
// a layout that has been found to be as it is taken to be here. Needs the GIL.
bool draws_random_number(PyObject* callee);
// What generator.random() gives; `bound`: the object is the method, bound to its generator. False: there is none. Needs the GIL.
bool draw_random_number(PyObject* object, bool bound, double* out);

}  // namespace dalsegno::hook
