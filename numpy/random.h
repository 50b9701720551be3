// NumPy's generators of random numbers (np.random.Generator, RandomState), asked without a call.
#pragma once
#include "numpy/api.h"

namespace dalsegno::numpy {

// Generator or RandomState itself. Neither can be changed.
bool is_random_type(PyTypeObject* type);

// What a method of theirs does, as the type has it or bound: it runs nothing but C code of NumPy's where it is given numbers and tuples of
// ints. kNumber: what random() does, without arguments; kBetween: uniform(); kNormal ... kStandardExponential: their own; kInt and
// kInt64: RandomState.randint and Generator.integers, which give an int and an np.int64 for one or two ints.
enum class Draws {
  kNothing,  // it is no such method
  kOther,
  kNumber,
  kBetween,
  kNormal,
  kExponential,
  kStandardNormal,
  kStandardExponential,
  kInt,
  kInt64
};
// Of those that give a float by some other than the uniform distribution, or between two numbers, how many they may be given; else -1.
constexpr int most_parameters(Draws draws) {
  if (draws == Draws::kBetween || draws == Draws::kNormal) return 2;
  return draws == Draws::kExponential ? 1 : draws == Draws::kStandardNormal || draws == Draws::kStandardExponential ? 0 : -1;
}
Draws drawn_by(PyObject* callee);
inline bool is_random_method(PyObject* callee) { return drawn_by(callee) != Draws::kNothing; }

// What the methods give; how the objects that they are called for are laid out is found out the first time, by making some. No exception
// may be set. `bound`: the object is the method, bound to its generator. False: there is none, or the call raises. May wait for
// the generator's lock, without the GIL, where another thread has it.
bool draw_number(PyObject* object, bool bound, double* out);
// By a distribution that most_parameters() is for: of its parameters n are given, a and b.
bool draw_by(Draws distribution, PyObject* object, bool bound, int n, double a, double b, double* out);
bool draw_whole_number(PyObject* object, bool bound, int64_t low, int64_t high, int64_t* out);  // from low up to, but without, high

}  // namespace dalsegno::numpy
