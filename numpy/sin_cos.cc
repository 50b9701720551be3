// Sines and cosines, each by itself.
#include "numpy/fours.h"

#if defined(__x86_64__) && !defined(__clang_analyzer__)  // clang-tidy reads with GCC's headers, whose intrinsics are GCC's own
#include "numpy/angles.h"
#include "numpy/fours_cases.h"

namespace dalsegno::numpy {
namespace {

using namespace fours;

// cosine: shifted by a right angle.
template <bool cosine>
struct Angle {
  static constexpr int kInputs = 1;
  static std::span<const double> hard(int) { return cosine ? std::span(kHardCos) : std::span(kHardSin); }
  static constexpr double kPlain = 0.5;

  DALSEGNO_FOURS static __m256d value(const __m256d* inputs, __m256d* plain) {
    const __m256d sign = all(-0.0), size = size_of(inputs[0]);
    const __m256d is_none = _mm256_cmp_pd(size, size, _CMP_UNORD_Q);
    const __m256d is_tiny = _mm256_cmp_pd(size, all(cosine ? 0x1p-27 : 0x1p-26), _CMP_LT_OQ);
    const __m256d is_told = cosine ? is_tiny
                                   : _mm256_and_pd(is_tiny, _mm256_or_pd(_mm256_cmp_pd(size, all(0x1p-1022), _CMP_GE_OQ),
                                                                         _mm256_cmp_pd(size, _mm256_setzero_pd(), _CMP_EQ_OQ)));
    const __m256d is_usual = _mm256_andnot_pd(is_tiny, _mm256_cmp_pd(size, all_bits(0x419921fb00000000), _CMP_LT_OQ));
    *plain = _mm256_or_pd(_mm256_or_pd(is_none, is_told), is_usual);
    const __m256d x = either(is_usual, inputs[0], all(kPlain)), x_size = size_of(x);
    const auto [is_first, is_second, is_far] = Stretches(x_size);
    __m256d a = x, da = _mm256_setzero_pd(), by_cosine = cosine ? is_first : is_second, signs = _mm256_setzero_pd();
    if (_mm256_movemask_pd(is_second) != 0) {  // beside a right angle
      __m256d db = all_bits(kRightRest);
      const __m256d b = cosine ? to_right_angle(x_size, &db) : _mm256_sub_pd(all_bits(kRight), x_size);
      a = either(is_second, b, a), da = either(is_second, db, da);
      if (!cosine) signs = _mm256_and_pd(_mm256_and_pd(is_second, x), sign);
    }
    if (_mm256_movemask_pd(is_far) != 0) {
      __m256d b, db;
      __m256i n = without_right_angles(x, &b, &db);
      if (cosine) n = _mm256_add_epi64(n, _mm256_set1_epi64x(1));
      a = either(is_far, b, a), da = either(is_far, db, da), by_cosine = either(is_far, has_bit(n, 0), by_cosine);
      signs = either(is_far, _mm256_and_pd(has_bit(n, 1), sign), signs);
    }
    const __m256d found = _mm256_xor_pd(by_parts(a, da, by_cosine), signs);
    const __m256d as_it_is = _mm256_and_pd(_mm256_or_pd(is_none, is_told), inputs[0]);
    const __m256d apart = cosine ? either(is_none, as_it_is, all(1.0)) : as_it_is;
    return either(is_usual, found, either(is_none, _mm256_add_pd(as_it_is, as_it_is), apart));
  }
};

}  // namespace

InnerLoop sin_by_fours(const InnerLoop& numpys) { return found<Angle<false>>(numpys); }
InnerLoop cos_by_fours(const InnerLoop& numpys) { return found<Angle<true>>(numpys); }

}  // namespace dalsegno::numpy

#endif
