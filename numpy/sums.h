// NumPy's sums of floats, by wide vectors. NumPy adds pairwise: up to 128 elements in eight sums side by side, more of them in halves
// (pairwise_sum in numpy/_core/src/umath/loops_utils.h.src). The eight sums are one vector here, so the bits and the flags are the same,
// which is asked of NumPy's loop before the first use.
#pragma once
#include <cstdint>

#include "numpy/loops.h"
#include "trace/array_fn.h"

namespace dalsegno::numpy {

// NumPy's inner loop, or one that gives the same where its result is its first operand. fn: add, maximum or minimum. Needs the GIL, once
// for each; the loop does not.
InnerLoop reducing_loop(ArrayFn fn, DType dtype);

// Of what is left of n elements, without a gap, beside a mean: the sum of the squares, as NumPy gives it for an array of them. False: it is
// to be asked. Needs the GIL, once, for reducing_loop(). T: double, float.
template <class T>
bool sum_of_squares(const T* from, int64_t n, T mean, T* sum);

// Of each of `rows` rows, `step` bytes apart, of n elements without a gap: 0 and their sum. False, as above.
template <class T>
bool sums_of_rows(const char* from, int64_t rows, int64_t step, int64_t n, T* sums);

}  // namespace dalsegno::numpy
