#include "replay/memory/added_rows.h"

#include <cstring>

namespace dalsegno::replay {
namespace {

template <class T>
void add_elements(const char* const* from, size_t n, char* to, intptr_t first, intptr_t length) {
  for (intptr_t i = first; i < length; ++i) {
    T total = 0;
    for (size_t k = 0; k < n; ++k) {
      T one;
      std::memcpy(&one, from[k] + i * static_cast<intptr_t>(sizeof(T)), sizeof one);
      total = static_cast<T>(total + one);
    }
    std::memcpy(to + i * static_cast<intptr_t>(sizeof(T)), &total, sizeof total);
  }
}

// Four vectors at a time, then one, then what is left.
template <class T, class Vector>
[[gnu::always_inline]] inline void add_vectors(const char* const* from, size_t n, char* to, intptr_t length) {
  constexpr auto kLanes = static_cast<intptr_t>(sizeof(Vector) / sizeof(T)), kItem = static_cast<intptr_t>(sizeof(T));
  intptr_t i = 0;
  for (; i + 4 * kLanes <= length; i += 4 * kLanes) {
    Vector a{}, b{}, c{}, d{};
    for (size_t k = 0; k < n; ++k) {
      const auto* at = reinterpret_cast<const Vector*>(from[k] + i * kItem);
      a += at[0], b += at[1], c += at[2], d += at[3];
    }
    auto* out = reinterpret_cast<Vector*>(to + i * kItem);
    out[0] = a, out[1] = b, out[2] = c, out[3] = d;
  }
  for (; i + kLanes <= length; i += kLanes) {
    Vector a{};
    for (size_t k = 0; k < n; ++k) a += *reinterpret_cast<const Vector*>(from[k] + i * kItem);
    *reinterpret_cast<Vector*>(to + i * kItem) = a;
  }
  add_elements<T>(from, n, to, i, length);
}

template <class T>
[[gnu::target("avx2")]] void add_wide(const char* const* from, size_t n, char* to, intptr_t length) {
  using Vector [[gnu::vector_size(32), gnu::aligned(1), gnu::may_alias]] = T;
  add_vectors<T, Vector>(from, n, to, length);
}

template <class T>
void add_narrow(const char* const* from, size_t n, char* to, intptr_t length) {  // that any x86-64 has
  using Vector [[gnu::vector_size(16), gnu::aligned(1), gnu::may_alias]] = T;
  add_vectors<T, Vector>(from, n, to, length);
}

}  // namespace

template <class T>
void add_rows(const char* const* from, size_t n, char* to, intptr_t length) {
  static const bool wide = __builtin_cpu_supports("avx2") != 0;
  (wide ? add_wide<T> : add_narrow<T>)(from, n, to, length);
}

template void add_rows<uint8_t>(const char* const*, size_t, char*, intptr_t);
template void add_rows<uint16_t>(const char* const*, size_t, char*, intptr_t);
template void add_rows<uint32_t>(const char* const*, size_t, char*, intptr_t);
template void add_rows<uint64_t>(const char* const*, size_t, char*, intptr_t);
template void add_rows<float>(const char* const*, size_t, char*, intptr_t);
template void add_rows<double>(const char* const*, size_t, char*, intptr_t);

}  // namespace dalsegno::replay
