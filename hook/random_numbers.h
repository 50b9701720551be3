// The standard library's generators of random numbers (random.Random and what is derived from it), asked without a call.
#pragma once
#include <Python.h>

#include <cstdint>

namespace dalsegno::hook {

enum class Drawn { kNothing, kNumber, kBits };
// Is the callee Random.random or Random.getrandbits, as their C code has them: the method, or one bound to a generator? Needs `random` to
// have been imported, and a layout that has been found to be as it is taken to be here. Needs the GIL.
Drawn drawn_by(PyObject* callee);
// What generator.random() gives; `bound`: the object is the method, bound to its generator. False: there is none. Needs the GIL.
bool draw_random_number(PyObject* object, bool bound, double* out);
// The same of generator.getrandbits(bits), where that fits.
bool draw_random_bits(PyObject* object, bool bound, int64_t bits, int64_t* out);

}  // namespace dalsegno::hook
