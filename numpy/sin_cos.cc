// Sines and cosines: glibc's sysdeps/ieee754/dbl-64/s_sin.c (IBM Accurate Mathematical Library): near k/128, a few terms of both series
// and the table.
#include "numpy/fours.h"

#if defined(__x86_64__) && !defined(__clang_analyzer__)  // clang-tidy reads with GCC's headers, whose intrinsics are GCC's own
#include "numpy/fours_cases.h"
#include "numpy/fours_loop.h"
#include "numpy/sin_cos_table.h"

namespace dalsegno::numpy {
namespace {

using namespace fours;

// Of an angle a + da, |a| < 0.86: its sine, or where `cosine` says so its cosine.
DALSEGNO_FOURS inline __m256d near_table(__m256d a, __m256d da, __m256d cosine) {
  const __m256d zero = _mm256_setzero_pd(), sign = all(-0.0), big = all(0x1.8p45);
  const __m256d size = size_of(a), shifted = _mm256_add_pd(size, big);
  __m256d row[4];
  look_up_rows(kSineTable, bits_of(shifted), row);
  const __m256d sn = row[0], sn_rest = row[1], cs = row[2], cs_rest = row[3];
  // The other side of 0 is that of a mirror: a sine there is for a <= 0, a cosine for a < 0.
  const __m256d mirrored = either(cosine, _mm256_cmp_pd(a, zero, _CMP_LT_OQ), _mm256_cmp_pd(a, zero, _CMP_LE_OQ));
  const __m256d dx = _mm256_xor_pd(da, _mm256_and_pd(mirrored, sign));
  __m256d x = _mm256_sub_pd(size, _mm256_sub_pd(shifted, big));
  x = either(cosine, _mm256_add_pd(x, dx), x);
  const __m256d xx = _mm256_mul_pd(x, x);
  const __m256d p = _mm256_fmadd_pd(all_bits(0x3f811110e829872f), xx, all_bits(0xbfc5555555555515));
  const __m256d q = _mm256_fmadd_pd(_mm256_fmadd_pd(all_bits(0x3f56c16bedd9e239), xx, all_bits(0xbfa5555555555535)), xx, all(0.5));
  const __m256d cube = _mm256_fmadd_pd(_mm256_mul_pd(x, xx), p, either(cosine, x, dx));
  const __m256d s = either(cosine, cube, _mm256_add_pd(x, cube));
  const __m256d square = _mm256_mul_pd(xx, q), c = either(cosine, square, _mm256_fmadd_pd(x, dx, square));
  __m256d rest = _mm256_fmadd_pd(either(cosine, _mm256_xor_pd(sn_rest, sign), cs_rest), s, either(cosine, cs_rest, sn_rest));
  const __m256d whole = either(cosine, cs, sn);
  rest = _mm256_fnmadd_pd(c, whole, rest);
  rest = _mm256_fmadd_pd(s, either(cosine, _mm256_xor_pd(sn, sign), cs), rest);
  const __m256d found = _mm256_add_pd(whole, rest);
  return either(cosine, found, _mm256_or_pd(size_of(found), _mm256_and_pd(a, sign)));
}

// The same of a sine, |a| < 0.126.
DALSEGNO_FOURS inline __m256d near_zero(__m256d a, __m256d da) {
  const __m256d xx = _mm256_mul_pd(a, a);
  __m256d p = _mm256_fmadd_pd(all_bits(0xbe5addffc2fcdf59), xx, all_bits(0x3ec71de27b9a7ed9));
  p = _mm256_fmadd_pd(p, xx, all_bits(0xbf2a01a019db08b8));
  p = _mm256_fmadd_pd(p, xx, all_bits(0x3f81111111110ece));
  p = _mm256_fmadd_pd(p, xx, all_bits(0xbfc5555555555555));
  p = _mm256_fmsub_pd(p, a, _mm256_mul_pd(da, all(0.5)));
  return _mm256_add_pd(_mm256_fmadd_pd(xx, p, da), a);
}

DALSEGNO_FOURS inline __m256d by_parts(__m256d a, __m256d da, __m256d cosine) {
  const __m256d found = near_table(a, da, cosine);
  const __m256d small = _mm256_andnot_pd(cosine, _mm256_cmp_pd(size_of(a), all(0.126), _CMP_LT_OQ));
  return _mm256_movemask_pd(small) == 0 ? found : either(small, near_zero(a, da), found);
}

// x without as many right angles as come next to it, as a + da; and their number, in the lowest bits.
DALSEGNO_FOURS inline __m256i without_right_angles(__m256d x, __m256d* a, __m256d* da) {
  const __m256d shift = all(0x1.8p52), shifted = _mm256_fmadd_pd(x, all_bits(0x3fe45f306dc9c883), shift), n = _mm256_sub_pd(shifted, shift);
  const __m256d third = all_bits(0xbc8cb3b398000000), fourth = all_bits(0xbacd747f23e32ed7);
  const __m256d y = _mm256_fnmadd_pd(n, all_bits(0xbe4dde973c000000), _mm256_fnmadd_pd(n, all_bits(0x3ff921fb58000000), x));
  const __m256d t = _mm256_fnmadd_pd(n, third, y);
  *a = _mm256_fnmadd_pd(n, fourth, t);
  *da = _mm256_add_pd(_mm256_fnmadd_pd(third, n, _mm256_sub_pd(y, t)), _mm256_fnmadd_pd(n, fourth, _mm256_sub_pd(t, *a)));
  return bits_of(shifted);
}

// Lanes of ones where bit `bit` is set.
DALSEGNO_FOURS inline __m256d has_bit(__m256i numbers, int bit) {
  return _mm256_castsi256_pd(_mm256_cmpgt_epi64(_mm256_setzero_si256(), _mm256_slli_epi64(numbers, 63 - bit)));
}

// cosine: shifted by a right angle.
template <bool cosine>
struct Angle {
  static constexpr int kInputs = 1;
  static std::span<const double> hard(int) { return cosine ? std::span(kHardCos) : std::span(kHardSin); }
  static constexpr double kPlain = 0.5;

  DALSEGNO_FOURS static __m256d value(const __m256d* inputs, __m256d* plain) {
    const __m256d sign = all(-0.0), size = size_of(inputs[0]);
    const __m256d is_none = _mm256_cmp_pd(size, size, _CMP_UNORD_Q);
    const __m256d is_tiny = _mm256_cmp_pd(size, all(cosine ? 0x1p-27 : 0x1p-26), _CMP_LT_OQ);
    const __m256d is_told = cosine ? is_tiny
                                   : _mm256_and_pd(is_tiny, _mm256_or_pd(_mm256_cmp_pd(size, all(0x1p-1022), _CMP_GE_OQ),
                                                                         _mm256_cmp_pd(size, _mm256_setzero_pd(), _CMP_EQ_OQ)));
    const __m256d is_usual = _mm256_andnot_pd(is_tiny, _mm256_cmp_pd(size, all_bits(0x419921fb00000000), _CMP_LT_OQ));
    *plain = _mm256_or_pd(_mm256_or_pd(is_none, is_told), is_usual);
    const __m256d x = either(is_usual, inputs[0], all(kPlain)), x_size = size_of(x);
    const __m256d is_first = _mm256_cmp_pd(x_size, all_bits(0x3feb600000000000), _CMP_LT_OQ);
    const __m256d is_far = _mm256_cmp_pd(x_size, all_bits(0x400368fd00000000), _CMP_GE_OQ);
    const __m256d is_second = _mm256_andnot_pd(_mm256_or_pd(is_first, is_far), all_bits(~uint64_t{0}));
    __m256d a = x, da = _mm256_setzero_pd(), by_cosine = cosine ? is_first : is_second, signs = _mm256_setzero_pd();
    if (_mm256_movemask_pd(is_second) != 0) {  // beside a right angle
      const __m256d right = all_bits(0x3ff921fb54442d18), right_rest = all_bits(0x3c91a62633145c07);
      const __m256d y = _mm256_sub_pd(right, x_size), b = cosine ? _mm256_add_pd(y, right_rest) : y;
      a = either(is_second, b, a);
      da = either(is_second, cosine ? _mm256_add_pd(_mm256_sub_pd(y, b), right_rest) : right_rest, da);
      if (!cosine) signs = _mm256_and_pd(_mm256_and_pd(is_second, x), sign);
    }
    if (_mm256_movemask_pd(is_far) != 0) {
      __m256d b, db;
      __m256i n = without_right_angles(x, &b, &db);
      if (cosine) n = _mm256_add_epi64(n, _mm256_set1_epi64x(1));
      a = either(is_far, b, a), da = either(is_far, db, da), by_cosine = either(is_far, has_bit(n, 0), by_cosine);
      signs = either(is_far, _mm256_and_pd(has_bit(n, 1), sign), signs);
    }
    const __m256d found = _mm256_xor_pd(by_parts(a, da, by_cosine), signs);
    const __m256d as_it_is = _mm256_and_pd(_mm256_or_pd(is_none, is_told), inputs[0]);
    const __m256d apart = cosine ? either(is_none, as_it_is, all(1.0)) : as_it_is;
    return either(is_usual, found, either(is_none, _mm256_add_pd(as_it_is, as_it_is), apart));
  }
};

}  // namespace

InnerLoop sin_by_fours(const InnerLoop& numpys) { return found<Angle<false>>(numpys); }
InnerLoop cos_by_fours(const InnerLoop& numpys) { return found<Angle<true>>(numpys); }

}  // namespace dalsegno::numpy

#endif
