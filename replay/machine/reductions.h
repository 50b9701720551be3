// Reductions as NumPy does them, for steps and for groups that are reduced as they are made. No GIL needed, unless said so.
#pragma once
#include <cstdint>

#include "numpy/api.h"
#include "replay/machine/step.h"
#include "replay/typed/calls.h"
#include "trace/array_fn.h"

namespace dalsegno::replay {

// -- steps_along_axis.cc. fn: add, maximum, minimum
ArrayFn reduction_of(typed::Callee callee);  // that sums, means and extremes are made by; none: it is none of these
bool is_mean(typed::Callee callee);          // a sum that is divided behind
// Of those that find positions: the greatest element's, not the least's.
constexpr bool finds_greatest(typed::Callee callee) { return callee == typed::Callee::kArgmax || callee == typed::Callee::kArgmaxMethod; }
bool has_reducing_loop(ArrayFn fn, DType dtype);  // needs the GIL, once
// Each of the rows, n elements without a gap, to one.
void reduce_rows(ArrayFn fn, DType dtype, const char* from, int64_t rows, int64_t n, char* to);
// Sums as means (float64, float32).
void divide_sums(DType dtype, char* sums, int64_t n, int64_t by);
// What n whole numbers (whole_numbers.h) that were folded into this give. False: a mean whose sums NumPy rounds.
bool give_whole(typed::Callee callee, DType dtype, int64_t folded, int64_t n, Reg* out);
// The neighbouring axes that an argument names: not all of them. False: something else.
bool reduced_axes(PyObject* which, int rank, int* first, int* last);

}  // namespace dalsegno::replay
