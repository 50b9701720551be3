// What exp_log.cc and more_logs.cc share: parts of a double, rows of Arm's tables, and the natural logarithm (Arm Optimized Routines,
// math/log.c).
#pragma once
#include "numpy/exp_log_tables.h"
#include "numpy/fours_loop.h"

namespace dalsegno::numpy::fours {

constexpr int kIndexBits = 7;  // of most tables

// The pairs of a table that the low bits say.
template <int bits = kIndexBits>
DALSEGNO_FOURS inline void look_up(const uint64_t* table, __m256i indices, __m256d* first, __m256d* second) {
  alignas(32) int64_t at[kLanes];
  _mm256_store_si256(reinterpret_cast<__m256i*>(at), _mm256_and_si256(indices, _mm256_set1_epi64x((1 << bits) - 1)));
  const auto row = [&](int k) { return reinterpret_cast<const double*>(table + 2 * at[k]); };
  const double* const rows[kLanes] = {row(0), row(1), row(2), row(3)};
  const TwoColumns columns = two_columns(rows);
  *first = columns.first, *second = columns.second;
}

// The exponent of x, and x as if it were 0: an interval begins at `first`.
template <int bits = kIndexBits>
DALSEGNO_FOURS inline __m256d part_of(__m256d x, uint64_t first, __m256d* exponent, __m256i* interval) {
  const __m256i above = _mm256_sub_epi64(bits_of(x), _mm256_set1_epi64x(static_cast<int64_t>(first)));
  const __m256i exponents = _mm256_permutevar8x32_epi32(_mm256_srai_epi32(above, 20), _mm256_setr_epi32(1, 3, 5, 7, 1, 3, 5, 7));
  *exponent = _mm256_cvtepi32_pd(_mm256_castsi256_si128(exponents));
  *interval = _mm256_srli_epi64(above, 52 - bits);
  const __m256i whole = _mm256_and_si256(above, _mm256_set1_epi64x(static_cast<int64_t>(0xfff0000000000000)));
  return _mm256_castsi256_pd(_mm256_sub_epi64(bits_of(x), whole));
}

DALSEGNO_FOURS inline __m256d is_normal(__m256d x) {
  return _mm256_and_pd(_mm256_cmp_pd(x, all(std::numeric_limits<double>::min()), _CMP_GE_OQ),
                       _mm256_cmp_pd(x, all(std::numeric_limits<double>::max()), _CMP_LE_OQ));
}

// Lanes of ones where first <= x < end.
DALSEGNO_FOURS inline __m256d is_within(__m256d x, double first, double end) {
  return _mm256_and_pd(_mm256_cmp_pd(x, all(first), _CMP_GE_OQ), _mm256_cmp_pd(x, all(end), _CMP_LT_OQ));
}

DALSEGNO_FOURS inline __m256d log_far_from_one(__m256d x) {
  __m256d kd, inverse, logarithm;
  __m256i interval;
  const __m256d z = part_of(x, 0x3fe6000000000000, &kd, &interval);
  look_up(kLogTable, interval, &inverse, &logarithm);
  const __m256d r = _mm256_fmadd_pd(z, inverse, all(-1.0));
  const __m256d w = _mm256_fmadd_pd(kd, all_bits(0x3fe62e42fefa3800), logarithm);
  const __m256d high = _mm256_add_pd(r, w);
  const __m256d r2 = _mm256_mul_pd(r, r);
  __m256d low = _mm256_add_pd(_mm256_sub_pd(w, high), r);
  low = _mm256_fmadd_pd(kd, all_bits(0x3d2ef35793c76730), low);
  low = _mm256_fmadd_pd(r2, all_bits(0xbfe0000000000001), low);
  const __m256d p = _mm256_fmadd_pd(r, all_bits(0xbfcfffffffeb4590), all_bits(0x3fd555555551305b));
  const __m256d q = _mm256_fmadd_pd(r, all_bits(0xbfc55575e506c89f), all_bits(0x3fc999b324f10111));
  return _mm256_add_pd(_mm256_fmadd_pd(_mm256_mul_pd(r, r2), _mm256_fmadd_pd(q, r2, p), low), high);
}

DALSEGNO_FOURS inline __m256d log_near_one(__m256d x) {
  const __m256d half = all_bits(0xbfe0000000000000), split = all(0x1p27);
  const __m256d r = _mm256_sub_pd(x, all(1.0)), r2 = _mm256_mul_pd(r, r), r3 = _mm256_mul_pd(r, r2);
  __m256d a = _mm256_fmadd_pd(r, all_bits(0xbfcffffffffffdcb), all_bits(0x3fd5555555555577));
  a = _mm256_fmadd_pd(r2, all_bits(0x3fc999999995dd0c), a);
  __m256d b = _mm256_fmadd_pd(r, all_bits(0x3fc24924a344de30), all_bits(0xbfc55555556745a7));
  b = _mm256_fmadd_pd(r2, all_bits(0xbfbfffffa4423d65), b);
  __m256d c = _mm256_fmadd_pd(r, all_bits(0xbfb999eb43b068ff), all_bits(0x3fbc7184282ad6ca));
  c = _mm256_fmadd_pd(r2, all_bits(0x3fb78182f7afd085), c);
  c = _mm256_fmadd_pd(r3, all_bits(0xbfb5521375d145cd), c);
  const __m256d y = _mm256_fmadd_pd(_mm256_fmadd_pd(c, r3, b), r3, a);
  const __m256d upper = _mm256_fnmadd_pd(split, r, _mm256_fmadd_pd(r, split, r)), lower = _mm256_sub_pd(r, upper);
  const __m256d square = _mm256_mul_pd(upper, upper);
  const __m256d high = _mm256_fmadd_pd(square, half, r);
  __m256d low = _mm256_fmadd_pd(square, half, _mm256_sub_pd(r, high));
  low = _mm256_fmadd_pd(_mm256_mul_pd(half, lower), _mm256_add_pd(r, upper), low);
  return _mm256_add_pd(high, _mm256_fmadd_pd(y, r3, low));
}

// A logarithm, which F::of_normal() gives of normal numbers.
template <class F>
struct Logarithm {
  static constexpr int kInputs = 1;
  static constexpr double kPlain = 1.5;

  DALSEGNO_FOURS static __m256d value(const __m256d* inputs, __m256d* plain) {
    const __m256d is_usual = is_normal(inputs[0]);
    *plain = _mm256_or_pd(is_usual, _mm256_cmp_pd(inputs[0], all(std::numeric_limits<double>::max()), _CMP_NLE_UQ));
    const __m256d as_it_is = _mm256_andnot_pd(is_usual, _mm256_and_pd(*plain, inputs[0]));  // infinity, or no number
    return either(is_usual, F::of_normal(either(is_usual, inputs[0], all(kPlain))), _mm256_add_pd(as_it_is, as_it_is));
  }
};

// Of normal numbers.
DALSEGNO_FOURS inline __m256d natural_log(__m256d x) {
  const __m256d near = is_within(x, 1 - 0x1p-4, 1 + 0x1.09p-4);
  const int which = _mm256_movemask_pd(near);
  __m256d found = x;
  if (which != 0xf) found = log_far_from_one(x);
  if (which != 0) found = either(near, log_near_one(either(near, x, all(1.0))), found);
  return found;
}

}  // namespace dalsegno::numpy::fours
