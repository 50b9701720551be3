#include "numpy/exp_log.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "halide_gen/runtime/flags.h"
#include "numpy/exp_log_tables.h"

#if defined(__x86_64__) && !defined(__clang_analyzer__)  // clang-tidy reads with GCC's headers, whose intrinsics are GCC's own
#include <immintrin.h>
#define DALSEGNO_FOURS __attribute__((target("avx2,fma")))

namespace dalsegno::numpy {
namespace {

constexpr int kLanes = 4;
constexpr int kIndexBits = 7;  // of the tables

DALSEGNO_FOURS inline __m256d all(double x) { return _mm256_set1_pd(x); }
DALSEGNO_FOURS inline __m256d all_bits(uint64_t x) { return _mm256_castsi256_pd(_mm256_set1_epi64x(static_cast<int64_t>(x))); }
DALSEGNO_FOURS inline __m256i bits_of(__m256d x) { return _mm256_castpd_si256(x); }

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

// is_plain(): of which elements value() gives what the C library does; kPlain: one of them.
struct Exp {
  static constexpr double kPlain = 0.5;

  DALSEGNO_FOURS static __m256d is_plain(__m256d x) {
    const __m256d size = _mm256_andnot_pd(all(-0.0), x);
    return _mm256_and_pd(_mm256_cmp_pd(size, all(0x1p-54), _CMP_GE_OQ), _mm256_cmp_pd(size, all(512.0), _CMP_LT_OQ));
  }

  DALSEGNO_FOURS static __m256d value(__m256d x) {
    const __m256d shift = all(0x1.8p52);
    const __m256d shifted = _mm256_fmadd_pd(x, all_bits(0x40671547652b82fe), shift);  // in steps of log(2)/128
    const __m256i steps = bits_of(shifted);
    const __m256d kd = _mm256_sub_pd(shifted, shift);
    const __m256d r =
        _mm256_fmadd_pd(kd, all_bits(0xbd0cf79abc9e3b3a), _mm256_fmadd_pd(kd, all_bits(0xbf762e42fefa0000), x));  // what is left
    __m256d tail, scale;
    look_up(kExpTable, steps, &tail, &scale);
    scale = _mm256_castsi256_pd(_mm256_add_epi64(bits_of(scale), _mm256_slli_epi64(steps, 52 - kIndexBits)));
    const __m256d r2 = _mm256_mul_pd(r, r);
    const __m256d low = _mm256_fmadd_pd(r, all_bits(0x3fc555555555543c), all_bits(0x3fdffffffffffdbd));
    const __m256d high = _mm256_fmadd_pd(r, all_bits(0x3f81111167a4d017), all_bits(0x3fa55555cf172b91));
    const __m256d some = _mm256_fmadd_pd(low, r2, _mm256_add_pd(tail, r));
    const __m256d all_but_one = _mm256_fmadd_pd(_mm256_mul_pd(r2, r2), high, some);
    return _mm256_fmadd_pd(scale, all_but_one, scale);
  }
};

struct Log {
  static constexpr double kPlain = 2.0;

  DALSEGNO_FOURS static __m256d is_plain(__m256d x) {
    return _mm256_and_pd(_mm256_cmp_pd(x, all(std::numeric_limits<double>::min()), _CMP_GE_OQ),
                         _mm256_cmp_pd(x, all(std::numeric_limits<double>::max()), _CMP_LE_OQ));
  }

  DALSEGNO_FOURS static __m256d value(__m256d x) {
    const __m256d near = _mm256_and_pd(_mm256_cmp_pd(x, all(1 - 0x1p-4), _CMP_GE_OQ), _mm256_cmp_pd(x, all(1 + 0x1.09p-4), _CMP_LT_OQ));
    const int near_ones = _mm256_movemask_pd(near);
    if (near_ones == 0) return far_from_one(x);
    const __m256d found = near_one(_mm256_blendv_pd(all(1.0), x, near));
    return near_ones == (1 << kLanes) - 1 ? found : _mm256_blendv_pd(far_from_one(x), found, near);
  }

 private:
  DALSEGNO_FOURS static __m256d far_from_one(__m256d x) {
    const __m256i above = _mm256_sub_epi64(bits_of(x), _mm256_set1_epi64x(0x3fe6000000000000));
    const __m256i exponents = _mm256_permutevar8x32_epi32(_mm256_srai_epi32(above, 20), _mm256_setr_epi32(1, 3, 5, 7, 1, 3, 5, 7));
    const __m256d kd = _mm256_cvtepi32_pd(_mm256_castsi256_si128(exponents));
    const __m256i exponent = _mm256_and_si256(above, _mm256_set1_epi64x(static_cast<int64_t>(0xfff0000000000000)));
    const __m256d z = _mm256_castsi256_pd(_mm256_sub_epi64(bits_of(x), exponent));
    __m256d inverse, logarithm;
    look_up(kLogTable, _mm256_srli_epi64(above, 52 - kIndexBits), &inverse, &logarithm);
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

template <class F>
InnerLoop g_numpys;

// Of the first `some` of four elements.
template <class F>
DALSEGNO_FOURS inline __m256d value_of(__m256d x, int some) {
  const __m256d plain = F::is_plain(x);
  const __m256d y = F::value(_mm256_blendv_pd(all(F::kPlain), x, plain));
  unsigned others = ~static_cast<unsigned>(_mm256_movemask_pd(plain)) & ((1U << some) - 1);
  if (others == 0) [[likely]]
    return y;
  alignas(32) double in[kLanes], out[kLanes];
  _mm256_store_pd(in, x), _mm256_store_pd(out, y);
  for (; others != 0; others &= others - 1) {
    const auto k = static_cast<size_t>(std::countr_zero(others));
    char* operands[] = {reinterpret_cast<char*>(in + k), reinterpret_cast<char*>(out + k)};
    const intptr_t one = 1, strides[] = {sizeof(double), sizeof(double)};
    g_numpys<F>.function(operands, &one, strides, g_numpys<F>.data);
  }
  return _mm256_load_pd(out);
}

// Is an element read that has been written by then?
bool meets(const char* in, const char* out, intptr_t n, const intptr_t* strides) {
  if (in == out && strides[0] == strides[1]) return false;
  const auto reach = [&](const char* at, intptr_t stride) {
    const char* last = at + (n - 1) * stride;
    return std::pair(std::min(at, last), std::max(at, last) + sizeof(double));
  };
  const auto [a, a_end] = reach(in, strides[0]);
  const auto [b, b_end] = reach(out, strides[1]);
  return a < b_end && b < a_end;
}

template <class F>
DALSEGNO_FOURS [[gnu::flatten]] void loop(char** operands, const intptr_t* n, const intptr_t* strides, void*) {
  const InnerLoop& numpys = g_numpys<F>;
  if (meets(operands[0], operands[1], *n, strides)) return numpys.function(operands, n, strides, numpys.data);
  const char* in = operands[0];
  char* out = operands[1];
  intptr_t left = *n;
  const bool near = strides[0] == sizeof(double) && strides[1] == sizeof(double);
  for (; near && left >= kLanes; left -= kLanes, in += sizeof(__m256d), out += sizeof(__m256d))
    _mm256_storeu_pd(reinterpret_cast<double*>(out), value_of<F>(_mm256_loadu_pd(reinterpret_cast<const double*>(in)), kLanes));
  for (; left > 0; left -= kLanes) {
    const int some = static_cast<int>(std::min<intptr_t>(kLanes, left));
    alignas(32) double x[kLanes] = {F::kPlain, F::kPlain, F::kPlain, F::kPlain};
    for (int k = 0; k < some; ++k, in += strides[0]) std::memcpy(x + k, in, sizeof(double));
    _mm256_store_pd(x, value_of<F>(_mm256_load_pd(x), some));
    for (int k = 0; k < some; ++k, out += strides[1]) std::memcpy(out, x + k, sizeof(double));
  }
}

// Numbers of all magnitudes, most of them where the function's values are, and those that it treats apart.
std::vector<double> numbers() {
  std::vector<double> made = {0.0,   -0.0,     1.0,    -1.0,  5e-324, 0x1p-1022, 0x1p-54, 0x1p-55,
                              512.0, 511.9999, -512.0, 709.5, 710.0,  -745.0,    -746.0};
  for (const double at : {1 - 0x1p-4, 1 + 0x1.09p-4, 0.6875, 1.375})
    for (const double x : {std::nextafter(at, 0.0), at, std::nextafter(at, 2.0)}) made.push_back(x);
  for (const double x :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::max()})
    made.push_back(x), made.push_back(-x);
  uint64_t state = 88172645463325252;
  for (int k = 0; k < 6000; ++k) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    const double part = static_cast<double>(state >> 11) * 0x1p-53;
    made.push_back(k % 4 == 0   ? 1500 * part - 760
                   : k % 4 == 1 ? 8 * part - 4
                   : k % 4 == 2 ? 0.9 + 0.2 * part
                                : std::bit_cast<double>(state & 0x7fffffffffffffff));
  }
  return made;
}

// One after the other, for their flags: only there they tell.
template <class F>
bool gives_same(const InnerLoop& numpys) {
  const auto raised_by = [](rt::LoopFunction function, void* data, double x, double* y) {
    char* operands[] = {reinterpret_cast<char*>(&x), reinterpret_cast<char*>(y)};
    const intptr_t one = 1, strides[] = {sizeof x, sizeof x};
    rt::clear_all_raised();
    function(operands, &one, strides, data);
    return rt::all_raised();
  };
  const std::vector<double> all_of_them = numbers();
  const bool same = std::all_of(all_of_them.begin(), all_of_them.end(), [&](double x) {
    double want = 0, have = 0;
    const int raised = raised_by(numpys.function, numpys.data, x, &want);
    return raised == raised_by(loop<F>, nullptr, x, &have) && std::bit_cast<uint64_t>(want) == std::bit_cast<uint64_t>(have);
  });
  rt::clear_all_raised();
  return same;
}

template <class F>
InnerLoop found(const InnerLoop& numpys) {
  g_numpys<F> = numpys;
  const bool known = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && !__builtin_cpu_supports("avx512f");
  return known && numpys.function && gives_same<F>(numpys) ? InnerLoop{loop<F>, nullptr} : numpys;
}

}  // namespace

InnerLoop by_fours(ArrayFn fn, const InnerLoop& numpys) {
  if (fn == ArrayFn::exp) {
    static const InnerLoop kExp = found<Exp>(numpys);
    return kExp;
  }
  if (fn == ArrayFn::log) {
    static const InnerLoop kLog = found<Log>(numpys);
    return kLog;
  }
  return numpys;
}

}  // namespace dalsegno::numpy

#else

namespace dalsegno::numpy {
InnerLoop by_fours(ArrayFn, const InnerLoop& numpys) { return numpys; }
}  // namespace dalsegno::numpy

#endif
