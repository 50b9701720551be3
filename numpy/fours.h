// Functions of doubles four at once. Where NumPy has no code of its own for a processor's vectors (of most of them below AVX-512, of
// remainders and hypotenuses anywhere), it asks the C library for one after the other. glibc (2.28 and later) computes them by few
// operations on doubles and a table, which are done side by side here: the same operations in the same order, fused as in the functions
// that it has for processors with FMA, so the bits and the flags are the same, which is asked of NumPy's loop before the first use. What
// these functions treat apart (what overflows, is no number, ...) NumPy's loop is given. tanh is NumPy's own, from a table that lies
// better.
#pragma once
#include "numpy/loops.h"
#include "trace/array_fn.h"

namespace dalsegno::numpy {

// `numpys`: the loop of `fn` of this dtype; or one that gives the same. Needs the GIL; the loop does not.
InnerLoop by_fours(ArrayFn fn, DType dtype, const InnerLoop& numpys);

// For fours.cc.
InnerLoop exp_by_fours(const InnerLoop& numpys);
InnerLoop complex_exp_by_fours(const InnerLoop& numpys);
InnerLoop log_by_fours(const InnerLoop& numpys);
InnerLoop log1p_by_fours(const InnerLoop& numpys);
InnerLoop log2_by_fours(const InnerLoop& numpys);
InnerLoop log10_by_fours(const InnerLoop& numpys);
InnerLoop expm1_by_fours(const InnerLoop& numpys);
InnerLoop power_by_fours(const InnerLoop& numpys);
InnerLoop sin_by_fours(const InnerLoop& numpys);
InnerLoop cos_by_fours(const InnerLoop& numpys);
InnerLoop arcsin_by_fours(const InnerLoop& numpys);
InnerLoop arccos_by_fours(const InnerLoop& numpys);
InnerLoop arctan_by_fours(const InnerLoop& numpys);
InnerLoop arctan2_by_fours(const InnerLoop& numpys);
InnerLoop tanh_by_fours(const InnerLoop& numpys);
InnerLoop hypot_by_fours(const InnerLoop& numpys);
InnerLoop remainder_by_fours(const InnerLoop& numpys);
InnerLoop fmod_by_fours(const InnerLoop& numpys);
InnerLoop floor_divide_by_fours(const InnerLoop& numpys);

}  // namespace dalsegno::numpy
