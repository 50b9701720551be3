// Other logarithms, and exp(x) - 1. log1p and expm1: glibc's sysdeps/ieee754/dbl-64/s_log1p.c and s_expm1.c (Sun's, of 1993), fused as in
// its functions for processors with FMA. log2: Arm Optimized Routines, math/log2.c. log10: glibc's e_log10.c, in which nothing is fused but
// what its log() does.
//
// Of Sun's functions: Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved. Developed at SunPro, a Sun Microsystems, Inc.
// business. Permission to use, copy, modify, and distribute this software is freely granted, provided that this notice is preserved.
#include "numpy/fours.h"

#if defined(__x86_64__) && !defined(__clang_analyzer__)  // clang-tidy reads with GCC's headers, whose intrinsics are GCC's own
#include "numpy/fours_cases.h"
#include "numpy/fours_loop.h"
#include "numpy/log2_table.h"
#include "numpy/natural_log.h"

namespace dalsegno::numpy {
namespace {

using namespace fours;

constexpr uint64_t kLn2High = 0x3fe62e42fee00000, kLn2Low = 0x3dea39ef35793c76;

DALSEGNO_FOURS inline __m256d is_none(__m256d x) { return _mm256_cmp_pd(x, x, _CMP_UNORD_Q); }

DALSEGNO_FOURS inline __m256d is_between(__m256d x, double low, double high) {
  return _mm256_and_pd(_mm256_cmp_pd(x, all(low), _CMP_GT_OQ), _mm256_cmp_pd(x, all(high), _CMP_LT_OQ));
}

// Of a size: that of 0 or a normal number (others glibc raises underflow for) less than `end`.
DALSEGNO_FOURS inline __m256d is_tiny(__m256d size, double end) {
  return _mm256_or_pd(is_within(size, std::numeric_limits<double>::min(), end), _mm256_cmp_pd(size, _mm256_setzero_pd(), _CMP_EQ_OQ));
}

// log(1 + x).
struct Log1p {
  static constexpr int kInputs = 1;
  static std::span<const double> hard(int) { return kHardLog1p; }
  static constexpr double kPlain = 0.25;

  DALSEGNO_FOURS static __m256d value(const __m256d* inputs, __m256d* plain) {
    const __m256d size = size_of(inputs[0]), is_large = _mm256_cmp_pd(size, all(0x1p-29), _CMP_GE_OQ);
    const __m256d is_usual = _mm256_and_pd(is_large, is_between(inputs[0], -1.0, 0x1p53));
    const __m256d x = either(is_usual, inputs[0], all(kPlain));
    const __m256d near = is_between(x, -0x1.2bec4p-2, 0x1.a827ap-2);
    __m256d f = x, kd = _mm256_setzero_pd(), rest = _mm256_setzero_pd(), few = _mm256_setzero_pd();
    if (_mm256_movemask_pd(near) != 0xf) f = without_exponent(x, near, &kd, &rest, &few);
    const __m256d found = near_one(f, kd, rest, few);
    *plain = is_usual;
    if (_mm256_movemask_pd(is_usual) == 0xf) [[likely]]
      return found;
    const __m256d as_it_is = _mm256_or_pd(_mm256_cmp_pd(inputs[0], all(std::numeric_limits<double>::max()), _CMP_NLE_UQ),
                                          is_tiny(size, 0x1p-29));  // infinity, or no number, or near 0
    *plain = _mm256_or_pd(*plain, as_it_is);
    return either(is_usual, found, near_zero(_mm256_and_pd(as_it_is, inputs[0]), is_within(size, 0x1p-54, 0x1p-29)));
  }

 private:
  // 1 + x is (1 + f) * 2**kd, and a little, which adds `rest` to the logarithm. `near`: where it is 1 + x as it is. `few`: where two terms
  // are enough for glibc.
  DALSEGNO_FOURS static __m256d without_exponent(__m256d x, __m256d near, __m256d* kd, __m256d* rest, __m256d* few) {
    const __m256d one = all(1.0), zero = _mm256_setzero_pd(), u = _mm256_add_pd(one, x);
    __m256i interval;
    const __m256d f = _mm256_sub_pd(part_of(u, 0x3fe6a09e00000000, kd, &interval), one);
    *kd = _mm256_andnot_pd(near, *kd);
    const __m256d is_two = _mm256_cmp_pd(u, all(2.0), _CMP_GE_OQ);
    const __m256d lost = either(is_two, _mm256_sub_pd(one, _mm256_sub_pd(u, x)), _mm256_sub_pd(x, _mm256_sub_pd(u, one)));
    *rest = _mm256_andnot_pd(_mm256_cmp_pd(*kd, zero, _CMP_EQ_OQ), _mm256_div_pd(lost, u));
    *few = _mm256_andnot_pd(near, is_within(f, -0x1.8p-20, 0x1p-20));
    return either(near, x, f);
  }

  // kd * log(2) + rest + log(1 + f).
  DALSEGNO_FOURS static __m256d near_one(__m256d f, __m256d kd, __m256d rest, __m256d few) {
    const __m256d half_square = _mm256_mul_pd(_mm256_mul_pd(f, all(0.5)), f);
    const __m256d s = _mm256_div_pd(f, _mm256_add_pd(f, all(2.0)));
    const __m256d z = _mm256_mul_pd(s, s), z2 = _mm256_mul_pd(z, z), z4 = _mm256_mul_pd(z2, z2), z6 = _mm256_mul_pd(z2, z4);
    const __m256d r2 = _mm256_fmadd_pd(z, all_bits(0x3fd2492494229359), all_bits(0x3fd999999997fa04));
    const __m256d r3 = _mm256_fmadd_pd(z, all_bits(0x3fc7466496cb03de), all_bits(0x3fcc71c51d8e78af));
    const __m256d r4 = _mm256_fmadd_pd(z, all_bits(0x3fc2f112df3e5244), all_bits(0x3fc39a09d078c69f));
    __m256d r = _mm256_fmadd_pd(z, all_bits(0x3fe5555555555593), _mm256_mul_pd(z2, r2));
    r = _mm256_fmadd_pd(z6, r4, _mm256_fmadd_pd(z4, r3, r));
    const __m256d terms = _mm256_mul_pd(_mm256_add_pd(r, half_square), s);
    const __m256d low = _mm256_fmadd_pd(kd, all_bits(kLn2Low), rest);
    __m256d less = _mm256_sub_pd(half_square, _mm256_add_pd(low, terms));
    if (_mm256_movemask_pd(few) != 0) {
      const __m256d part = _mm256_mul_pd(_mm256_fnmadd_pd(f, all_bits(0x3fe5555555555555), all(1.0)), half_square);
      less = either(few, _mm256_sub_pd(part, low), less);
    }
    return _mm256_fmsub_pd(kd, all_bits(kLn2High), _mm256_sub_pd(less, f));
  }

  // For |x| < 2**-29, infinity and what is no number; `second`: where there is a second term.
  DALSEGNO_FOURS static __m256d near_zero(__m256d x, __m256d second) {
    const __m256d part = _mm256_and_pd(second, x);
    return _mm256_fnmadd_pd(_mm256_mul_pd(part, part), all(0.5), x);
  }
};

struct Log2 : Logarithm<Log2> {
  static std::span<const double> hard(int) { return kHardLog2; }

  DALSEGNO_FOURS static __m256d of_normal(__m256d x) {
    const __m256d near = is_within(x, 1 - 0x1.5b51p-5, 1 + 0x1.6ab2p-5);
    const int which = _mm256_movemask_pd(near);
    __m256d found = x;
    if (which != 0xf) found = far_from_one(x);
    if (which != 0) found = either(near, near_one(either(near, x, all(1.0))), found);
    return found;
  }

 private:
  static constexpr uint64_t kInverseHigh = 0x3ff7154765200000, kInverseLow = 0x3de705fc2eefa200;  // 1/log(2)

  DALSEGNO_FOURS static __m256d far_from_one(__m256d x) {
    constexpr int kBits = 6;
    __m256d kd, inverse, logarithm;
    __m256i interval;
    const __m256d z = part_of<kBits>(x, 0x3fe6000000000000, &kd, &interval);
    look_up<kBits>(kLog2Table, interval, &inverse, &logarithm);
    const __m256d r = _mm256_fmadd_pd(z, inverse, all(-1.0)), r2 = _mm256_mul_pd(r, r), r4 = _mm256_mul_pd(r2, r2);
    const __m256d t1 = _mm256_mul_pd(r, all_bits(kInverseHigh)), t3 = _mm256_add_pd(kd, logarithm);
    const __m256d t2 = _mm256_fmadd_pd(r, all_bits(kInverseLow), _mm256_fmsub_pd(r, all_bits(kInverseHigh), t1));
    const __m256d high = _mm256_add_pd(t3, t1);
    const __m256d low = _mm256_add_pd(_mm256_add_pd(_mm256_sub_pd(t3, high), t1), t2);
    const __m256d p0 = _mm256_fmadd_pd(r, all_bits(0x3fdec709dc3a04be), all_bits(0xbfe71547652b8339));
    const __m256d p2 = _mm256_fmadd_pd(r, all_bits(0x3fd2776c50034c48), all_bits(0xbfd7154764702ffb));
    const __m256d p4 = _mm256_fmadd_pd(r, all_bits(0x3fca6225e117f92e), all_bits(0xbfcec7b328ea92bc));
    const __m256d p = _mm256_fmadd_pd(p4, r4, _mm256_fmadd_pd(p2, r2, p0));
    return _mm256_add_pd(_mm256_fmadd_pd(r2, p, low), high);
  }

  DALSEGNO_FOURS static __m256d near_one(__m256d x) {
    const __m256d r = _mm256_sub_pd(x, all(1.0)), r2 = _mm256_mul_pd(r, r), r4 = _mm256_mul_pd(r2, r2);
    const __m256d high = _mm256_mul_pd(r, all_bits(kInverseHigh));
    const __m256d rest = _mm256_fmadd_pd(r, all_bits(kInverseLow), _mm256_fmsub_pd(r, all_bits(kInverseHigh), high));
    const __m256d p0 = _mm256_fmadd_pd(r, all_bits(0x3fdec709dc3a03f7), all_bits(0xbfe71547652b82fe));
    const __m256d p2 = _mm256_fmadd_pd(r, all_bits(0x3fd2776c50f05be4), all_bits(0xbfd71547652b7c3f));
    const __m256d p4 = _mm256_fmadd_pd(r, all_bits(0x3fca61761ec4e736), all_bits(0xbfcec709dd768fe5));
    const __m256d p6 = _mm256_fmadd_pd(r, all_bits(0x3fc484d154f01b4a), all_bits(0xbfc7153fbc64a79b));
    const __m256d p8 = _mm256_fmadd_pd(r, all_bits(0x3fc0b32f285aee66), all_bits(0xbfc289e4a72c383c));
    const __m256d y = _mm256_fmadd_pd(p0, r2, high);
    const __m256d low = _mm256_add_pd(_mm256_fmadd_pd(p0, r2, _mm256_sub_pd(high, y)), rest);
    const __m256d p = _mm256_fmadd_pd(_mm256_fmadd_pd(p8, r2, p6), r4, _mm256_fmadd_pd(p4, r2, p2));
    return _mm256_add_pd(y, _mm256_fmadd_pd(p, r4, low));
  }
};

// exp(x) - 1.
struct Expm1 {
  static constexpr int kInputs = 1;
  static std::span<const double> hard(int) { return kHardExpm1; }
  static constexpr double kPlain = 0.25;

  DALSEGNO_FOURS static __m256d value(const __m256d* inputs, __m256d* plain) {
    const __m256d size = size_of(inputs[0]), is_large = _mm256_cmp_pd(size, all(0x1p-54), _CMP_GE_OQ);
    const __m256d is_usual = _mm256_and_pd(is_large, is_between(inputs[0], -0x1.3687ap5, 709.0));
    const __m256d found = exponential(either(is_usual, inputs[0], all(kPlain)));
    *plain = is_usual;
    if (_mm256_movemask_pd(is_usual) == 0xf) [[likely]]
      return found;
    const __m256d none = is_none(inputs[0]), is_least = _mm256_cmp_pd(inputs[0], all(-0x1.3687ap5), _CMP_LE_OQ);
    const __m256d as_it_is = _mm256_or_pd(none, is_tiny(size, 0x1p-54));
    *plain = _mm256_or_pd(is_usual, _mm256_or_pd(is_least, as_it_is));
    const __m256d x = _mm256_and_pd(as_it_is, inputs[0]);
    const __m256d apart = either(is_least, all(-1.0), either(none, _mm256_add_pd(x, x), x));
    return either(is_usual, found, apart);
  }

 private:
  // For |x| >= 2**-54 in (-56 * log(2), 709).
  DALSEGNO_FOURS static __m256d exponential(__m256d x) {
    const __m256d is_first = _mm256_cmp_pd(size_of(x), all_bits(0x3fd62e4300000000), _CMP_LT_OQ);
    const bool are_first = _mm256_movemask_pd(is_first) == 0xf;
    __m256d kd = _mm256_setzero_pd(), rest = _mm256_setzero_pd();
    if (!are_first) kd = without_steps(is_first, &x, &rest);
    const __m256d half_x = _mm256_mul_pd(x, all(0.5)), half_square = _mm256_mul_pd(x, half_x);
    const __m256d square = _mm256_mul_pd(half_square, half_square);
    const __m256d r1 = _mm256_fmadd_pd(half_square, all_bits(0xbfa11111111110f4), all(1.0));
    const __m256d r2 = _mm256_fmadd_pd(half_square, all_bits(0xbf14ce199eaadbb7), all_bits(0x3f5a01a019fe5585));
    const __m256d r3 = _mm256_fmadd_pd(half_square, all_bits(0xbe8afdb76e09c32d), all_bits(0x3ed0cfca86e65239));
    const __m256d r = _mm256_fmadd_pd(_mm256_mul_pd(square, square), r3, _mm256_fmadd_pd(square, r2, r1));
    const __m256d t = _mm256_fnmadd_pd(r, half_x, all(3.0));
    __m256d e = _mm256_div_pd(_mm256_sub_pd(r, t), _mm256_fnmadd_pd(x, t, all(6.0)));
    e = _mm256_mul_pd(e, half_square);
    if (are_first) return _mm256_sub_pd(x, _mm256_fmsub_pd(e, x, half_square));
    e = _mm256_fmsub_pd(_mm256_sub_pd(e, rest), x, either(is_first, half_square, rest));
    e = _mm256_sub_pd(e, _mm256_andnot_pd(is_first, half_square));
    return scaled(x, e, kd);
  }

  // *x is kd * log(2) + *x + *rest, kd being 0 where it `is_first`. (glibc knows without a product where it is 1 or -1: the same.)
  DALSEGNO_FOURS static __m256d without_steps(__m256d is_first, __m256d* x, __m256d* rest) {
    const __m256d half = _mm256_or_pd(all(0.5), _mm256_and_pd(*x, all(-0.0)));
    const __m256d steps = _mm256_add_pd(_mm256_mul_pd(*x, all_bits(0x3ff71547652b82fe)), half);
    const __m256d kd = _mm256_andnot_pd(is_first, _mm256_round_pd(steps, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
    const __m256d high = _mm256_fnmadd_pd(kd, all_bits(kLn2High), *x), low = _mm256_mul_pd(kd, all_bits(kLn2Low));
    *x = _mm256_sub_pd(high, low);
    *rest = _mm256_sub_pd(_mm256_sub_pd(high, *x), low);
    return kd;
  }

  // 2**kd * (1 + x - e) - 1, the 1 being subtracted at the best time.
  DALSEGNO_FOURS static __m256d scaled(__m256d x, __m256d e, __m256d kd) {
    const __m256d one = all(1.0);
    const __m256i shifted = _mm256_slli_epi64(bits_of(_mm256_add_pd(kd, all(0x1.8p52))), 52);
    const __m256d scale = _mm256_castsi256_pd(_mm256_add_epi64(bits_of(one), shifted));
    const __m256d inverse = _mm256_castsi256_pd(_mm256_sub_epi64(bits_of(one), shifted));
    const __m256d is_low = _mm256_cmp_pd(kd, all(-2.0), _CMP_LE_OQ);
    __m256d y = _mm256_sub_pd(_mm256_sub_pd(one, _mm256_andnot_pd(is_low, inverse)), _mm256_sub_pd(e, x));
    const __m256d is_middle = is_within(kd, 20.0, 57.0);
    if (_mm256_movemask_pd(is_middle) != 0) y = either(is_middle, _mm256_add_pd(_mm256_sub_pd(x, _mm256_add_pd(e, inverse)), one), y);
    const __m256d is_second = _mm256_and_pd(_mm256_cmp_pd(kd, one, _CMP_EQ_OQ), _mm256_cmp_pd(x, all(-0.25), _CMP_LT_OQ));
    y = either(is_second, _mm256_sub_pd(_mm256_add_pd(x, all(0.5)), e), y);
    const __m256d late = _mm256_or_pd(is_low, _mm256_cmp_pd(kd, all(57.0), _CMP_GE_OQ));
    return _mm256_sub_pd(_mm256_mul_pd(y, scale), _mm256_and_pd(late, one));
  }
};

struct Log10 : Logarithm<Log10> {
  static std::span<const double> hard(int) { return kHardLog10; }

  DALSEGNO_FOURS static __m256d of_normal(__m256d x) {
    // x is z * 2**kd, z in [1/2, 1) for x < 1, else in [1, 2).
    __m256d kd;
    __m256i interval;
    __m256d z = part_of(x, 0x3fe0000000000000, &kd, &interval);
    const __m256d one = all(1.0), is_one = _mm256_cmp_pd(x, one, _CMP_GE_OQ);
    z = either(is_one, _mm256_add_pd(z, z), z), kd = _mm256_sub_pd(kd, _mm256_and_pd(is_one, one));
    const __m256d natural = _mm256_mul_pd(natural_log(z), all_bits(0x3fdbcb7b1526e50e));
    const __m256d low = _mm256_add_pd(natural, _mm256_mul_pd(kd, all_bits(0x3d59fef311f12b36)));
    return _mm256_add_pd(low, _mm256_mul_pd(kd, all_bits(0x3fd34413509f6000)));
  }
};

}  // namespace

InnerLoop log1p_by_fours(const InnerLoop& numpys) { return found<Log1p>(numpys); }
InnerLoop log2_by_fours(const InnerLoop& numpys) { return found<Log2>(numpys); }
InnerLoop expm1_by_fours(const InnerLoop& numpys) { return found<Expm1>(numpys); }
InnerLoop log10_by_fours(const InnerLoop& numpys) { return found<Log10>(numpys); }

}  // namespace dalsegno::numpy

#endif
