// NumPy's generators of random numbers (np.random.Generator, RandomState), asked without a call.
#pragma once
#include "numpy/api.h"

namespace dalsegno::numpy {

// Generator or RandomState itself. Neither can be changed.
bool is_random_type(PyTypeObject* type);
// One of their methods that runs nothing but C code of NumPy's where it is given numbers and tuples of ints: as the type has it, or bound.
bool is_random_method(PyObject* callee);
// Generator.random, RandomState.random_sample or one that does the same, likewise.
bool draws_number(PyObject* callee);
// Generator.integers (np.int64) or RandomState.randint (int), likewise: the type of what that gives for one or two ints, else null.
PyTypeObject* draws_whole_numbers(PyObject* callee);
// uniform() of either, likewise.
bool draws_between(PyObject* callee);
// Finds out how objects are laid out, by making some. Leaves a set exception alone.
void prepare_drawing();
// What that gives without arguments. `bound`: the object is the method, bound to its generator. False: there is none. May wait for the
// generator's lock, without the GIL, where there are other threads.
bool draw_number(PyObject* object, bool bound, double* out);
// The same of one of the integers from low up to, but without, high.
bool draw_whole_number(PyObject* object, bool bound, int64_t low, int64_t high, int64_t* out);

// The same of uniform(low, high).
bool draw_between(PyObject* object, bool bound, double low, double high, double* out);

}  // namespace dalsegno::numpy
