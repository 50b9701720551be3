// Reductions along axes that are not neighbours, of arrays without gaps: blocks of an image (axes 1 and 3 of four), channels of a stack of
// images (0, 2 and 3). No GIL is needed, but by cut_apart().
#pragma once
#include <array>

#include "numpy/api.h"
#include "numpy/loops.h"
#include "replay/machine/whole_numbers.h"
#include "trace/array_fn.h"

namespace dalsegno::replay {

// Neighbouring axes of one kind, reduced or kept, are one, and axes of one element are none: so the kinds alternate, the outermost first.
struct Apart {
  static constexpr int kMost = 6;
  struct Axis {
    npy_intp extent = 1, from = 0, to = 0;  // elements from one to the next, in the array and in the result (0: reduced)
    bool reduced = false;
  };
  int rank = 0;
  std::array<Axis, kMost> axes;
  npy_intp kept = 1, reduced = 1;  // elements of the result, and of what each is made of
};

// `axes`: a bit each. False: there are gaps, or too many elements, or all that is reduced lies in one.
bool cut_apart(PyArrayObject* a, unsigned axes, Apart* apart);

// As NumPy does it, which goes through memory once: each stretch that lies in one is reduced for itself, pairwise where it is a sum, and
// what that gives joins what there was (reduction.c and loops_utils.h.src in numpy/_core/src/umath). False: nothing is known of that.
// fn: add (of float64, float32 and 64-bit integers), maximum or minimum; loop: NumPy's for it.
bool reduce_apart(ArrayFn fn, DType dtype, const numpy::InnerLoop& loop, const Apart& apart, const char* from, char* to);
// Of floats: variances, or their roots, as _methods.py computes them. ddof: by how much fewer than there are is divided.
bool spread_apart(DType dtype, bool root, int64_t ddof, const numpy::InnerLoop& add, const Apart& apart, const char* from, char* to);
// Sums of whole numbers in 64 bits.
void sum_whole_apart(DType dtype, const Apart& apart, const char* from, int64_t* sums);

}  // namespace dalsegno::replay
