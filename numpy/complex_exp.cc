// exp of complex numbers: NumPy's npy_cexp() is the C library's cexp() (glibc's math/s_cexp_template.c): the real part's exp times the
// other one's cosine and sine.
#include "numpy/fours.h"

#if defined(__x86_64__) && !defined(__clang_analyzer__)
#include "numpy/angles.h"
#include "numpy/exponential.h"

namespace dalsegno::numpy {
namespace {

using namespace fours;

constexpr intptr_t kNumber = 2 * sizeof(double);
InnerLoop g_loop;  // NumPy's

// Of four numbers; `plain`: as a function of doubles has it (fours_loop.h).
DALSEGNO_FOURS inline void exponentials(const __m256d* parts, __m256d* made, __m256d* plain) {
  const __m256d size = size_of(parts[0]), angle = size_of(parts[1]);
  *plain = _mm256_and_pd(
      _mm256_cmp_pd(size, all(512.0), _CMP_LT_OQ),
      _mm256_and_pd(_mm256_cmp_pd(angle, all(0x1p-26), _CMP_GE_OQ), _mm256_cmp_pd(angle, all_bits(0x419921fb00000000), _CMP_LT_OQ)));
  __m256d none, sine, cosine;
  const __m256d exponent = _mm256_and_pd(*plain, parts[0]), of = Exp::value(&exponent, &none);
  sine_and_cosine(either(*plain, parts[1], all(0.5)), &sine, &cosine);
  made[0] = _mm256_mul_pd(of, cosine), made[1] = _mm256_mul_pd(of, sine);
}

void by_numpy(const char* from, char* to) {
  char* operands[] = {const_cast<char*>(from), to};
  const intptr_t one = 1, strides[] = {kNumber, kNumber};
  g_loop.function(operands, &one, strides, g_loop.data);
}

// Four numbers side by side; the parts of the first and third stand beside each other, and those of the others.
DALSEGNO_FOURS inline void four_of(const char* from, char* to) {
  const auto* in = reinterpret_cast<const double*>(from);
  auto* out = reinterpret_cast<double*>(to);
  const __m256d first = _mm256_loadu_pd(in), second = _mm256_loadu_pd(in + kLanes);
  const __m256d parts[] = {_mm256_unpacklo_pd(first, second), _mm256_unpackhi_pd(first, second)};
  __m256d made[2], plain;
  exponentials(parts, made, &plain);
  _mm256_storeu_pd(out, _mm256_unpacklo_pd(made[0], made[1]));
  _mm256_storeu_pd(out + kLanes, _mm256_unpackhi_pd(made[0], made[1]));
  const auto others = ~static_cast<unsigned>(_mm256_movemask_pd(plain)) & ((1U << kLanes) - 1);
  if (others == 0) [[likely]]
    return;
  alignas(32) double as_they_were[2 * kLanes];
  _mm256_store_pd(as_they_were, first), _mm256_store_pd(as_they_were + kLanes, second);
  constexpr int kLaneOf[] = {0, 2, 1, 3};
  for (int k = 0; k < kLanes; ++k)
    if (others >> kLaneOf[k] & 1) by_numpy(reinterpret_cast<const char*>(as_they_were + 2 * k), to + k * kNumber);
}

DALSEGNO_FOURS [[gnu::flatten]] void loop(char** operands, const intptr_t* n, const intptr_t* strides, void*) {
  if (meets(operands[0], strides[0], operands[1], strides[1], *n, kNumber)) return g_loop.function(operands, n, strides, g_loop.data);
  const char* from = operands[0];
  char* to = operands[1];
  intptr_t left = *n;
  for (; strides[0] == kNumber && strides[1] == kNumber && left >= kLanes; left -= kLanes, from += kLanes * kNumber, to += kLanes * kNumber)
    four_of(from, to);
  for (; left > 0; left -= kLanes) {
    alignas(32) double some[2 * kLanes] = {0, 1, 0, 1, 0, 1, 0, 1};
    auto* numbers = reinterpret_cast<char*>(some);
    const intptr_t many = std::min<intptr_t>(kLanes, left);
    for (intptr_t k = 0; k < many; ++k, from += strides[0]) std::memcpy(numbers + k * kNumber, from, kNumber);
    four_of(numbers, numbers);
    for (intptr_t k = 0; k < many; ++k, to += strides[1]) std::memcpy(to, numbers + k * kNumber, kNumber);
  }
}

std::pair<std::vector<uint64_t>, int> outcome_of(const InnerLoop& of, std::vector<double> parts) {
  std::vector<uint64_t> made(parts.size());
  const auto n = static_cast<intptr_t>(parts.size() / 2);
  char* operands[] = {reinterpret_cast<char*>(parts.data()), reinterpret_cast<char*>(made.data())};
  const intptr_t strides[] = {kNumber, kNumber};
  rt::clear_all_raised();
  of.function(operands, &n, strides, of.data);
  const int raised = rt::all_raised();
  rt::clear_all_raised();
  return {std::move(made), raised};
}

bool gives_same(const InnerLoop& ours) {
  constexpr size_t kOnes = 80;  // parts of numbers that are asked for one by one: only then flags tell
  const std::vector<double> some = numbers();
  std::vector<double> parts;
  for (size_t k = 0; k < some.size(); ++k) parts.push_back(some[k]), parts.push_back(some[some.size() - 1 - k]);
  for (const double x : kHardExp) parts.push_back(x), parts.push_back(1);
  for (const double x : kHardSin) parts.push_back(0), parts.push_back(x);
  for (const double x : kHardCos) parts.push_back(0), parts.push_back(x);
  bool same = outcome_of(g_loop, parts) == outcome_of(ours, parts);
  for (size_t k = 0; k < kOnes; k += 2) {
    const std::vector<double> one = {parts[k], parts[k + 1]};
    same = same && outcome_of(g_loop, one) == outcome_of(ours, one);
  }
  return same;
}

}  // namespace

InnerLoop complex_exp_by_fours(const InnerLoop& numpys) {
  g_loop = numpys;
  const bool known = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const InnerLoop ours = {loop, nullptr};
  return known && numpys.function && gives_same(ours) ? ours : numpys;
}

}  // namespace dalsegno::numpy

#endif
