// Hyperbolic tangents. NumPy has vector code for them, Intel's (numpy/_core/src/umath/loops_hyperbolic.dispatch.c.src): a polynomial in
// each of 16 intervals, of which it permutes each coefficient into place by itself. Here the four elements' rows of coefficients are read
// and turned to columns, which takes fewer steps. It clears the flags after all: none are raised here.
#include "numpy/fours.h"

#if defined(__x86_64__) && !defined(__clang_analyzer__)  // clang-tidy reads with GCC's headers, whose intrinsics are GCC's own
#include "numpy/fours_cases.h"
#include "numpy/fours_loop.h"
#include "numpy/tanh_table.h"

namespace dalsegno::numpy {
namespace {

using namespace fours;

constexpr int kRow = 20;  // of the table

DALSEGNO_FOURS inline __m256i all_of(uint64_t x) { return _mm256_set1_epi64x(static_cast<int64_t>(x)); }

struct Tanh {
  static constexpr int kInputs = 1;
  static std::span<const double> hard(int) { return kHardTanh; }
  static constexpr double kPlain = 0.5;

  DALSEGNO_FOURS static __m256d value(const __m256d* inputs, __m256d* plain) {
    *plain = all_bits(~uint64_t{0});
    // (By its bits: to compare what is no number can raise a flag.)
    const __m256i size = bits_of(size_of(inputs[0])), infinity = all_of(0x7ff0000000000000);
    const __m256i is_finite = _mm256_cmpgt_epi64(infinity, size);
    const __m256d sign = _mm256_and_pd(inputs[0], all(-0.0)), found = of_size(_mm256_and_si256(size, is_finite));
    if (_mm256_movemask_pd(_mm256_castsi256_pd(is_finite)) == 0xf) [[likely]]
      return _mm256_or_pd(found, sign);
    const __m256d is_none = _mm256_castsi256_pd(_mm256_cmpgt_epi64(size, infinity));
    const __m256d number = _mm256_or_pd(either(_mm256_castsi256_pd(is_finite), found, all(1.0)), sign);
    return either(is_none, all_bits(0x7ff8000000000000), number);
  }

 private:
  DALSEGNO_FOURS static __m256d of_size(__m256i size) {
    // Two intervals for each power of 2 from 1/8 on, the first from 0 on, the last to the end.
    const __m256i above = _mm256_max_epi32(_mm256_sub_epi64(size, all_of(0x3fc0000000000000)), _mm256_setzero_si256());
    const __m256i interval = _mm256_srli_epi64(_mm256_min_epi32(above, _mm256_set1_epi32(0x780000)), 51);
    alignas(32) uint64_t at[kLanes];
    _mm256_store_si256(reinterpret_cast<__m256i*>(at), _mm256_mul_epu32(interval, all_of(kRow)));
    const auto row = [&](int k) { return reinterpret_cast<const double*>(kTanhTable + at[k]); };
    const double* const rows[kLanes] = {row(0), row(1), row(2), row(3)};
    __m256d columns[4];
    columns_of(rows, 0, columns);
    const __m256d y = _mm256_sub_pd(_mm256_castsi256_pd(size), columns[0]);
    __m256d r = _mm256_fmadd_pd(_mm256_fmadd_pd(columns[1], y, columns[2]), y, columns[3]);
    r = four_terms(rows, 4, y, r), r = four_terms(rows, 8, y, r), r = four_terms(rows, 12, y, r);
    columns_of(rows, 16, columns);
    return _mm256_fmadd_pd(_mm256_fmadd_pd(r, y, columns[0]), y, columns[2]);
  }

  DALSEGNO_FOURS static __m256d four_terms(const double* const* rows, int first, __m256d y, __m256d r) {
    __m256d columns[4];
    columns_of(rows, first, columns);
    r = _mm256_fmadd_pd(_mm256_fmadd_pd(r, y, columns[0]), y, columns[1]);
    return _mm256_fmadd_pd(_mm256_fmadd_pd(r, y, columns[2]), y, columns[3]);
  }
};

}  // namespace

InnerLoop tanh_by_fours(const InnerLoop& numpys) { return found<Tanh>(numpys); }

}  // namespace dalsegno::numpy

#endif
