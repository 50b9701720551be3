// Arc sines and arc cosines: glibc's sysdeps/ieee754/dbl-64/e_asin.c (2.34 and later; IBM Accurate Mathematical Library): up to 1/8 by a
// few terms of the series, then around the middle of one of a table's intervals, and next to 1 by twice that of the root of half of what is
// lacking there.
#include "numpy/fours.h"

#if defined(__x86_64__) && !defined(__clang_analyzer__)  // clang-tidy reads with GCC's headers, whose intrinsics are GCC's own
#include "numpy/arc_sine_table.h"
#include "numpy/fours_cases.h"
#include "numpy/fours_loop.h"

namespace dalsegno::numpy {
namespace {

using namespace fours;

constexpr double kFirst = 0.125, kNear = 0.96875;  // where the table begins and ends
constexpr double kFuller = 0.5, kFull = 0.921875;  // where the rows have the seventh and eighth powers, and the ninth and tenth

constexpr int kColumns = 12;

DALSEGNO_FOURS inline bool any_from(__m256d x, double least) { return _mm256_movemask_pd(_mm256_cmp_pd(x, all(least), _CMP_GE_OQ)) != 0; }

// What the arc sine of a number from kFirst to kNear is more than *start.
DALSEGNO_FOURS inline __m256d by_table(__m256d x, __m256d* start) {
  const __m256d scaled = _mm256_mul_pd(x, all(256.0)), whole = _mm256_round_pd(scaled, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  const __m256d distance = _mm256_sub_pd(x, _mm256_fmadd_pd(whole, all(0x1p-8), all(0x1p-9)));
  alignas(16) uint32_t at[kLanes];
  _mm_store_si128(reinterpret_cast<__m128i*>(at), _mm256_cvttpd_epi32(scaled));
  const auto row = [&](int k) { return reinterpret_cast<const double*>(kArcSineTable) + kColumns * (size_t{at[k]} - 32); };
  const double* const rows[kLanes] = {row(0), row(1), row(2), row(3)};
  __m256d p = _mm256_setzero_pd();
  const auto two_more = [&](int first) DALSEGNO_FOURS {
    const TwoColumns columns = two_columns(rows, first);
    p = _mm256_fmadd_pd(_mm256_fmadd_pd(p, distance, columns.second), distance, columns.first);
  };
  if (any_from(x, kFull)) two_more(10);
  if (any_from(x, kFuller)) two_more(8);
  two_more(6), two_more(4);
  const TwoColumns first_powers = two_columns(rows, 2), starts = two_columns(rows, 0);
  p = _mm256_fmadd_pd(p, distance, first_powers.second);
  *start = starts.first;
  return _mm256_fmadd_pd(distance, first_powers.first, _mm256_fmadd_pd(_mm256_mul_pd(distance, distance), p, starts.second));
}

// What a number's cube is taken times.
DALSEGNO_FOURS inline __m256d series(__m256d square) {
  __m256d p = _mm256_fmadd_pd(all_bits(0x3f9292d80f453c72), square, all_bits(0x3f96e442c822d419));
  p = _mm256_fmadd_pd(p, square, all_bits(0x3f9f1c7e04f4ad99));
  p = _mm256_fmadd_pd(p, square, all_bits(0x3fa6db6dae42c0e4));
  p = _mm256_fmadd_pd(p, square, all_bits(0x3fb333333336127d));
  return _mm256_fmadd_pd(p, square, all_bits(0x3fc55555555554f9));
}

// Half of what x lacks to 1; at 1 something that is lost beside a right angle, but has a root to divide by.
DALSEGNO_FOURS inline __m256d half_lack(__m256d x) {
  return _mm256_max_pd(_mm256_mul_pd(_mm256_sub_pd(all(1.0), x), all(0.5)), all(0x1p-200));
}

// Nearly a number's root, which is nearer times *slope.
DALSEGNO_FOURS inline __m256d root_of(__m256d x, __m256d* slope) {
  alignas(32) uint64_t at[kLanes];
  const __m256i bits = bits_of(x), exponents = _mm256_sub_epi64(_mm256_set1_epi64x(0x3ff + 0x1ff), _mm256_srli_epi64(bits, 53));
  _mm256_store_si256(reinterpret_cast<__m256i*>(at), _mm256_and_si256(_mm256_srli_epi64(bits, 46), _mm256_set1_epi64x(0x7f)));
  const auto entry = [&](int k) { return std::bit_cast<double>(kOneOverRoots[at[k]]); };
  const __m256d found = _mm256_set_pd(entry(3), entry(2), entry(1), entry(0));
  const __m256d first = _mm256_mul_pd(found, _mm256_castsi256_pd(_mm256_slli_epi64(exponents, 52)));
  const __m256d left = _mm256_fnmadd_pd(_mm256_mul_pd(first, first), x, all(1.0));
  __m256d p = _mm256_fmadd_pd(all_bits(0x3fd4006318d1dab9), left, all_bits(0x3fd800496769c91a));
  p = _mm256_fmadd_pd(p, left, all_bits(0x3fdfffffff757304));
  p = _mm256_fmadd_pd(p, left, all_bits(0x3fefffffffecc1dd));
  const __m256d inverse = _mm256_mul_pd(p, first), root = _mm256_mul_pd(x, inverse);
  *slope = _mm256_fnmadd_pd(_mm256_mul_pd(inverse, all(0.5)), root, all(1.5));
  return root;
}

// What is left of the root beside `high`, some of its bits.
DALSEGNO_FOURS inline __m256d left_of_root(__m256d x, __m256d root, __m256d slope, __m256d high) {
  return _mm256_div_pd(_mm256_fnmadd_pd(high, high, x), _mm256_fmadd_pd(slope, root, high));
}

struct Arcsin {
  static constexpr int kInputs = 1;
  static std::span<const double> hard(int) { return kHardArcsin; }
  static constexpr double kPlain = 0.5;

  DALSEGNO_FOURS static __m256d value(const __m256d* inputs, __m256d* plain) {
    const __m256d size = size_of(inputs[0]), zero = _mm256_setzero_pd();
    *plain = _mm256_cmp_pd(size, all(1.0), _CMP_LE_OQ);
    const __m256d x = either(*plain, size, all(kPlain));
    const __m256d is_small = _mm256_cmp_pd(x, all(kFirst), _CMP_LT_OQ), is_near = _mm256_cmp_pd(x, all(kNear), _CMP_GE_OQ);
    const int small = _mm256_movemask_pd(is_small), near = _mm256_movemask_pd(is_near);
    __m256d found = zero;
    if ((small | near) != (1 << kLanes) - 1) {
      __m256d start;
      const __m256d more = by_table(_mm256_max_pd(_mm256_andnot_pd(is_near, x), all(kFirst)), &start);
      found = _mm256_add_pd(start, more);
    }
    if (small != 0) {
      const __m256d is_normal = _mm256_cmp_pd(x, all(std::numeric_limits<double>::min()), _CMP_GE_OQ);
      *plain = _mm256_and_pd(*plain, _mm256_or_pd(is_normal, _mm256_cmp_pd(x, zero, _CMP_EQ_OQ)));
      const __m256d some = _mm256_and_pd(x, _mm256_cmp_pd(x, all(0x1p-26), _CMP_GE_OQ)), square = _mm256_mul_pd(some, some);
      found = either(is_small, _mm256_fmadd_pd(series(square), _mm256_mul_pd(some, square), x), found);
    }
    if (near != 0) found = either(is_near, by_root(x), found);
    return _mm256_or_pd(found, _mm256_and_pd(inputs[0], all(-0.0)));
  }

 private:
  DALSEGNO_FOURS static __m256d by_root(__m256d x) {
    const __m256d half = half_lack(x), two = all(2.0);
    __m256d slope;
    const __m256d root = root_of(half, &slope);
    const __m256d high = _mm256_sub_pd(_mm256_add_pd(root, all(0x1p24)), all(0x1p24)), low = left_of_root(half, root, slope, high);
    const __m256d both = _mm256_add_pd(high, low), rest = _mm256_fnmadd_pd(low, two, all_bits(kRightRest));
    return _mm256_add_pd(_mm256_fnmadd_pd(_mm256_add_pd(both, both), _mm256_mul_pd(series(half), half), rest),
                         _mm256_fnmadd_pd(high, two, all_bits(kRight)));
  }
};

struct Arccos {
  static constexpr int kInputs = 1;
  static std::span<const double> hard(int) { return kHardArccos; }
  static constexpr double kPlain = 0.5;

  DALSEGNO_FOURS static __m256d value(const __m256d* inputs, __m256d* plain) {
    const __m256d size = size_of(inputs[0]), sign = _mm256_and_pd(inputs[0], all(-0.0)), right = all_bits(kRight);
    *plain = _mm256_cmp_pd(size, all(1.0), _CMP_LE_OQ);
    const __m256d x = either(*plain, size, all(kPlain));
    const __m256d is_small = _mm256_cmp_pd(x, all(kFirst), _CMP_LT_OQ), is_near = _mm256_cmp_pd(x, all(kNear), _CMP_GE_OQ);
    const int small = _mm256_movemask_pd(is_small), near = _mm256_movemask_pd(is_near);
    __m256d found = _mm256_setzero_pd();
    if ((small | near) != (1 << kLanes) - 1) {
      __m256d start;
      const __m256d more = by_table(_mm256_max_pd(_mm256_andnot_pd(is_near, x), all(kFirst)), &start);
      const __m256d rest = _mm256_sub_pd(all_bits(kRightRest), _mm256_xor_pd(more, sign));
      found = _mm256_add_pd(rest, _mm256_sub_pd(right, _mm256_xor_pd(start, sign)));
    }
    if (small != 0) {
      const __m256d some = _mm256_or_pd(_mm256_and_pd(x, _mm256_cmp_pd(x, all(0x1p-55), _CMP_GE_OQ)), sign);
      const __m256d square = _mm256_mul_pd(some, some), less = _mm256_sub_pd(right, some);
      const __m256d lost = _mm256_add_pd(_mm256_sub_pd(_mm256_sub_pd(right, less), some), all_bits(kRightRest));
      found = either(is_small, _mm256_add_pd(less, _mm256_fnmadd_pd(series(square), _mm256_mul_pd(some, square), lost)), found);
    }
    if (near != 0) found = either(is_near, by_root(x, sign), found);
    return found;
  }

 private:
  DALSEGNO_FOURS static __m256d by_root(__m256d x, __m256d sign) {
    const __m256d half = half_lack(x), split = all(0x1p27), right = all_bits(kRight);
    __m256d slope;
    const __m256d root = root_of(half, &slope);
    const __m256d high = _mm256_fnmadd_pd(split, root, _mm256_fmadd_pd(root, split, root)), low = left_of_root(half, root, slope, high);
    const __m256d rest = _mm256_mul_pd(_mm256_mul_pd(series(half), half), _mm256_add_pd(high, low));
    const __m256d ahead = _mm256_add_pd(_mm256_add_pd(low, rest), high);
    const __m256d behind = _mm256_add_pd(_mm256_sub_pd(_mm256_sub_pd(all_bits(kRightRest), low), rest), _mm256_sub_pd(right, high));
    const __m256d found = either(sign, behind, _mm256_andnot_pd(_mm256_cmp_pd(x, all(1.0), _CMP_EQ_OQ), ahead));
    return _mm256_add_pd(found, found);
  }
};

}  // namespace

InnerLoop arcsin_by_fours(const InnerLoop& numpys) { return found<Arcsin>(numpys); }
InnerLoop arccos_by_fours(const InnerLoop& numpys) { return found<Arccos>(numpys); }

}  // namespace dalsegno::numpy

#endif
