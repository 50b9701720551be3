// Floored and truncated remainders, and floored quotients: npy_divmod() and npy_fmod() of numpy/_core/src/npymath/npy_math_internal.h.src,
// which ask the C library, or the processor's x87 unit, for what is left behind a truncated quotient, bit by bit of it. Where the quotient
// is below 2**52, one multiplication fused with a subtraction gives what is left of it, exactly: the truncated quotient as it is rounded is
// the true one, or one more, and then what is left is less than nothing by less than the divisor.
#include "numpy/fours.h"

#if defined(__x86_64__) && !defined(__clang_analyzer__)
#include "numpy/fours_loop.h"

namespace dalsegno::numpy {
namespace {

using namespace fours;

// Most of their quotients are rounded up to whole numbers.
constexpr double kDividends[] = {1, 0.3, 0.6, 0.7, 1, 2, 5, 6, -1, -0.6, 0x1p51, -9, 1e15, 7.5, -7.5, 6.283185307179586};
constexpr double kDivisors[] = {0.1, 0.1, 0.2, 0.1, 0.2, 0.1, 0.1, 0.1, 0.1, -0.2, 3, 0.1, 0.1, -2.5, 2.5, 3.141592653589793};

DALSEGNO_FOURS inline __m256d sign_of(__m256d x) { return _mm256_and_pd(x, all(-0.0)); }
DALSEGNO_FOURS inline __m256d is_negative(__m256d x) { return _mm256_cmp_pd(x, _mm256_setzero_pd(), _CMP_LT_OQ); }

struct Divided {
  __m256d a, b, left;  // left: fmod(a, b), but for the sign of a zero
  __m256d plain;

  // Neither these nor their quotient are so large or small that a step could raise a flag.
  DALSEGNO_FOURS explicit Divided(const __m256d* inputs) {
    const __m256d size = size_of(inputs[0]), by = size_of(inputs[1]), none = _mm256_cmp_pd(size, _mm256_setzero_pd(), _CMP_EQ_OQ);
    plain = _mm256_and_pd(_mm256_or_pd(none, within(size)), within(by));
    a = either(plain, inputs[0], all(1.0)), b = either(plain, inputs[1], all(1.0));
    const __m256d quotient = _mm256_div_pd(a, b);
    plain = _mm256_and_pd(plain, _mm256_cmp_pd(size_of(quotient), all(0x1p52), _CMP_LT_OQ));
    const __m256d rest = _mm256_fnmadd_pd(_mm256_round_pd(quotient, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC), b, a);
    const __m256d too_far = _mm256_xor_pd(is_negative(rest), _mm256_and_pd(is_negative(a), is_other_than_zero(rest)));
    left = _mm256_add_pd(rest, _mm256_and_pd(too_far, _mm256_or_pd(size_of(b), sign_of(a))));
  }

  DALSEGNO_FOURS static __m256d within(__m256d size) {
    return _mm256_and_pd(_mm256_cmp_pd(size, all(0x1p-400), _CMP_GE_OQ), _mm256_cmp_pd(size, all(0x1p400), _CMP_LE_OQ));
  }
  DALSEGNO_FOURS static __m256d is_other_than_zero(__m256d x) { return _mm256_cmp_pd(x, _mm256_setzero_pd(), _CMP_NEQ_UQ); }
  // What is left is on the other side of zero than the divisor.
  DALSEGNO_FOURS __m256d is_apart() const {
    return _mm256_and_pd(is_other_than_zero(left), _mm256_xor_pd(is_negative(b), is_negative(left)));
  }
};

struct OfTwo {
  static constexpr int kInputs = 2;
  static std::span<const double> hard(int input) { return input == 0 ? std::span(kDividends) : std::span(kDivisors); }
  static constexpr double kPlain = 1.0;
};

struct Remainder : OfTwo {
  DALSEGNO_FOURS static __m256d value(const __m256d* inputs, __m256d* plain) {
    const Divided of(inputs);
    *plain = of.plain;
    const __m256d moved = _mm256_add_pd(of.left, _mm256_and_pd(of.is_apart(), of.b));
    return either(Divided::is_other_than_zero(of.left), moved, sign_of(of.b));
  }
};

struct Fmod : OfTwo {
  DALSEGNO_FOURS static __m256d value(const __m256d* inputs, __m256d* plain) {
    const Divided of(inputs);
    *plain = of.plain;
    return _mm256_or_pd(of.left, sign_of(of.a));
  }
};

struct FloorDivide : OfTwo {
  DALSEGNO_FOURS static __m256d value(const __m256d* inputs, __m256d* plain) {
    const Divided of(inputs);
    *plain = of.plain;
    __m256d quotient = _mm256_div_pd(_mm256_sub_pd(of.a, of.left), of.b);
    quotient = _mm256_sub_pd(quotient, _mm256_and_pd(of.is_apart(), all(1.0)));
    const __m256d floor = _mm256_round_pd(quotient, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    const __m256d above = _mm256_cmp_pd(_mm256_sub_pd(quotient, floor), all(0.5), _CMP_GT_OQ);
    const __m256d zero = sign_of(_mm256_xor_pd(of.a, of.b));
    return either(Divided::is_other_than_zero(quotient), _mm256_add_pd(floor, _mm256_and_pd(above, all(1.0))), zero);
  }
};

}  // namespace

InnerLoop remainder_by_fours(const InnerLoop& numpys) { return found_anywhere<Remainder>(numpys); }
InnerLoop fmod_by_fours(const InnerLoop& numpys) { return found_anywhere<Fmod>(numpys); }
InnerLoop floor_divide_by_fours(const InnerLoop& numpys) { return found_anywhere<FloorDivide>(numpys); }

}  // namespace dalsegno::numpy

#endif
