// For stretches.cc: what works.h does, by AVX-512, for items that are neighbours. Masked loads and stores touch no other items, so they
// may lie across the end of an array, and beside items that other threads write.
#pragma once
#include <immintrin.h>

#include "replay/masks/works.h"

#define DALSEGNO_WIDE __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi2,bmi,bmi2,popcnt")))

namespace dalsegno::replay::masks {

DALSEGNO_WIDE inline uint64_t lowest(int64_t n) { return _bzhi_u64(kAll, static_cast<unsigned>(n)); }
DALSEGNO_WIDE inline uint64_t lowest(int64_t n, uint64_t of) { return _pdep_u64(lowest(n), of); }

struct WideBits {
  DALSEGNO_WIDE static uint64_t word(const char* m) {
    const __m512i bytes = _mm512_loadu_si512(m);
    return _mm512_test_epi8_mask(bytes, bytes);
  }
  DALSEGNO_WIDE static uint64_t less(const char* m, int64_t n) {
    const __m512i bytes = _mm512_maskz_loadu_epi8(lowest(n), m);
    return _mm512_test_epi8_mask(bytes, bytes);
  }
};

// A register full of items.
template <class T>
struct Lanes;

// clang-format off
#define DALSEGNO_LANES(T, Mask, lanes)                                                                                            \
  template <>                                                                                                                    \
  struct Lanes<T> {                                                                                                              \
    static constexpr int64_t kItems = 64 / sizeof(T);                                                                            \
    DALSEGNO_WIDE static Mask mask(uint64_t bits) { return static_cast<Mask>(bits); }                                            \
    DALSEGNO_WIDE static __m512i load(Mask k, const char* at) { return _mm512_maskz_loadu_##lanes(k, at); }                      \
    DALSEGNO_WIDE static void store(char* at, Mask k, __m512i x) { _mm512_mask_storeu_##lanes(at, k, x); }                       \
    DALSEGNO_WIDE static __m512i compress(Mask k, __m512i x) { return _mm512_maskz_compress_##lanes(k, x); }                     \
    DALSEGNO_WIDE static __m512i expand(Mask k, __m512i x) { return _mm512_maskz_expand_##lanes(k, x); }                         \
    DALSEGNO_WIDE static __m512i spread(T value) { return _mm512_set1_##lanes(static_cast<std::make_signed_t<T>>(value)); }      \
  };
DALSEGNO_LANES(uint8_t, __mmask64, epi8)
DALSEGNO_LANES(uint16_t, __mmask32, epi16)
DALSEGNO_LANES(uint32_t, __mmask16, epi32)
DALSEGNO_LANES(uint64_t, __mmask8, epi64)
// clang-format on

template <>
struct Lanes<Sixteen> : Lanes<uint64_t> {  // two lanes an item
  static constexpr int64_t kItems = 4;
  DALSEGNO_WIDE static __mmask8 mask(uint64_t bits) { return static_cast<__mmask8>(_pdep_u32(static_cast<uint32_t>(bits), 0x55) * 3); }
  DALSEGNO_WIDE static __m512i spread(Sixteen value) {
    const auto a = static_cast<int64_t>(value.a), b = static_cast<int64_t>(value.b);
    return _mm512_set4_epi64(b, a, b, a);
  }
};

template <class T>
struct WideTake : Take<T> {
  using Take<T>::from, Take<T>::to, Take<T>::room;
  using L = Lanes<T>;
  static constexpr int64_t kSize = sizeof(T);

  DALSEGNO_WIDE void some(int64_t first, uint64_t word, int64_t n) {
    int64_t many = std::popcount(word);
    if (this->few(first, word, many)) return;
    const char* at = from.at + first * kSize;
    if (many > room) word = lowest(room, word), many = room;
    room -= many;
    for (int64_t i = 0; i < n; i += L::kItems) {
      const uint64_t bits = (word >> i) & lowest(L::kItems);
      const int64_t taken = std::popcount(bits);
      L::store(to, L::mask(lowest(taken)), L::compress(L::mask(bits), L::load(L::mask(bits), at + i * kSize)));
      to += taken * kSize;
    }
  }
};

template <class T>
struct WidePut : Put<T> {
  using Put<T>::to, Put<T>::from, Put<T>::left;
  using L = Lanes<T>;
  static constexpr int64_t kSize = sizeof(T);

  DALSEGNO_WIDE void some(int64_t first, uint64_t word, int64_t n) {
    int64_t many = std::popcount(word);
    if (many > left) word = lowest(left, word), many = left;
    char* at = to.at + first * kSize;
    left -= many;
    if (many <= kFew && n > 2 * L::kItems) {
      for (; word != 0; word = _blsr_u64(word), from += kSize) set(at + static_cast<int64_t>(_tzcnt_u64(word)) * kSize, item<T>(from));
      return;
    }
    for (int64_t i = 0; i < n; i += L::kItems) {
      const uint64_t bits = (word >> i) & lowest(L::kItems);
      const int64_t put = std::popcount(bits);
      L::store(at + i * kSize, L::mask(bits), L::expand(L::mask(bits), L::load(L::mask(lowest(put)), from)));
      from += put * kSize;
    }
  }
};

template <class T>
struct WideFill : Fill<T> {
  using Fill<T>::to, Fill<T>::value;
  using L = Lanes<T>;
  static constexpr int64_t kSize = sizeof(T);

  DALSEGNO_WIDE void all(int64_t first, int64_t n) {
    for (; n > 0; first += kWord, n -= kWord) some(first, kAll, kWord);
  }

  DALSEGNO_WIDE void some(int64_t first, uint64_t word, int64_t n) {
    char* at = to.at + first * kSize;
    if (std::popcount(word) <= kFew && n > 2 * L::kItems) {
      for (; word != 0; word = _blsr_u64(word)) set(at + static_cast<int64_t>(_tzcnt_u64(word)) * kSize, value);
      return;
    }
    const __m512i values = L::spread(value);
    for (int64_t i = 0; i < n; i += L::kItems) L::store(at + i * kSize, L::mask((word >> i) & lowest(L::kItems)), values);
  }
};

DALSEGNO_WIDE inline int64_t wide_count(const Mask& mask, bool* odd) {
  const __m512i one = _mm512_set1_epi8(1);
  __m512i any = _mm512_setzero_si512();
  int64_t found = 0;
  for (int64_t i = 0; i < mask.n; i += kWord) {
    const __m512i bytes = _mm512_maskz_loadu_epi8(lowest(std::min(mask.n - i, kWord)), mask.at + i);
    any = _mm512_or_si512(any, bytes);
    found += std::popcount(_mm512_test_epi8_mask(bytes, one));
  }
  *odd |= _mm512_test_epi8_mask(any, _mm512_set1_epi8(static_cast<char>(0xfe))) != 0;
  return found;
}

}  // namespace dalsegno::replay::masks
