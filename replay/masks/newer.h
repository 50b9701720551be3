// For stretches.cc: what works.h does, by AVX2, where taking is done by eight neighbours at once. (It stores no items of one or two bytes
// by a mask, so putting and filling are as they are there.)
#pragma once
#include <immintrin.h>

#include <array>

#include "replay/masks/works.h"

#define DALSEGNO_NEWER __attribute__((target("avx2,bmi,bmi2,popcnt")))

namespace dalsegno::replay::masks {

struct NewerBits {
  DALSEGNO_NEWER static uint32_t zeros(const char* m) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(m));
    return static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, _mm256_setzero_si256())));
  }
  DALSEGNO_NEWER static uint64_t word(const char* m) { return ~(uint64_t{zeros(m + 32)} << 32 | zeros(m)); }
  static uint64_t less(const char* m, int64_t n) { return bits_of(m, 1, n); }
};

// Where the bits of a byte are, in order, a byte each.
constexpr std::array<uint64_t, 256> kPlaces = [] {
  std::array<uint64_t, 256> places{};
  for (unsigned bits = 0; bits < 256; ++bits)
    for (unsigned i = 0, k = 0; i < 8; ++i)
      if ((bits >> i & 1) != 0) places[bits] |= uint64_t{i} << (8 * k++);
  return places;
}();

// compress(): of eight items those with a bit come to the front; behind them anything is written.
template <class T>
struct Eight;

template <>
struct Eight<uint8_t> {
  DALSEGNO_NEWER static void compress(const char* at, unsigned bits, char* to) {
    const __m128i x = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at)),
                  places = _mm_cvtsi64_si128(static_cast<int64_t>(kPlaces[bits]));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_shuffle_epi8(x, places));
  }
};

template <>
struct Eight<uint16_t> {
  DALSEGNO_NEWER static void compress(const char* at, unsigned bits, char* to) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)),
                  places = _mm_cvtsi64_si128(static_cast<int64_t>(kPlaces[bits]));
    const __m128i twice = _mm_add_epi8(places, places), both = _mm_add_epi8(_mm_unpacklo_epi8(twice, twice), _mm_set1_epi16(0x0100));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_shuffle_epi8(x, both));
  }
};

template <>
struct Eight<uint32_t> {
  DALSEGNO_NEWER static void compress(const char* at, unsigned bits, char* to) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
    const __m256i places = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<int64_t>(kPlaces[bits])));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permutevar8x32_epi32(x, places));
  }
};

template <>
struct Eight<uint64_t> {  // four, twice, as pairs of lanes
  DALSEGNO_NEWER static void four(const char* at, unsigned bits, char* to) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
    const __m256i places = _mm256_cvtepu8_epi64(_mm_cvtsi64_si128(static_cast<int64_t>(kPlaces[bits])));
    const __m256i pairs = _mm256_add_epi64(_mm256_or_si256(places, _mm256_slli_epi64(places, 32)),
                                           _mm256_or_si256(places, _mm256_slli_epi64(_mm256_add_epi64(places, _mm256_set1_epi64x(1)), 32)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permutevar8x32_epi32(x, pairs));
  }
  DALSEGNO_NEWER static void compress(const char* at, unsigned bits, char* to) {
    four(at, bits & 15, to);
    four(at + 32, bits >> 4, to + 8 * std::popcount(bits & 15));
  }
};

template <class T>
struct NewerTake : Take<T> {
  using Take<T>::from, Take<T>::to, Take<T>::room;
  static constexpr int64_t kSize = sizeof(T);

  DALSEGNO_NEWER void some(int64_t first, uint64_t word, int64_t n) {
    const int64_t many = std::popcount(word);
    if (many <= kFew || n < kWord || from.step != kSize || room < many + 8) return Take<T>::some(first, word, n);
    const char* at = from.at + first * kSize;
    for (; word != 0; word >>= 8, at += 8 * kSize) {
      const auto bits = static_cast<unsigned>(word & 0xff);
      Eight<T>::compress(at, bits, to);
      to += std::popcount(bits) * kSize;
    }
    room -= many;
  }
};

template <>
struct NewerTake<Sixteen> : Take<Sixteen> {};  // two at once are no faster than one

}  // namespace dalsegno::replay::masks
