// Hypotenuses: glibc's sysdeps/ieee754/dbl-64/e_hypot.c (2.35 and later; Borges, "An improved algorithm for hypot(a, b)", 2019), as it is
// compiled for any x86-64: nothing is fused.
#include "numpy/fours.h"

#if defined(__x86_64__) && !defined(__clang_analyzer__)
#include "numpy/fours_cases.h"
#include "numpy/fours_loop.h"

namespace dalsegno::numpy {
namespace {

using namespace fours;

struct Hypot {
  static constexpr int kInputs = 2;
  static std::span<const double> hard(int input) { return input == 0 ? std::span(kHardLegs) : std::span(kHardOtherLegs); }
  static constexpr double kPlain = 1.0;

  DALSEGNO_FOURS static __m256d value(const __m256d* inputs, __m256d* plain) {
    __m256d a = size_of(inputs[0]), b = size_of(inputs[1]);
    const __m256d swapped = _mm256_cmp_pd(a, b, _CMP_LT_OQ);
    const __m256d longer = either(swapped, b, a), shorter = either(swapped, a, b);
    const __m256d none = _mm256_cmp_pd(shorter, _mm256_setzero_pd(), _CMP_EQ_OQ);
    *plain = _mm256_and_pd(_mm256_cmp_pd(longer, all(0x1p400), _CMP_LE_OQ),
                           _mm256_or_pd(none, _mm256_cmp_pd(shorter, all(0x1p-400), _CMP_GE_OQ)));
    a = either(*plain, longer, all(1.0)), b = either(*plain, shorter, all(1.0));
    const __m256d is_beside = _mm256_cmp_pd(b, _mm256_mul_pd(a, all(0x1p-54)), _CMP_LE_OQ);
    return either(is_beside, _mm256_add_pd(a, b), corrected(either(is_beside, all(1.0), a), either(is_beside, all(1.0), b)));
  }

 private:
  DALSEGNO_FOURS static __m256d twice(__m256d x) { return _mm256_add_pd(x, x); }

  // kernel(): a >= b.
  DALSEGNO_FOURS static __m256d corrected(__m256d a, __m256d b) {
    const __m256d h = _mm256_sqrt_pd(_mm256_add_pd(_mm256_mul_pd(a, a), _mm256_mul_pd(b, b)));
    const __m256d is_wide = _mm256_cmp_pd(h, twice(b), _CMP_LE_OQ);
    const __m256d over_b = _mm256_sub_pd(h, b), over_a = _mm256_sub_pd(h, a);
    const __m256d wide = _mm256_add_pd(_mm256_mul_pd(a, _mm256_sub_pd(twice(over_b), a)),
                                       _mm256_mul_pd(_mm256_sub_pd(over_b, twice(_mm256_sub_pd(a, b))), over_b));
    const __m256d rest = _mm256_mul_pd(_mm256_sub_pd(_mm256_mul_pd(all(4.0), over_a), b), b);
    const __m256d narrow =
        _mm256_add_pd(_mm256_mul_pd(twice(over_a), _mm256_sub_pd(a, twice(b))), _mm256_add_pd(rest, _mm256_mul_pd(over_a, over_a)));
    return _mm256_sub_pd(h, _mm256_div_pd(either(is_wide, wide, narrow), twice(h)));
  }
};

}  // namespace

InnerLoop hypot_by_fours(const InnerLoop& numpys) { return found_anywhere<Hypot>(numpys); }

}  // namespace dalsegno::numpy

#endif
