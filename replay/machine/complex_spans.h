// What NumPy's loops of complex numbers look at besides elements: products, squares and absolute values have other bits by vector code,
// which contracts a * b + c, than one by one (replay/segment/complex_loops.h).
#pragma once
#include <algorithm>

#include "replay/machine/span.h"

namespace dalsegno::replay {

// Rows without gaps, one behind the other? (Strides times extents of others may reach to the result of eager, by where that was allocated,
// and the loop takes it for one that is written while it is read.)
inline bool goes_forwards(const Span& s, npy_intp item) {
  if (std::any_of(s.strides, s.strides + s.rank, [](npy_intp n) { return n < 0; })) return false;
  int last = s.rank - 1;
  while (last > 0 && s.shape[last] == 1) --last;
  return s.rank == 0 || s.shape[last] == 1 || s.strides[last] == 0 || s.strides[last] == item;
}

// Does an operator in place read near what it writes? The loop takes another way then: where strides times extents touch, unless it is the
// very same (is_mem_overlap in numpy/_core/src/umath/fast_loop_macros.h).
inline bool reads_near(const Span& in, const Span& target) {
  const auto end = [](const Span& s) {
    const char* at = s.data;
    for (int d = 0; d < s.rank; ++d) at += s.shape[d] * s.strides[d];
    return at;
  };
  const bool same = in.data == target.data && same_shape(in, target) && std::equal(in.strides, in.strides + in.rank, target.strides);
  return in.rank > 0 && !same && in.data <= end(target) && target.data <= end(in);
}

}  // namespace dalsegno::replay
