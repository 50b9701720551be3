// Sines and cosines: glibc's sysdeps/ieee754/dbl-64/s_sin.c (IBM Accurate Mathematical Library): near k/128, a few terms of both series
// and the table.
#pragma once
#include "numpy/fours_loop.h"
#include "numpy/sin_cos_table.h"

namespace dalsegno::numpy::fours {

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

// Where |x| lies, as lanes of ones: below 0.86, from 2.43 on, or between the two. There a right angle is near.
struct Stretches {
  __m256d is_first, is_second, is_far;
  DALSEGNO_FOURS explicit Stretches(__m256d size)
      : is_first(_mm256_cmp_pd(size, all_bits(0x3feb600000000000), _CMP_LT_OQ)),
        is_far(_mm256_cmp_pd(size, all_bits(0x400368fd00000000), _CMP_GE_OQ)) {
    is_second = _mm256_andnot_pd(_mm256_or_pd(is_first, is_far), all_bits(~uint64_t{0}));
  }
};

// What is missing to a right angle, as a + da.
DALSEGNO_FOURS inline __m256d to_right_angle(__m256d size, __m256d* da) {
  const __m256d rest = all_bits(kRightRest), y = _mm256_sub_pd(all_bits(kRight), size), a = _mm256_add_pd(y, rest);
  *da = _mm256_add_pd(_mm256_sub_pd(y, a), rest);
  return a;
}

// Both, of angles with 2**-26 <= |x| < 105414350, as sincos() has them (s_sincos.c): beside a right angle its sine is not that of sin().
DALSEGNO_FOURS inline void sine_and_cosine(__m256d x, __m256d* sine, __m256d* cosine) {
  const Stretches in(size_of(x));
  __m256d a = x, da = _mm256_setzero_pd(), by_cosine = in.is_second, other_by_cosine = in.is_first;
  __m256d signs = _mm256_and_pd(_mm256_and_pd(in.is_second, x), all(-0.0)), other_signs = _mm256_setzero_pd();
  if (_mm256_movemask_pd(in.is_second) != 0) {
    __m256d db;
    const __m256d b = to_right_angle(size_of(x), &db);
    a = either(in.is_second, b, a), da = either(in.is_second, db, da);
  }
  if (_mm256_movemask_pd(in.is_far) != 0) {
    __m256d b, db;
    const __m256i n = without_right_angles(x, &b, &db), next = _mm256_add_epi64(n, _mm256_set1_epi64x(1));
    a = either(in.is_far, b, a), da = either(in.is_far, db, da);
    by_cosine = either(in.is_far, has_bit(n, 0), by_cosine), other_by_cosine = either(in.is_far, has_bit(next, 0), other_by_cosine);
    signs = either(in.is_far, _mm256_and_pd(has_bit(n, 1), all(-0.0)), signs);
    other_signs = either(in.is_far, _mm256_and_pd(has_bit(next, 1), all(-0.0)), other_signs);
  }
  *sine = _mm256_xor_pd(by_parts(a, da, by_cosine), signs);
  *cosine = _mm256_xor_pd(by_parts(a, da, other_by_cosine), other_signs);
}

}  // namespace dalsegno::numpy::fours
