// log, and powers: Arm Optimized Routines, math/log.c, math/pow.c.
#include "numpy/fours.h"

#if defined(__x86_64__) && !defined(__clang_analyzer__)  // clang-tidy reads with GCC's headers, whose intrinsics are GCC's own
#include "numpy/exponential.h"

namespace dalsegno::numpy {
namespace {

using namespace fours;

struct Log : Logarithm<Log> {
  static std::span<const double> hard(int) { return kHardLog; }
  DALSEGNO_FOURS static __m256d of_normal(__m256d x) { return natural_log(x); }
};

// x to the y.
struct Power {
  static constexpr int kInputs = 2;
  static std::span<const double> hard(int input) { return input == 0 ? std::span(kHardBases) : std::span(kHardExponents); }
  static constexpr double kPlain = 1.5;
  // (loops_umath_fp.dispatch.c.src)
  static bool numpy_has_another(double exponent) {
    return exponent == 2 || exponent == 1 || exponent == 0.5 || exponent == 0 || exponent == -1;
  }

  DALSEGNO_FOURS static __m256d value(const __m256d* inputs, __m256d* plain) {
    const __m256d y_size = size_of(inputs[1]);
    const __m256d is_usual = _mm256_and_pd(is_normal(size_of(inputs[0])), _mm256_and_pd(_mm256_cmp_pd(y_size, all(0x1p-65), _CMP_GE_OQ),
                                                                                        _mm256_cmp_pd(y_size, all(0x1p63), _CMP_LT_OQ)));
    const __m256d x = either(is_usual, inputs[0], all(kPlain)), y = either(is_usual, inputs[1], all(kPlain));
    const __m256d half = _mm256_mul_pd(y, all(0.5)), negative = _mm256_cmp_pd(x, _mm256_setzero_pd(), _CMP_LT_OQ);
    const __m256d is_odd = _mm256_and_pd(is_whole(y), _mm256_cmp_pd(half, whole(half), _CMP_NEQ_UQ));
    const __m256d signs = _mm256_and_pd(_mm256_and_pd(negative, is_odd), all(-0.0));
    __m256d tail;
    const __m256d logarithm = logarithm_of(size_of(x), &tail);
    const __m256d product = _mm256_mul_pd(y, logarithm);
    const __m256d rest = _mm256_fmadd_pd(y, tail, _mm256_fmsub_pd(logarithm, y, product));
    const __m256d size = size_of(product);
    const __m256d is_tiny = _mm256_cmp_pd(size, all(0x1p-54), _CMP_LT_OQ), fits = _mm256_cmp_pd(size, all(512.0), _CMP_LT_OQ);
    const __m256d usual = _mm256_andnot_pd(is_tiny, fits);
    *plain = _mm256_and_pd(_mm256_and_pd(is_usual, fits), _mm256_or_pd(is_whole(y), _mm256_cmp_pd(x, _mm256_setzero_pd(), _CMP_GE_OQ)));
    const __m256d found = exponential(either(usual, product, all(kPlain)), either(usual, rest, _mm256_setzero_pd()), signs);
    return either(is_tiny, _mm256_xor_pd(_mm256_add_pd(all(1.0), product), signs), found);
  }

 private:
  DALSEGNO_FOURS static __m256d whole(__m256d x) { return _mm256_round_pd(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
  DALSEGNO_FOURS static __m256d is_whole(__m256d x) { return _mm256_cmp_pd(x, whole(x), _CMP_EQ_OQ); }

  // And what is left of it.
  DALSEGNO_FOURS static __m256d logarithm_of(__m256d x, __m256d* tail) {
    __m256d kd;
    __m256i interval;
    const __m256d z = part_of(x, 0x3fe6955500000000, &kd, &interval);
    __m256d row[4];
    look_up_rows(kPowerTable, interval, row);
    const __m256d inverse = row[0], log_c = row[2], log_c_tail = row[3];
    const __m256d t1 = _mm256_fmadd_pd(kd, all_bits(0x3fe62e42fefa3800), log_c);
    const __m256d low1 = _mm256_fmadd_pd(kd, all_bits(0x3d2ef35793c76730), log_c_tail);
    const __m256d r = _mm256_fmadd_pd(z, inverse, all(-1.0));
    const __m256d t2 = _mm256_add_pd(r, t1), low2 = _mm256_add_pd(_mm256_sub_pd(t1, t2), r);
    const __m256d ar = _mm256_mul_pd(all(-0.5), r), ar2 = _mm256_mul_pd(r, ar), ar3 = _mm256_mul_pd(r, ar2);
    const __m256d high = _mm256_add_pd(t2, ar2), low3 = _mm256_fmsub_pd(ar, r, ar2), low4 = _mm256_add_pd(_mm256_sub_pd(t2, high), ar2);
    const __m256d p1 = _mm256_fmadd_pd(all_bits(kA[2]), r, all_bits(kA[1])), p3 = _mm256_fmadd_pd(all_bits(kA[4]), r, all_bits(kA[3]));
    const __m256d p5 = _mm256_fmadd_pd(all_bits(kA[6]), r, all_bits(kA[5]));
    const __m256d p = _mm256_fmadd_pd(ar2, _mm256_fmadd_pd(p5, ar2, p3), p1);
    const __m256d lows = _mm256_add_pd(_mm256_add_pd(_mm256_add_pd(low1, low2), low3), low4);
    const __m256d low = _mm256_fmadd_pd(ar3, p, lows), found = _mm256_add_pd(high, low);
    *tail = _mm256_add_pd(_mm256_sub_pd(high, found), low);
    return found;
  }
  static constexpr uint64_t kA[] = {0xbfe0000000000000, 0xbfe5555555555560, 0x3fe0000000000006, 0x3fe999999959554e,
                                    0xbfe555555529a47a, 0xbff2495b9b4845e9, 0x3ff0002b8b263fc3};
};

}  // namespace

InnerLoop exp_by_fours(const InnerLoop& numpys) { return found<Exp>(numpys); }
InnerLoop log_by_fours(const InnerLoop& numpys) { return found<Log>(numpys); }
InnerLoop power_by_fours(const InnerLoop& numpys) { return found<Power>(numpys); }

}  // namespace dalsegno::numpy

#endif
