#include "numpy/sums.h"

#include <array>
#include <cstring>
#include <vector>

#include "halide_gen/runtime/flags.h"
#include "numpy/dtypes.h"

namespace dalsegno::numpy {
namespace {

constexpr int64_t kLanes = 8;
constexpr int64_t kBlock = 128;  // PW_BLOCKSIZE

// Eight of them, in vectors of the processor's size: of larger ones GCC 12 moves each half through memory, in each turn.
template <class T, int bytes>
struct Eight {
  static constexpr int kSize = bytes < kLanes * static_cast<int>(sizeof(T)) ? bytes : kLanes * static_cast<int>(sizeof(T));
  static constexpr int kVectors = kLanes * static_cast<int>(sizeof(T)) / kSize;
  using Vector [[gnu::vector_size(kSize), gnu::aligned(alignof(T)), gnu::may_alias]] = T;
};

// One element, or several: itself, or the square of what is left beside the mean.
template <bool squares, class Value, class T>
[[gnu::always_inline]] inline void add(const Value& x, T mean, Value& sum) {
  if constexpr (squares) {
    const Value rest = x - mean;
    sum += rest * rest;
  } else {
    sum += x;
  }
}

template <bool squares, int bytes, class T>
[[gnu::always_inline]] inline T block(const T* from, int64_t n, T mean) {
  using Vector = typename Eight<T, bytes>::Vector;
  constexpr int kVectors = Eight<T, bytes>::kVectors, kEach = kLanes / kVectors;
  if (n < kLanes) {
    T sum = -T{0};
    for (int64_t i = 0; i < n; ++i) add<squares>(from[i], mean, sum);
    return sum;
  }
  Vector sums[kVectors];
  for (Vector& some : sums) some = -Vector{};  // (as good as none, whatever is added)
  int64_t i = 0;
  for (; i < n - n % kLanes; i += kLanes)
    for (int k = 0; k < kVectors; ++k) add<squares>(*reinterpret_cast<const Vector*>(from + i + k * kEach), mean, sums[k]);
  T r[kLanes];
  std::memcpy(r, sums, sizeof r);
  T sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
  for (; i < n; ++i) add<squares>(from[i], mean, sum);
  return sum;
}

#define DALSEGNO_PAIRWISE(name, bytes, target)                                                        \
  template <bool squares, class T>                                                                    \
  target T name(const T* from, int64_t n, T mean) {                                                   \
    if (n <= kBlock) return block<squares, bytes>(from, n, mean);                                     \
    const int64_t half = n / 2 - n / 2 % kLanes;                                                      \
    const T first = name<squares>(from, half, mean);                                                  \
    return first + name<squares>(from + half, n - half, mean);                                        \
  }                                                                                                   \
  template <class T>                                                                                  \
  target void name##s(const char* from, int64_t rows, int64_t step, int64_t n, T* sums) {             \
    for (int64_t i = 0; i < rows; ++i, from += step) {                                                \
      const T* row = reinterpret_cast<const T*>(from);                                                \
      sums[i] = T{0} + (n <= kBlock ? block<false, bytes>(row, n, T{0}) : name<false>(row, n, T{0})); \
    }                                                                                                 \
  }
DALSEGNO_PAIRWISE(plain_sum, 16, )
#if defined(__x86_64__) && !defined(__clang_analyzer__)
DALSEGNO_PAIRWISE(newer_sum, 32, [[gnu::target("avx2")]])
DALSEGNO_PAIRWISE(wide_sum, 64, [[gnu::target("avx512f,prefer-vector-width=512")]])
#else
DALSEGNO_PAIRWISE(newer_sum, 16, )
DALSEGNO_PAIRWISE(wide_sum, 16, )
#endif

template <class Way>
Way best_of(Way plain, Way newer, Way wide) {
  return __builtin_cpu_supports("avx512f") ? wide : __builtin_cpu_supports("avx2") ? newer : plain;
}

template <bool squares, class T>
T pairwise(const T* from, int64_t n, T mean) {
  static const auto kWay = best_of(plain_sum<squares, T>, newer_sum<squares, T>, wide_sum<squares, T>);
  return kWay(from, n, mean);
}

InnerLoop g_add[2];   // NumPy's, of doubles and floats
bool g_same[2] = {};  // whether they are known to give what pairwise() does
template <class T>
constexpr size_t kOf = sizeof(T) == sizeof(double) ? 0 : 1;

template <class T>
void add_up(char** operands, const npy_intp* n, const npy_intp* strides, void*) {
  const InnerLoop& numpys = g_add[kOf<T>];
  if (operands[0] != operands[2] || strides[0] != 0 || strides[2] != 0 || strides[1] != sizeof(T))
    return numpys.function(operands, n, strides, numpys.data);
  T* sum = reinterpret_cast<T*>(operands[0]);
  *sum = *sum + pairwise<false>(reinterpret_cast<const T*>(operands[1]), *n, T{0});
}

// Sums of all lengths that differ in kind, of numbers whose sums depend on their order.
template <class T>
bool gives_same(const InnerLoop& numpys) {
  constexpr npy_intp kMost = 5000;
  std::vector<T> numbers(kMost);
  uint64_t state = 88172645463325252;
  for (T& x : numbers) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    x = static_cast<T>(static_cast<double>(state >> 11) * 0x1p-53 * (state % 5 == 0 ? 1000.0 : 1.0) - 0.5);
  }
  const npy_intp strides[] = {0, sizeof(T), 0};
  for (npy_intp n = 1; n <= kMost; n += n < 300 ? 1 : 471) {
    T want = T{0};
    char* operands[] = {reinterpret_cast<char*>(&want), reinterpret_cast<char*>(numbers.data() + kMost - n),
                        reinterpret_cast<char*>(&want)};
    numpys.function(operands, &n, strides, numpys.data);
    const T have = T{0} + pairwise<false>(numbers.data() + kMost - n, n, T{0});
    rt::clear_all_raised();
    if (std::memcmp(&want, &have, sizeof have) != 0) return false;
  }
  return true;
}

template <class T>
InnerLoop adding_loop(DType dtype) {
  InnerLoop& numpys = g_add[kOf<T>];
  numpys = inner_loop(ArrayFn::add, dtype, dtype);
  g_same[kOf<T>] = numpys.function && gives_same<T>(numpys);
  return g_same[kOf<T>] ? InnerLoop{add_up<T>, nullptr} : numpys;
}

}  // namespace

InnerLoop reducing_loop(ArrayFn fn, DType dtype) {
  static const auto kLoops = [] {
    std::array<std::array<InnerLoop, static_cast<size_t>(DType::kCount)>, 3> loops{};
    const ArrayFn fns[] = {ArrayFn::add, ArrayFn::maximum, ArrayFn::minimum};
    for (size_t f = 0; f < loops.size(); ++f)
      for (size_t i = 0; i < loops[f].size(); ++i) loops[f][i] = inner_loop(fns[f], static_cast<DType>(i), static_cast<DType>(i));
    loops[0][static_cast<size_t>(DType::kFloat64)] = adding_loop<double>(DType::kFloat64);
    loops[0][static_cast<size_t>(DType::kFloat32)] = adding_loop<float>(DType::kFloat32);
    return loops;
  }();
  return kLoops[fn == ArrayFn::add ? 0 : fn == ArrayFn::maximum ? 1 : 2][static_cast<size_t>(dtype)];
}

template <class T>
bool sum_of_squares(const T* from, int64_t n, T mean, T* sum) {
  reducing_loop(ArrayFn::add, DType::kFloat64);
  if (!g_same[kOf<T>]) return false;
  *sum = T{0} + pairwise<true>(from, n, mean);
  return true;
}
template bool sum_of_squares(const double*, int64_t, double, double*);
template bool sum_of_squares(const float*, int64_t, float, float*);

template <class T>
bool sums_of_rows(const char* from, int64_t rows, int64_t step, int64_t n, T* sums) {
  static const auto kWay = best_of(plain_sums<T>, newer_sums<T>, wide_sums<T>);
  reducing_loop(ArrayFn::add, DType::kFloat64);
  if (!g_same[kOf<T>]) return false;
  return kWay(from, rows, step, n, sums), true;
}
template bool sums_of_rows(const char*, int64_t, int64_t, int64_t, double*);
template bool sums_of_rows(const char*, int64_t, int64_t, int64_t, float*);

}  // namespace dalsegno::numpy
