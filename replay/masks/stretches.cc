#include "replay/masks/stretches.h"

#include <array>

#include "replay/masks/works.h"

#if defined(__x86_64__) && !defined(__clang_analyzer__)  // clang-tidy reads with GCC's headers, whose intrinsics are GCC's own
#include "replay/masks/newer.h"
#include "replay/masks/wide.h"
#endif

namespace dalsegno::replay::masks {
namespace {

int64_t count_any(const char* m, int64_t step, int64_t n, bool* odd) {
  int64_t found = 0;
  for (int64_t i = 0; i < n; ++i) found += m[i * step] & 1, *odd |= (m[i * step] & 0xfe) != 0;
  return found;
}

// The ways of a processor for items of one size.
struct Ways {
  int64_t (*take)(const Mask& mask, Items from, char* to, int64_t room);
  int64_t (*put)(const Mask& mask, Items to, Items from, int64_t left);
  void (*fill)(const Mask& mask, Items to, const char* value);
};

template <class Bits, class Work>
[[gnu::always_inline]] inline int64_t taken(const Mask& mask, Work work) {
  const int64_t room = work.room;
  walk<Bits>(mask, work);
  return room - work.room;
}

template <class Bits, class Work>
[[gnu::always_inline]] inline int64_t put_there(const Mask& mask, Work work) {
  const int64_t left = work.left;
  walk<Bits>(mask, work);
  return left - work.left;
}

template <class Bits, class Work>
[[gnu::always_inline]] inline void filled(const Mask& mask, Work work) {
  walk<Bits>(mask, work);
}

#if defined(__x86_64__) && !defined(__clang_analyzer__)

struct Bits {
  [[gnu::always_inline]] static uint64_t word(const char* m) {
    const __m128i zero = _mm_setzero_si128();
    uint64_t none = 0;
    for (int i = 0; i < 64; i += 16) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(m + i));
      none |= static_cast<uint64_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, zero))) << i;
    }
    return ~none;
  }
  static uint64_t less(const char* m, int64_t n) { return bits_of(m, 1, n); }
};

int64_t plain_count(const Mask& mask, bool* odd) {
  const __m128i zero = _mm_setzero_si128(), one = _mm_set1_epi8(1);
  __m128i any = zero, sums = zero;
  int64_t i = 0;
  for (; i + 16 <= mask.n; i += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(mask.at + i));
    any = _mm_or_si128(any, bytes);
    sums = _mm_add_epi64(sums, _mm_sad_epu8(_mm_and_si128(bytes, one), zero));
  }
  *odd |= _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_or_si128(any, one), one)) != 0xffff;
  const int64_t found = _mm_cvtsi128_si64(sums) + _mm_cvtsi128_si64(_mm_unpackhi_epi64(sums, sums));
  return found + count_any(mask.at + i, 1, mask.n - i, odd);
}

template <class T>
struct Newer {
  DALSEGNO_NEWER [[gnu::flatten]] static int64_t take(const Mask& mask, Items from, char* to, int64_t room) {
    return taken<NewerBits>(mask, NewerTake<T>{{from, to, room}});
  }
  DALSEGNO_NEWER [[gnu::flatten]] static int64_t put(const Mask& mask, Items to, Items from, int64_t left) {
    return put_there<NewerBits>(mask, Put<T>{to, from.at, from.step, left});
  }
  DALSEGNO_NEWER [[gnu::flatten]] static void fill(const Mask& mask, Items to, const char* value) {
    filled<NewerBits>(mask, Fill<T>{to, item<T>(value)});
  }
};

template <class T>
struct Wide {
  DALSEGNO_WIDE [[gnu::flatten]] static int64_t take(const Mask& mask, Items from, char* to, int64_t room) {
    return taken<WideBits>(mask, WideTake<T>{{from, to, room}});
  }
  DALSEGNO_WIDE [[gnu::flatten]] static int64_t put(const Mask& mask, Items to, Items from, int64_t left) {
    return put_there<WideBits>(mask, WidePut<T>{{to, from.at, from.step, left}});
  }
  DALSEGNO_WIDE [[gnu::flatten]] static void fill(const Mask& mask, Items to, const char* value) {
    filled<WideBits>(mask, WideFill<T>{{to, item<T>(value)}});
  }
};

Way find_best() {
  const bool newer =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
  const bool wide = newer && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi2");
  return wide ? Way::kWide : newer ? Way::kNewer : Way::kPlain;
}

#else

struct Bits {
  static uint64_t word(const char* m) { return bits_of(m, 1, kWord); }
  static uint64_t less(const char* m, int64_t n) { return bits_of(m, 1, n); }
};

int64_t plain_count(const Mask& mask, bool* odd) { return count_any(mask.at, 1, mask.n, odd); }
int64_t wide_count(const Mask& mask, bool* odd) { return plain_count(mask, odd); }
Way find_best() { return Way::kPlain; }

#endif

template <class T>
struct Plain {
  static int64_t take(const Mask& mask, Items from, char* to, int64_t room) { return taken<Bits>(mask, Take<T>{from, to, room}); }
  static int64_t put(const Mask& mask, Items to, Items from, int64_t left) {
    return put_there<Bits>(mask, Put<T>{to, from.at, from.step, left});
  }
  static void fill(const Mask& mask, Items to, const char* value) { filled<Bits>(mask, Fill<T>{to, item<T>(value)}); }
};

#if !defined(__x86_64__) || defined(__clang_analyzer__)
template <class T>
using Newer = Plain<T>;
template <class T>
using Wide = Plain<T>;
#endif

template <template <class> class By>
constexpr std::array<Ways, 5> ways_by() {
  constexpr auto of = [](auto by) { return Ways{by.take, by.put, by.fill}; };
  return {of(By<uint8_t>{}), of(By<uint16_t>{}), of(By<uint32_t>{}), of(By<uint64_t>{}), of(By<Sixteen>{})};
}

constexpr std::array<Ways, 5> kWays[] = {ways_by<Plain>(), ways_by<Newer>(), ways_by<Wide>()};  // by Way, and the size's logarithm
const Way g_best = find_best();
Way g_way = g_best;

// Wide registers hold neighbours.
const Ways& ways(int64_t size, bool near) {
  const Way way = near ? g_way : std::min(g_way, Way::kNewer);
  return kWays[static_cast<int>(way)][static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(size)))];
}

}  // namespace

bool is_known(int64_t size) { return size >= 1 && size <= 16 && std::has_single_bit(static_cast<uint64_t>(size)); }

int64_t count(const Mask& mask, bool* odd) {
  if (mask.step != 1) return count_any(mask.at, mask.step, mask.n, odd);
  return (g_way == Way::kWide ? wide_count : plain_count)(mask, odd);
}

int64_t take(const Mask& mask, int64_t size, Items from, char* to, int64_t room) {
  return ways(size, from.step == size).take(mask, from, to, room);
}

int64_t put(const Mask& mask, int64_t size, Items to, Items from, int64_t left) {
  return ways(size, to.step == size && from.step == size).put(mask, to, from, left);
}

void fill(const Mask& mask, int64_t size, Items to, const char* value) { ways(size, to.step == size).fill(mask, to, value); }

Way best_way() { return g_best; }

bool go(Way way) {
  if (way > g_best) return false;
  g_way = way;
  return true;
}

}  // namespace dalsegno::replay::masks
