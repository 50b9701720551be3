#include "replay/machine/magnitudes.h"

#include <algorithm>
#include <array>
#include <cstring>

#if defined(__x86_64__) && !defined(__clang_analyzer__)
#include <immintrin.h>
#endif

#include "halide_gen/runtime/flags.h"
#include "trace/trace.h"

namespace dalsegno::replay {
namespace {

constexpr npy_intp kPiece = 512, kItem = 2 * sizeof(double);

struct Loops {
  numpy::InnerLoop absolute, compare;
};
Loops g_loops[4];

// As eager does it. (A piece of one element NumPy may do in another way than it does it among others.)
void by_numpy(const Loops& loops, const char* z, npy_intp step, const char* bound, npy_intp bound_step, npy_intp n, char* out,
              npy_intp out_step) {
  std::array<double, kPiece + 1> magnitudes;
  for (npy_intp at = 0; at < n;) {
    npy_intp size = std::min(n - at, kPiece);
    if (n - at - size == 1) ++size;
    char* made = reinterpret_cast<char*>(magnitudes.data());
    char *from[] = {const_cast<char*>(z) + at * step, made},
         *compared[] = {made, const_cast<char*>(bound) + at * bound_step, out + at * out_step};
    const npy_intp steps[] = {step, sizeof(double)}, compared_steps[] = {sizeof(double), bound_step, out_step};
    loops.absolute.function(from, &size, steps, loops.absolute.data);
    const int raised = rt::all_raised();  // (comparisons clear flags)
    loops.compare.function(compared, &size, compared_steps, loops.compare.data);
    rt::add_raised(raised);
    at += size;
  }
}

#if defined(__x86_64__) && !defined(__clang_analyzer__)
#define DALSEGNO_NEWER __attribute__((target("avx2")))

// Whatever way abs() is computed, it errs by a few units in the last place: squares within a millionth of a millionth of the bound's are
// not told, nor is what is so large or small that a square, or the quotient of two parts, would leave the range.
constexpr double kNear = 1e-12, kMost = 1e70, kLeast = 1e-70;

// Four numbers: a bit for each whose magnitude is less than the bound, and whether all are told.
struct Four {
  __m256d least, most, less, more;
  DALSEGNO_NEWER static __m256d fits(__m256d x, __m256d least, __m256d most) {
    const __m256d magnitude = _mm256_andnot_pd(_mm256_set1_pd(-0.0), x);
    const __m256d inside = _mm256_and_pd(_mm256_cmp_pd(magnitude, least, _CMP_GE_OQ), _mm256_cmp_pd(magnitude, most, _CMP_LE_OQ));
    return _mm256_or_pd(inside, _mm256_cmp_pd(x, _mm256_setzero_pd(), _CMP_EQ_OQ));
  }
  DALSEGNO_NEWER unsigned look(const double* z, bool* told) const {
    const __m256d a = _mm256_loadu_pd(z), b = _mm256_loadu_pd(z + 4);
    const __m256d fit = _mm256_and_pd(fits(a, least, most), fits(b, least, most));
    const __m256d squares = _mm256_hadd_pd(_mm256_mul_pd(a, a), _mm256_mul_pd(b, b));  // of numbers 0, 2, 1, 3
    const __m256d is_less = _mm256_cmp_pd(squares, less, _CMP_LE_OQ), is_more = _mm256_cmp_pd(squares, more, _CMP_GE_OQ);
    *told &= _mm256_movemask_pd(_mm256_and_pd(fit, _mm256_or_pd(is_less, is_more))) == 15;
    return static_cast<unsigned>(_mm256_movemask_pd(is_less));
  }
};

// By the bits of four numbers, a byte each.
constexpr std::array<uint32_t, 16> kBytes = [] {
  constexpr int kOrder[] = {0, 2, 1, 3};
  std::array<uint32_t, 16> bytes{};
  for (unsigned bits = 0; bits < 16; ++bits)
    for (unsigned k = 0; k < 4; ++k)
      if (bits >> k & 1) bytes[bits] |= uint32_t{1} << (8 * kOrder[k]);
  return bytes;
}();

// False: they are not all told.
DALSEGNO_NEWER bool look_at(const double* z, npy_intp n, double bound, bool wants_less, char* out) {
  const double square = bound * bound;
  const Four four{_mm256_set1_pd(kLeast), _mm256_set1_pd(kMost), _mm256_set1_pd(square * (1 - kNear)),
                  _mm256_set1_pd(square * (1 + kNear))};
  const unsigned turned = wants_less ? 0 : 15;
  bool told = true;
  npy_intp i = 0;
  for (; i + 4 <= n; i += 4) {
    const uint32_t bytes = kBytes[four.look(z + 2 * i, &told) ^ turned];
    std::memcpy(out + i, &bytes, sizeof bytes);
  }
  if (i < n) {
    std::array<double, 8> last{};
    std::copy_n(z + 2 * i, 2 * (n - i), last.data());
    const uint32_t bytes = kBytes[four.look(last.data(), &told) ^ turned];
    std::memcpy(out + i, &bytes, static_cast<size_t>(n - i));
  }
  return told;
}
bool has_way() { return __builtin_cpu_supports("avx2"); }
#else
bool look_at(const double*, npy_intp, double, bool, char*) { return false; }
bool has_way() { return false; }
constexpr double kMost = 1, kLeast = 1;
#endif

template <int k>
void compare_magnitudes(char** operands, const npy_intp* n, const npy_intp* steps, void*) {
  const Loops& loops = g_loops[k];
  double bound;
  std::memcpy(&bound, operands[1], sizeof bound);
  const bool known = steps[0] == kItem && steps[1] == 0 && steps[2] == 1 && bound >= kLeast && bound <= kMost;
  for (npy_intp at = 0; at < *n;) {
    npy_intp size = known ? std::min(*n - at, kPiece) : *n;
    if (*n - at - size == 1) ++size;
    char *z = operands[0] + at * steps[0], *out = operands[2] + at * steps[2];
    if (!known || !look_at(reinterpret_cast<const double*>(z), size, bound, k < 2, out))
      by_numpy(loops, z, steps[0], operands[1], steps[1], size, out, steps[2]);
    at += size;
  }
}

}  // namespace

numpy::InnerLoop magnitude_loop(ArrayFn compare) {
  constexpr ArrayFn kKnown[] = {ArrayFn::less, ArrayFn::less_equal, ArrayFn::greater, ArrayFn::greater_equal};
  constexpr rt::LoopFunction kLoops[] = {compare_magnitudes<0>, compare_magnitudes<1>, compare_magnitudes<2>, compare_magnitudes<3>};
  const auto* found = std::find(std::begin(kKnown), std::end(kKnown), compare);
  if (found == std::end(kKnown) || !has_way()) return {};
  const auto k = static_cast<size_t>(found - kKnown);
  Loops& loops = g_loops[k];
  if (!loops.compare.function)
    loops = {numpy::inner_loop(ArrayFn::absolute, DType::kComplex128, DType::kFloat64),
             numpy::inner_loop(compare, DType::kFloat64, DType::kBool)};
  return loops.absolute.function && loops.compare.function ? numpy::InnerLoop{kLoops[k], nullptr} : numpy::InnerLoop{};
}

}  // namespace dalsegno::replay
