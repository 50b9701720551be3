// A loop of NumPy's, four doubles at once: what exp_log.cc and sin_cos.cc are made of. A function is a class: kInputs; value(inputs,
// &plain), which gives what the C library does, flags included, for the elements that are `plain` then (whole lanes of ones; the others
// NumPy's loop is given); kPlain: one of them, with which lanes without an element are filled; hard(k): for which NumPy is asked before the
// first use, of the k-th input (fours_cases.h); numpy_has_another(x), if there is any: NumPy has another way where the second input is x
// for all elements.
#pragma once
#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "halide_gen/runtime/flags.h"
#include "numpy/loops.h"

#define DALSEGNO_FOURS __attribute__((target("avx2,fma")))

namespace dalsegno::numpy::fours {

inline constexpr int kLanes = 4;

DALSEGNO_FOURS inline __m256d all(double x) { return _mm256_set1_pd(x); }
DALSEGNO_FOURS inline __m256d all_bits(uint64_t x) { return _mm256_castsi256_pd(_mm256_set1_epi64x(static_cast<int64_t>(x))); }
DALSEGNO_FOURS inline __m256i bits_of(__m256d x) { return _mm256_castpd_si256(x); }

DALSEGNO_FOURS inline __m256d either(__m256d condition, __m256d yes, __m256d no) { return _mm256_blendv_pd(no, yes, condition); }
DALSEGNO_FOURS inline __m256d size_of(__m256d x) { return _mm256_andnot_pd(all(-0.0), x); }

// pi / 2, and what is left of it beside its double. Bits.
inline constexpr uint64_t kRight = 0x3ff921fb54442d18, kRightRest = 0x3c91a62633145c07;

// Two numbers of each of four rows, from the `first` on, as columns. (Returned: GCC 12 keeps an array of them in memory.)
struct TwoColumns {
  __m256d first, second;
};
DALSEGNO_FOURS inline TwoColumns two_columns(const double* const* rows, int first = 0) {
  const auto pair = [&](int k) { return _mm_loadu_pd(rows[k] + first); };
  const __m256d even = _mm256_insertf128_pd(_mm256_castpd128_pd256(pair(0)), pair(2), 1);
  const __m256d odd = _mm256_insertf128_pd(_mm256_castpd128_pd256(pair(1)), pair(3), 1);
  return {_mm256_unpacklo_pd(even, odd), _mm256_unpackhi_pd(even, odd)};
}

// Four numbers of each of four rows, as columns. (The rows one by one: in a loop GCC 12 sends them through memory.)
DALSEGNO_FOURS inline void columns_of(const double* const* rows, int first, __m256d* columns) {
  const auto row = [&](int k) DALSEGNO_FOURS { return _mm256_loadu_pd(rows[k] + first); };
  const __m256d row0 = row(0), row1 = row(1), row2 = row(2), row3 = row(3);
  const __m256d low01 = _mm256_unpacklo_pd(row0, row1), low23 = _mm256_unpacklo_pd(row2, row3);
  const __m256d high01 = _mm256_unpackhi_pd(row0, row1), high23 = _mm256_unpackhi_pd(row2, row3);
  columns[0] = _mm256_permute2f128_pd(low01, low23, 0x20), columns[1] = _mm256_permute2f128_pd(high01, high23, 0x20);
  columns[2] = _mm256_permute2f128_pd(low01, low23, 0x31), columns[3] = _mm256_permute2f128_pd(high01, high23, 0x31);
}

// Rows of four of a table, those that the low seven bits say, as their columns.
DALSEGNO_FOURS inline void look_up_rows(const uint64_t* table, __m256i indices, __m256d* columns) {
  alignas(32) int64_t at[kLanes];
  _mm256_store_si256(reinterpret_cast<__m256i*>(at), _mm256_and_si256(indices, _mm256_set1_epi64x(0x7f)));
  const auto row = [&](int k) { return reinterpret_cast<const double*>(table + 4 * at[k]); };
  const double* const rows[kLanes] = {row(0), row(1), row(2), row(3)};
  columns_of(rows, 0, columns);
}

template <class F>
InnerLoop g_numpys;

inline constexpr int kMostInputs = 2;

// Of the first `some` of four elements.
template <class F>
DALSEGNO_FOURS inline __m256d value_of(const __m256d* inputs, int some) {
  __m256d plain;
  const __m256d y = F::value(inputs, &plain);
  unsigned others = ~static_cast<unsigned>(_mm256_movemask_pd(plain)) & ((1U << some) - 1);
  if (others == 0) [[likely]]
    return y;
  alignas(32) double in[kMostInputs][kLanes], out[kLanes];
  for (int i = 0; i < F::kInputs; ++i) _mm256_store_pd(in[i], inputs[i]);
  _mm256_store_pd(out, y);
  for (; others != 0; others &= others - 1) {
    const auto k = static_cast<size_t>(std::countr_zero(others));
    char* operands[kMostInputs + 1] = {};
    for (int i = 0; i < F::kInputs; ++i) operands[i] = reinterpret_cast<char*>(in[i] + k);
    operands[F::kInputs] = reinterpret_cast<char*>(out + k);
    const intptr_t one = 1, strides[] = {sizeof(double), sizeof(double), sizeof(double)};
    g_numpys<F>.function(operands, &one, strides, g_numpys<F>.data);
  }
  return _mm256_load_pd(out);
}

// Is an element read that has been written by then?
inline bool meets(const char* in, intptr_t stride, const char* out, intptr_t stride_out, intptr_t n, intptr_t item = sizeof(double)) {
  if (in == out && stride == stride_out) return false;
  const auto reach = [&](const char* at, intptr_t step) {
    const char* last = at + (n - 1) * step;
    return std::pair(std::min(at, last), std::max(at, last) + item);
  };
  const auto [a, a_end] = reach(in, stride);
  const auto [b, b_end] = reach(out, stride_out);
  return a < b_end && b < a_end;
}

template <class F>
bool is_numpys(char** operands, const intptr_t* strides) {
  if constexpr (requires { F::numpy_has_another(0.0); }) {
    double second;
    std::memcpy(&second, operands[1], sizeof second);
    return strides[1] == 0 && F::numpy_has_another(second);
  }
  return false;
}

template <class F>
DALSEGNO_FOURS [[gnu::flatten]] void loop(char** operands, const intptr_t* n, const intptr_t* strides, void*) {
  constexpr int kOut = F::kInputs;
  bool numpys = is_numpys<F>(operands, strides), near = strides[kOut] == sizeof(double);
  for (int i = 0; i < F::kInputs; ++i) {
    numpys |= meets(operands[i], strides[i], operands[kOut], strides[kOut], *n);
    near &= strides[i] == sizeof(double) || (i > 0 && strides[i] == 0);
  }
  if (numpys) return g_numpys<F>.function(operands, n, strides, g_numpys<F>.data);
  intptr_t done = 0;
  __m256d inputs[kMostInputs];
  const bool same = F::kInputs > 1 && strides[1] == 0;
  if (near && same && *n >= kLanes) inputs[1] = _mm256_broadcast_sd(reinterpret_cast<const double*>(operands[1]));
  for (; near && done + kLanes <= *n; done += kLanes) {
    const intptr_t at = done * static_cast<intptr_t>(sizeof(double));
    inputs[0] = _mm256_loadu_pd(reinterpret_cast<const double*>(operands[0] + at));
    if (F::kInputs > 1 && !same) inputs[1] = _mm256_loadu_pd(reinterpret_cast<const double*>(operands[1] + at));
    _mm256_storeu_pd(reinterpret_cast<double*>(operands[kOut] + at), value_of<F>(inputs, kLanes));
  }
  for (; done < *n; done += kLanes) {
    const int some = static_cast<int>(std::min<intptr_t>(kLanes, *n - done));
    for (int i = 0; i < F::kInputs; ++i) {
      alignas(32) double x[kLanes] = {F::kPlain, F::kPlain, F::kPlain, F::kPlain};
      for (int k = 0; k < some; ++k) std::memcpy(x + k, operands[i] + (done + k) * strides[i], sizeof(double));
      inputs[i] = _mm256_load_pd(x);
    }
    alignas(32) double y[kLanes];
    _mm256_store_pd(y, value_of<F>(inputs, some));
    for (int k = 0; k < some; ++k) std::memcpy(operands[kOut] + (done + k) * strides[kOut], y + k, sizeof(double));
  }
}

// Those that a function treats apart, and numbers of all magnitudes, most of them where its values are.
inline std::vector<double> numbers() {
  std::vector<double> made = {0.0,   -0.0,     1.0,    -1.0,  5e-324, 0x1p-1022, 0x1p-54, 0x1p-55,
                              512.0, 511.9999, -512.0, 709.5, 710.0,  -745.0,    -746.0};
  for (const double at : {1 - 0x1p-4, 1 + 0x1.09p-4, 0.6875, 1.375})
    for (const double x : {std::nextafter(at, 0.0), at, std::nextafter(at, 2.0)}) made.push_back(x);
  for (const double x :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::max()})
    made.push_back(x), made.push_back(-x);
  uint64_t state = 88172645463325252;
  for (int k = 0; k < 600; ++k) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    const double part = static_cast<double>(state >> 11) * 0x1p-53;
    made.push_back(k % 8 < 3   ? 8 * part - 4
                   : k % 8 < 5 ? 0.9 + 0.2 * part
                   : k % 8 < 6 ? 1500 * part - 760
                   : k % 8 < 7 ? 2.2e8 * part - 1.1e8
                               : std::bit_cast<double>(state & 0x7fffffffffffffff));
  }
  return made;
}

// What a loop gives, and which flags it raises: for elements that lie `stride` bytes apart, those of y `stride_of_y`.
inline std::pair<std::vector<uint64_t>, int> outcome(const InnerLoop& of, std::span<const double> x, std::span<const double> y,
                                                     intptr_t stride, intptr_t stride_of_y, int n_inputs) {
  const auto each = static_cast<size_t>(stride) / sizeof(double);
  const auto n = static_cast<intptr_t>((x.size() + each - 1) / each);
  std::vector<uint64_t> made(static_cast<size_t>(n));
  const auto at = [](std::span<const double> from) { return reinterpret_cast<char*>(const_cast<double*>(from.data())); };
  char *out = reinterpret_cast<char*>(made.data()), *operands[] = {at(x), n_inputs == 1 ? out : at(y), out};
  const intptr_t strides[] = {stride, n_inputs == 1 ? intptr_t{sizeof(double)} : stride_of_y, sizeof(double)};
  rt::clear_all_raised();
  of.function(operands, &n, strides, of.data);
  return {std::move(made), rt::all_raised()};
}

template <class F>
bool gives_same(const InnerLoop& numpys) {
  constexpr size_t kOnes = 40;  // that are asked for one by one: only then flags tell
  constexpr intptr_t kItem = sizeof(double);
  constexpr double kExponents[] = {-3, -2,  -1.5, -1,      -0.5, -1.0 / 3, -0.0, 0, 1.0 / 3, 0.5, 1, 1.5,
                                   2,  2.2, 2.4,  1 / 2.4, 3,    4,        5,    6, 7,       8,   10};
  const InnerLoop ours = {loop<F>, nullptr};
  std::vector<double> x = numbers(), y(x.rbegin(), x.rend());
  for (size_t k = 0; k < y.size(); ++k)
    if (k % 8 != 0) y[k] = std::remainder(y[k], 40);
  x.insert(x.end(), F::hard(0).begin(), F::hard(0).end());
  y.insert(y.end(), F::hard(F::kInputs - 1).begin(), F::hard(F::kInputs - 1).end());
  const auto same = [&](std::span<const double> some, std::span<const double> others, intptr_t stride, intptr_t stride_of_y) {
    return outcome(numpys, some, others, stride, stride_of_y, F::kInputs) == outcome(ours, some, others, stride, stride_of_y, F::kInputs);
  };
  bool all_same = same(x, y, kItem, kItem) && same(x, y, 2 * kItem, kItem);
  for (size_t k = 0; k < kOnes; ++k)
    all_same = all_same && same({&x[k], 1}, {&y[k], 1}, kItem, kItem) && same({&y[k], 1}, {&x[k], 1}, kItem, kItem);
  for (size_t k = 0; F::kInputs > 1 && k < std::size(kExponents); ++k)
    all_same = all_same && same({&x[k * 20], 60}, {&kExponents[k], 1}, kItem, 0);
  rt::clear_all_raised();
  return all_same;
}

template <class F>
InnerLoop found_anywhere(const InnerLoop& numpys) {
  g_numpys<F> = numpys;
  const bool known = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return known && numpys.function && gives_same<F>(numpys) ? InnerLoop{loop<F>, nullptr} : numpys;
}

// Where NumPy has no vector code of its own.
template <class F>
InnerLoop found(const InnerLoop& numpys) {
  return __builtin_cpu_supports("avx512f") ? numpys : found_anywhere<F>(numpys);
}

}  // namespace dalsegno::numpy::fours
