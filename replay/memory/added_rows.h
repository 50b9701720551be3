// Rows of numbers added up, element by element: a register goes through all of them, where NumPy's loops go through memory once a row.
// No memory is allocated here; any thread.
#pragma once
#include <cstddef>
#include <cstdint>

namespace dalsegno::replay {

// to[i] = 0 + from[0][i] + from[1][i] + ..., in this order: the bits and the flags of so many additions of two. `from`: n dense rows of
// `length` elements, aligned or not. Integers wrap around. T: the unsigned integers, float, double. `to` overlaps none of them.
template <class T>
void add_rows(const char* const* from, size_t n, char* to, intptr_t length);

// Rows `step` bytes apart, `many` of them, and that `rounds` times, `round_step` bytes apart.
struct SteppedRows {
  const char* first;
  intptr_t many, step, rounds, round_step;
};
template <class T>
void add_stepped_rows(const SteppedRows& rows, char* to, intptr_t length);

}  // namespace dalsegno::replay
