// Reductions of integers and truth values, which are the same in whatever order they are done. No GIL needed.
#pragma once
#include <cstdint>

#include "replay/typed/calls.h"
#include "trace/array_fn.h"

namespace dalsegno::replay {

enum class Fold : uint8_t { kSum, kLargest, kLeast, kCount, kAny, kAll, kNone };  // kCount: of those that are not 0

// What a callee finds out about all elements; kNone: something else. Of floats it says nothing about the order.
Fold fold_of(typed::Callee callee);
// Of n > 0 elements, `stride` bytes apart: what they are folded into, in 64 bits (a sum modulo 2**64). Truth values are true in any byte
// but 0.
int64_t fold_whole(DType dtype, Fold fold, const char* data, int64_t n, int64_t stride);
// Each of the rows, `step` bytes apart, as fold_whole().
void fold_rows(DType dtype, Fold fold, const char* data, int64_t rows, int64_t step, int64_t n, int64_t stride, int64_t* made);
// Adds a row to sums of rows.
void add_row(DType dtype, const char* data, int64_t n, int64_t stride, int64_t* sums);
// Of each of the rows (kAny, kAll): 0 or 1.
void ask_rows(DType dtype, Fold fold, const char* data, int64_t rows, int64_t step, int64_t n, int64_t stride, char* known);
// Takes a row into what is known of rows.
void ask_row(DType dtype, Fold fold, const char* data, int64_t n, int64_t stride, char* known);
// Sums, each of so many elements, become the bits of means: where is_mean_exact().
void divide_whole(int64_t* sums, int64_t n, int64_t by);
// Of two stretches.
int64_t fold_both(DType dtype, Fold fold, int64_t a, int64_t b);
// NumPy adds up doubles for a mean: is none of the sums on the way to one of n elements rounded?
bool is_mean_exact(DType dtype, int64_t n);

}  // namespace dalsegno::replay
