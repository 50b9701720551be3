// Copying items between strided memory. No memory is allocated here; any thread.
#pragma once
#include <cstddef>
#include <cstdint>

namespace dalsegno::replay {

// memcpy(), which glibc does by `rep movsb` from 2 KB on: at 3 GB/s instead of 50 to 100 on AMD's Zen 3, where the two begin less than a
// cache line apart, modulo a page, as a[1:] and the b[:] it is copied from may. Here it is done in shorter pieces while it fits caches.
void copy_bytes(char* to, const char* from, size_t n);

// `rank` (0 to 32) extents, and for each axis the bytes from one item to the next; items are `item` bytes long.
struct CopiedSpace {
  int rank;
  const intptr_t* shape;
  const intptr_t *from_strides, *to_strides;
  size_t item;
};

// In the order in which NumPy assigns arrays (PyArray_PrepareTwoRawArrayIter in numpy/_core/src/multiarray/common.c or array_assign.c):
// axes by the strides of what is written to, upwards in its memory, whatever order the extents stand in. Where what is read is dense along
// another axis, in tiles. The two do not overlap, unless `one_by_one`: then items are moved one after the other.
void copy_strided(const char* from, char* to, const CopiedSpace& space, bool one_by_one = false);

// What np.roll gives: from and to in C order without a gap, and along each axis items move by[d] places on, 0 <= by[d] < shape[d], those
// beyond the end to the beginning. rank: 1 or more.
void copy_rolled(const char* from, char* to, const intptr_t* shape, const intptr_t* by, int rank, size_t item);

}  // namespace dalsegno::replay
