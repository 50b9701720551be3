#include "halide_gen/runtime/pack.h"

#include <algorithm>
#include <cstring>

namespace dalsegno::rt {
namespace {

// (What a compiler makes of plain loops here reads a broadcast element anew for each one it writes: they might be the same memory.)
template <typename T>
void copy_row(const T* from, int64_t stride, int64_t n, T* to) {
  if (stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
  } else if (stride == 0) {
    const T element = *from;
    std::fill_n(to, n, element);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
  }
}

template <typename T>
void pack_as(const LaunchOperand& operand, const Packing& p, int64_t start, int64_t n, T* out) {
  const T* base = reinterpret_cast<const T*>(operand.data);
  int64_t index[kMaxRank] = {};
  for (int d = 0; d < p.rank; ++d) index[d] = start % p.extents[d], start /= p.extents[d];
  int64_t offset = 0;
  for (int d = 0; d < p.rank; ++d) offset += index[d] * operand.strides[d];
  while (n > 0) {
    const int64_t length = std::min(n, p.extents[0] - index[0]);
    copy_row(base + offset, operand.strides[0], length, out);
    out += length, n -= length;
    offset -= index[0] * operand.strides[0], index[0] = 0;
    for (int d = 1; d < p.rank; ++d) {
      offset += operand.strides[d];
      if (++index[d] < p.extents[d]) break;
      offset -= index[d] * operand.strides[d], index[d] = 0;
    }
  }
}

}  // namespace

void pack(const LaunchOperand& operand, const Packing& packing, int size, int64_t start, int64_t n, char* out) {
  switch (size) {
    case 1:
      return pack_as(operand, packing, start, n, reinterpret_cast<uint8_t*>(out));
    case 2:
      return pack_as(operand, packing, start, n, reinterpret_cast<uint16_t*>(out));
    case 4:
      return pack_as(operand, packing, start, n, reinterpret_cast<uint32_t*>(out));
    default:
      return pack_as(operand, packing, start, n, reinterpret_cast<uint64_t*>(out));
  }
}

}  // namespace dalsegno::rt
