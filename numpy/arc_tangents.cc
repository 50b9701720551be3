// Arc tangents: glibc's sysdeps/ieee754/dbl-64/s_atan.c and e_atan2.c (IBM Accurate Mathematical Library): of a ratio up to 1 by a few
// terms of the series, from 1/16 on around a table's next number; what is steeper is a right angle less that of the ratio turned over.
#include "numpy/fours.h"

#if defined(__x86_64__) && !defined(__clang_analyzer__)  // clang-tidy reads with GCC's headers, whose intrinsics are GCC's own
#include "numpy/arc_tangent_table.h"
#include "numpy/fours_cases.h"
#include "numpy/fours_loop.h"

namespace dalsegno::numpy {
namespace {

using namespace fours;

constexpr double kFirst = 0x1p-4;  // of the table
constexpr double kTiny = 0x1p-60;  // beside 1: a ratio that is its own arc tangent, and that changes no right angle
constexpr uint64_t kTwoRight = 0x400921fb54442d18, kTwoRightRest = 0x3ca1a62633145c07;

constexpr int kColumns = 7;

// The table's columns next to ratios from kFirst to 1.
DALSEGNO_FOURS inline void look_up(__m256d ratio, __m256d* columns) {
  alignas(32) uint32_t at[2 * kLanes];
  _mm256_store_si256(reinterpret_cast<__m256i*>(at), bits_of(_mm256_fmadd_pd(ratio, all(256.0), all(0x1p52))));
  const auto row = [&](int k) { return reinterpret_cast<const double*>(kArcTangentTable + kColumns * (at[2 * k] - 16)); };
  const double* const rows[kLanes] = {row(0), row(1), row(2), row(3)};
  const auto put = [&](int first, const TwoColumns& two) DALSEGNO_FOURS { columns[first] = two.first, columns[first + 1] = two.second; };
  put(0, two_columns(rows, 0)), put(2, two_columns(rows, 2)), put(4, two_columns(rows, 4)), put(5, two_columns(rows, 5));
}

// What the square of a distance from the table's number is taken times.
DALSEGNO_FOURS inline __m256d around(const __m256d* columns, __m256d distance) {
  return _mm256_fmadd_pd(_mm256_fmadd_pd(_mm256_fmadd_pd(columns[6], distance, columns[5]), distance, columns[4]), distance, columns[3]);
}

// What a ratio's cube is taken times.
DALSEGNO_FOURS inline __m256d series(__m256d square) {
  __m256d p = _mm256_fmadd_pd(all_bits(0x3fb375f08b31cbce), square, all_bits(0xbfb7458022b13c25));
  p = _mm256_fmadd_pd(p, square, all_bits(0x3fbc71c6e5129a3b));
  p = _mm256_fmadd_pd(p, square, all_bits(0xbfc24924923f7603));
  p = _mm256_fmadd_pd(p, square, all_bits(0x3fc99999999997fd));
  return _mm256_fmadd_pd(p, square, all_bits(0xbfd5555555555555));
}

// What is left of over / under beside its double, as a multiple of 1 / under.
DALSEGNO_FOURS inline __m256d left_of(__m256d over, __m256d under, __m256d ratio) {
  const __m256d product = _mm256_mul_pd(under, ratio);
  return _mm256_sub_pd(_mm256_sub_pd(over, product), _mm256_fmsub_pd(under, ratio, product));
}

struct Arctan {
  static constexpr int kInputs = 1;
  static std::span<const double> hard(int) { return kHardArctan; }
  static constexpr double kPlain = 0.5;

  DALSEGNO_FOURS static __m256d value(const __m256d* inputs, __m256d* plain) {
    const __m256d size = size_of(inputs[0]), zero = _mm256_setzero_pd(), one = all(1.0), most = all_bits(0x43349ff200000000);
    *plain = _mm256_or_pd(_mm256_cmp_pd(size, all(std::numeric_limits<double>::min()), _CMP_GE_OQ), _mm256_cmp_pd(size, zero, _CMP_EQ_OQ));
    const __m256d is_less = _mm256_cmp_pd(size, most, _CMP_LT_OQ), x = either(is_less, size, most);
    const __m256d is_steep = _mm256_cmp_pd(x, one, _CMP_GE_OQ);
    __m256d ratio = x, left = zero;
    if (_mm256_movemask_pd(is_steep) != 0) {
      const __m256d under = _mm256_max_pd(x, one), over = _mm256_and_pd(is_less, one), inverse = _mm256_div_pd(over, under);
      ratio = either(is_steep, inverse, x), left = _mm256_and_pd(is_steep, left_of(over, under, inverse));
    }
    const __m256d is_small = _mm256_or_pd(_mm256_cmp_pd(x, all(kFirst), _CMP_LT_OQ), _mm256_cmp_pd(x, all(1 / kFirst), _CMP_GE_OQ));
    const int small = _mm256_movemask_pd(is_small);
    __m256d found = zero;
    if (small != (1 << kLanes) - 1) found = by_table(_mm256_max_pd(ratio, all(kFirst)), left, is_steep);
    if (small != 0) found = either(is_small, by_series(ratio, left, is_steep), found);
    return _mm256_or_pd(found, _mm256_and_pd(inputs[0], all(-0.0)));
  }

 private:
  DALSEGNO_FOURS static __m256d by_table(__m256d ratio, __m256d left, __m256d is_steep) {
    __m256d columns[kColumns];
    look_up(ratio, columns);
    const __m256d distance = _mm256_fmadd_pd(left, ratio, _mm256_sub_pd(ratio, columns[0]));
    const __m256d slope = _mm256_fmadd_pd(around(columns, distance), distance, columns[2]);
    const __m256d rest = _mm256_fmadd_pd(slope, _mm256_xor_pd(distance, _mm256_and_pd(is_steep, all(-0.0))),
                                         either(is_steep, all_bits(kRightRest), columns[1]));
    return _mm256_add_pd(_mm256_and_pd(is_steep, _mm256_sub_pd(all_bits(kRight), columns[1])), rest);
  }

  DALSEGNO_FOURS static __m256d by_series(__m256d ratio, __m256d left, __m256d is_steep) {
    const __m256d right = all_bits(kRight);
    const __m256d near = _mm256_and_pd(ratio, _mm256_cmp_pd(ratio, all(kTiny), _CMP_GE_OQ)), square = _mm256_mul_pd(near, near);
    const __m256d flat = _mm256_fmadd_pd(_mm256_mul_pd(near, square), series(square), _mm256_andnot_pd(is_steep, ratio));
    const __m256d steep = _mm256_sub_pd(right, ratio), lost = _mm256_sub_pd(_mm256_sub_pd(right, steep), ratio);
    const __m256d rest = _mm256_sub_pd(_mm256_add_pd(all_bits(kRightRest), lost), _mm256_mul_pd(left, near));
    return either(is_steep, _mm256_add_pd(steep, _mm256_sub_pd(rest, flat)), flat);
  }
};

// Of y and x.
struct Arctan2 {
  static constexpr int kInputs = 2;
  static std::span<const double> hard(int input) { return input == 0 ? std::span(kHardHeights) : std::span(kHardWidths); }
  static constexpr double kPlain = 0.5;

  DALSEGNO_FOURS static __m256d value(const __m256d* inputs, __m256d* plain) {
    const __m256d zero = _mm256_setzero_pd(), sign = all(-0.0), backward = inputs[1];  // conditions are told by their signs
    const __m256d is_usual = _mm256_and_pd(is_told(size_of(inputs[0])), is_told(size_of(inputs[1])));
    const __m256d y = either(is_usual, size_of(inputs[0]), all(kPlain)), x = either(is_usual, size_of(inputs[1]), all(kPlain));
    const __m256d shallow = _mm256_or_pd(_mm256_cmp_pd(y, x, _CMP_LT_OQ), _mm256_cmp_pd(y, zero, _CMP_EQ_OQ));
    const __m256d flat = _mm256_andnot_pd(backward, shallow);
    const __m256d under = _mm256_max_pd(_mm256_max_pd(x, y), all(kLeast)), shorter = _mm256_min_pd(x, y);
    const __m256d is_near = _mm256_cmp_pd(shorter, _mm256_mul_pd(under, all(kTiny)), _CMP_GE_OQ);
    const __m256d over = either(flat, shorter, _mm256_and_pd(is_near, shorter));
    const __m256d ratio = _mm256_div_pd(over, under);
    const __m256d left = _mm256_div_pd(_mm256_and_pd(is_near, left_of(over, under, ratio)), under);
    *plain = _mm256_and_pd(is_usual, _mm256_or_pd(_mm256_cmp_pd(ratio, all(std::numeric_limits<double>::min()), _CMP_GE_OQ),
                                                  _mm256_cmp_pd(ratio, zero, _CMP_EQ_OQ)));
    // That from which, or to which, the angle is counted.
    const __m256d from = either(shallow, either(backward, all_bits(kTwoRight), zero), all_bits(kRight));
    const __m256d from_rest = either(shallow, either(backward, all_bits(kTwoRightRest), zero), all_bits(kRightRest));
    const __m256d signs = _mm256_andnot_pd(_mm256_xor_pd(shallow, backward), sign);
    const __m256d is_small = _mm256_cmp_pd(ratio, all(kFirst), _CMP_LT_OQ);
    const int small = _mm256_movemask_pd(is_small);
    __m256d found = zero;
    if (small != (1 << kLanes) - 1) found = by_table(_mm256_max_pd(ratio, all(kFirst)), left, from, from_rest, signs, flat);
    if (small != 0) found = either(is_small, by_series(ratio, _mm256_and_pd(is_near, ratio), left, from, from_rest, signs, flat), found);
    return _mm256_or_pd(found, _mm256_and_pd(inputs[0], sign));
  }

 private:
  static constexpr double kLeast = 0x1p-900;  // from there on there is nothing too small in a remainder

  DALSEGNO_FOURS static __m256d is_told(__m256d size) {
    const __m256d is_none = _mm256_cmp_pd(size, _mm256_setzero_pd(), _CMP_EQ_OQ);
    return _mm256_and_pd(_mm256_cmp_pd(size, all(std::numeric_limits<double>::max()), _CMP_LE_OQ),
                         _mm256_or_pd(_mm256_cmp_pd(size, all(kLeast), _CMP_GE_OQ), is_none));
  }

  DALSEGNO_FOURS static __m256d by_table(__m256d ratio, __m256d left, __m256d from, __m256d from_rest, __m256d signs, __m256d flat) {
    __m256d columns[kColumns];
    look_up(ratio, columns);
    const __m256d step = _mm256_sub_pd(ratio, columns[0]), distance = _mm256_add_pd(step, left);
    const __m256d lost = _mm256_add_pd(_mm256_sub_pd(step, distance), left), p = around(columns, distance);
    const __m256d curved = _mm256_fmadd_pd(lost, columns[2], _mm256_mul_pd(_mm256_mul_pd(distance, distance), p));
    const __m256d slope = _mm256_fmadd_pd(p, distance, columns[2]);
    const __m256d rest =
        either(flat, _mm256_fmadd_pd(distance, columns[2], curved), _mm256_fmadd_pd(slope, _mm256_xor_pd(distance, signs), from_rest));
    return _mm256_add_pd(_mm256_add_pd(from, _mm256_xor_pd(columns[1], signs)), rest);
  }

  // near: the ratio, or 0.
  DALSEGNO_FOURS static __m256d by_series(__m256d ratio, __m256d near, __m256d left, __m256d from, __m256d from_rest, __m256d signs,
                                          __m256d flat) {
    const __m256d zero = _mm256_setzero_pd(), square = _mm256_mul_pd(near, near), turned = _mm256_xor_pd(ratio, signs);
    const __m256d cube = _mm256_fmadd_pd(_mm256_mul_pd(near, square), series(square), either(flat, left, zero));
    const __m256d start = _mm256_add_pd(from, turned), lost = _mm256_add_pd(_mm256_sub_pd(from, start), turned);
    __m256d rest = _mm256_add_pd(_mm256_add_pd(from_rest, lost), either(flat, zero, _mm256_xor_pd(left, signs)));
    rest = _mm256_add_pd(rest, _mm256_xor_pd(cube, signs));
    return _mm256_add_pd(start, rest);
  }
};

}  // namespace

InnerLoop arctan_by_fours(const InnerLoop& numpys) { return found<Arctan>(numpys); }
InnerLoop arctan2_by_fours(const InnerLoop& numpys) { return found<Arctan2>(numpys); }

}  // namespace dalsegno::numpy

#endif
