// exp, log and powers: Arm Optimized Routines, math/exp.c, math/log.c, math/pow.c.
#include "numpy/fours.h"

#if defined(__x86_64__) && !defined(__clang_analyzer__)  // clang-tidy reads with GCC's headers, whose intrinsics are GCC's own
#include "numpy/exp_log_tables.h"
#include "numpy/fours_cases.h"
#include "numpy/fours_loop.h"

namespace dalsegno::numpy {
namespace {

using namespace fours;

constexpr int kIndexBits = 7;  // of the tables

// The pairs of a table that the low bits say.
DALSEGNO_FOURS inline void look_up(const uint64_t* table, __m256i indices, __m256d* first, __m256d* second) {
  alignas(32) int64_t at[kLanes];
  _mm256_store_si256(reinterpret_cast<__m256i*>(at), _mm256_and_si256(indices, _mm256_set1_epi64x((1 << kIndexBits) - 1)));
  const auto pair = [&](int k) { return _mm_loadu_pd(reinterpret_cast<const double*>(table + 2 * at[k])); };
  const __m256d even = _mm256_insertf128_pd(_mm256_castpd128_pd256(pair(0)), pair(2), 1);
  const __m256d odd = _mm256_insertf128_pd(_mm256_castpd128_pd256(pair(1)), pair(3), 1);
  *first = _mm256_unpacklo_pd(even, odd);
  *second = _mm256_unpackhi_pd(even, odd);
}

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

// The exponent of x, and x as if it were 0: an interval begins at `first`.
DALSEGNO_FOURS inline __m256d part_of(__m256d x, uint64_t first, __m256d* exponent, __m256i* interval) {
  const __m256i above = _mm256_sub_epi64(bits_of(x), _mm256_set1_epi64x(static_cast<int64_t>(first)));
  const __m256i exponents = _mm256_permutevar8x32_epi32(_mm256_srai_epi32(above, 20), _mm256_setr_epi32(1, 3, 5, 7, 1, 3, 5, 7));
  *exponent = _mm256_cvtepi32_pd(_mm256_castsi256_si128(exponents));
  *interval = _mm256_srli_epi64(above, 52 - kIndexBits);
  const __m256i bits = _mm256_and_si256(above, _mm256_set1_epi64x(static_cast<int64_t>(0xfff0000000000000)));
  return _mm256_castsi256_pd(_mm256_sub_epi64(bits_of(x), bits));
}

DALSEGNO_FOURS inline __m256d is_normal(__m256d x) {
  return _mm256_and_pd(_mm256_cmp_pd(x, all(std::numeric_limits<double>::min()), _CMP_GE_OQ),
                       _mm256_cmp_pd(x, all(std::numeric_limits<double>::max()), _CMP_LE_OQ));
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

struct Log {
  static constexpr int kInputs = 1;
  static std::span<const double> hard(int) { return kHardLog; }
  static constexpr double kPlain = 2.0;

  DALSEGNO_FOURS static __m256d value(const __m256d* inputs, __m256d* plain) {
    const __m256d is_usual = is_normal(inputs[0]), x = either(is_usual, inputs[0], all(kPlain));
    *plain = _mm256_or_pd(is_usual, _mm256_cmp_pd(inputs[0], all(std::numeric_limits<double>::max()), _CMP_NLE_UQ));
    const __m256d near = _mm256_and_pd(_mm256_cmp_pd(x, all(1 - 0x1p-4), _CMP_GE_OQ), _mm256_cmp_pd(x, all(1 + 0x1.09p-4), _CMP_LT_OQ));
    __m256d found = far_from_one(x);
    if (_mm256_movemask_pd(near) != 0) found = either(near, near_one(either(near, x, all(1.0))), found);
    const __m256d as_it_is = _mm256_andnot_pd(is_usual, _mm256_and_pd(*plain, inputs[0]));  // infinity, or no number
    return either(is_usual, found, _mm256_add_pd(as_it_is, as_it_is));
  }

 private:
  DALSEGNO_FOURS static __m256d far_from_one(__m256d x) {
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

  DALSEGNO_FOURS static __m256d near_one(__m256d x) {
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
