#include "replay/memory/added_rows.h"

#include <cstring>

namespace dalsegno::replay {
namespace {

struct Listed {
  const char* const* from;
  size_t n;
  template <class Add>
  [[gnu::always_inline]] void each(const Add& add) const {
    for (size_t k = 0; k < n; ++k) add(from[k]);
  }
};

struct Stepped {
  const SteppedRows& rows;
  template <class Add>
  [[gnu::always_inline]] void each(const Add& add) const {
    for (intptr_t round = 0; round < rows.rounds; ++round)
      for (intptr_t k = 0; k < rows.many; ++k) add(rows.first + round * rows.round_step + k * rows.step);
  }
};

template <class T, class Rows>
[[gnu::always_inline]] inline void add_elements(const Rows& rows, char* to, intptr_t first, intptr_t length) {
  for (intptr_t i = first; i < length; ++i) {
    T total = 0;
    rows.each([&](const char* row) {
      T one;
      std::memcpy(&one, row + i * static_cast<intptr_t>(sizeof(T)), sizeof one);
      total = static_cast<T>(total + one);
    });
    std::memcpy(to + i * static_cast<intptr_t>(sizeof(T)), &total, sizeof total);
  }
}

// Four vectors at a time, then one, then what is left. (Vectors are the processor's: of larger ones GCC 12 moves halves through memory.)
template <class T, class Vector, class Rows>
[[gnu::always_inline]] inline void add_vectors(const Rows& rows, char* to, intptr_t length) {
  constexpr auto kLanes = static_cast<intptr_t>(sizeof(Vector) / sizeof(T)), kItem = static_cast<intptr_t>(sizeof(T));
  intptr_t i = 0;
  for (; i + 4 * kLanes <= length; i += 4 * kLanes) {
    Vector a{}, b{}, c{}, d{};
    rows.each([&](const char* row) {
      const auto* at = reinterpret_cast<const Vector*>(row + i * kItem);
      a += at[0], b += at[1], c += at[2], d += at[3];
    });
    auto* out = reinterpret_cast<Vector*>(to + i * kItem);
    out[0] = a, out[1] = b, out[2] = c, out[3] = d;
  }
  for (; i + kLanes <= length; i += kLanes) {
    Vector a{};
    rows.each([&](const char* row) { a += *reinterpret_cast<const Vector*>(row + i * kItem); });
    *reinterpret_cast<Vector*>(to + i * kItem) = a;
  }
  add_elements<T>(rows, to, i, length);
}

template <class T, class Rows>
[[gnu::target("avx2")]] void add_wide(const Rows& rows, char* to, intptr_t length) {
  using Vector [[gnu::vector_size(32), gnu::aligned(1), gnu::may_alias]] = T;
  add_vectors<T, Vector>(rows, to, length);
}

template <class T, class Rows>
void add_narrow(const Rows& rows, char* to, intptr_t length) {  // that any x86-64 has
  using Vector [[gnu::vector_size(16), gnu::aligned(1), gnu::may_alias]] = T;
  add_vectors<T, Vector>(rows, to, length);
}

template <class T, class Rows>
void add(const Rows& rows, char* to, intptr_t length) {
  static const bool wide = __builtin_cpu_supports("avx2") != 0;
  (wide ? add_wide<T, Rows> : add_narrow<T, Rows>)(rows, to, length);
}

}  // namespace

template <class T>
void add_rows(const char* const* from, size_t n, char* to, intptr_t length) {
  add<T>(Listed{from, n}, to, length);
}

template <class T>
void add_stepped_rows(const SteppedRows& rows, char* to, intptr_t length) {
  add<T>(Stepped{rows}, to, length);
}

template void add_rows<uint8_t>(const char* const*, size_t, char*, intptr_t);
template void add_rows<uint16_t>(const char* const*, size_t, char*, intptr_t);
template void add_rows<uint32_t>(const char* const*, size_t, char*, intptr_t);
template void add_rows<uint64_t>(const char* const*, size_t, char*, intptr_t);
template void add_rows<float>(const char* const*, size_t, char*, intptr_t);
template void add_rows<double>(const char* const*, size_t, char*, intptr_t);
template void add_stepped_rows<uint64_t>(const SteppedRows&, char*, intptr_t);
template void add_stepped_rows<float>(const SteppedRows&, char*, intptr_t);
template void add_stepped_rows<double>(const SteppedRows&, char*, intptr_t);

}  // namespace dalsegno::replay
