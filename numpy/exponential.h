// exp: Arm Optimized Routines, math/exp.c.
#pragma once
#include "numpy/fours_cases.h"
#include "numpy/natural_log.h"

namespace dalsegno::numpy::fours {

// exp(x + rest), `rest` being small beside x, for x in [2**-54, 512) or minus that; `signs`: of the result.
DALSEGNO_FOURS inline __m256d exponential(__m256d x, __m256d rest, __m256d signs) {
  const __m256d shift = all(0x1.8p52);
  const __m256d shifted = _mm256_fmadd_pd(x, all_bits(0x40671547652b82fe), shift);  // in steps of log(2)/128
  const __m256i steps = bits_of(shifted);
  const __m256d kd = _mm256_sub_pd(shifted, shift);
  __m256d r = _mm256_fmadd_pd(kd, all_bits(0xbf762e42fefa0000), x);  // what is left
  r = _mm256_add_pd(rest, _mm256_fmadd_pd(kd, all_bits(0xbd0cf79abc9e3b3a), r));
  __m256d tail, scale;
  look_up(kExpTable, steps, &tail, &scale);
  scale = _mm256_castsi256_pd(_mm256_add_epi64(bits_of(scale), _mm256_slli_epi64(steps, 52 - kIndexBits)));
  scale = _mm256_xor_pd(scale, signs);
  const __m256d r2 = _mm256_mul_pd(r, r);
  const __m256d low = _mm256_fmadd_pd(r, all_bits(0x3fc555555555543c), all_bits(0x3fdffffffffffdbd));
  const __m256d high = _mm256_fmadd_pd(r, all_bits(0x3f81111167a4d017), all_bits(0x3fa55555cf172b91));
  const __m256d some = _mm256_fmadd_pd(low, r2, _mm256_add_pd(tail, r));
  const __m256d all_but_one = _mm256_fmadd_pd(_mm256_mul_pd(r2, r2), high, some);
  return _mm256_fmadd_pd(scale, all_but_one, scale);
}

struct Exp {
  static constexpr int kInputs = 1;
  static std::span<const double> hard(int) { return kHardExp; }
  static constexpr double kPlain = 0.5;

  DALSEGNO_FOURS static __m256d value(const __m256d* inputs, __m256d* plain) {
    const __m256d x = inputs[0], size = size_of(x);
    const __m256d none = _mm256_cmp_pd(x, all(-std::numeric_limits<double>::infinity()), _CMP_EQ_OQ);
    const __m256d is_usual = _mm256_and_pd(_mm256_cmp_pd(size, all(0x1p-54), _CMP_GE_OQ), _mm256_cmp_pd(size, all(512.0), _CMP_LT_OQ));
    // Too large or too small: not for the infinite, and what is no number.
    *plain = _mm256_or_pd(_mm256_cmp_pd(size, all(512.0), _CMP_NGE_UQ),
                          _mm256_cmp_pd(size, all(std::numeric_limits<double>::infinity()), _CMP_EQ_OQ));
    const __m256d usual = exponential(either(is_usual, x, all(kPlain)), _mm256_setzero_pd(), _mm256_setzero_pd());
    return _mm256_andnot_pd(none, either(is_usual, usual, _mm256_add_pd(all(1.0), x)));
  }
};

}  // namespace dalsegno::numpy::fours
