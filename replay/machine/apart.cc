#include "replay/machine/apart.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>

#include "halide_gen/runtime/flags.h"
#include "numpy/dtypes.h"
#include "replay/machine/cut.h"
#include "replay/machine/reductions.h"

namespace dalsegno::replay {

bool cut_apart(PyArrayObject* a, unsigned axes, Apart* apart) {
  if (!PyArray_IS_C_CONTIGUOUS(a)) return false;
  int stretches = 0;
  for (int d = 0; d < PyArray_NDIM(a); ++d) {
    const npy_intp extent = PyArray_DIM(a, d);
    const bool reduced = axes >> d & 1;
    if (extent < 1 || extent > kMostReduced) return false;
    if (extent == 1) continue;
    npy_intp& all = reduced ? apart->reduced : apart->kept;
    all *= extent;
    if (apart->kept > kMostReduced || apart->reduced > kMostReduced / apart->kept) return false;
    if (apart->rank > 0 && apart->axes[static_cast<size_t>(apart->rank - 1)].reduced == reduced) {
      apart->axes[static_cast<size_t>(apart->rank - 1)].extent *= extent;
    } else {
      if (apart->rank == Apart::kMost) return false;
      apart->axes[static_cast<size_t>(apart->rank++)] = {extent, 0, 0, reduced};
      stretches += reduced;
    }
  }
  npy_intp from = 1, to = 1;
  for (int d = apart->rank - 1; d >= 0; --d) {
    Apart::Axis& axis = apart->axes[static_cast<size_t>(d)];
    axis.from = from, axis.to = axis.reduced ? 0 : to;
    from *= axis.extent;
    if (!axis.reduced) to *= axis.extent;
  }
  return stretches > 1;
}

namespace {

// Calls take(first element, first of the result) for each pair of the two innermost axes.
template <class Take>
void each_pair(const Apart& apart, Take take) {
  std::array<npy_intp, Apart::kMost> at{};
  const int outer = apart.rank - 2;
  npy_intp from = 0, to = 0;
  for (;;) {
    take(from, to);
    int d = outer - 1;
    for (; d >= 0; --d) {
      const auto k = static_cast<size_t>(d);
      const Apart::Axis& axis = apart.axes[k];
      from += axis.from, to += axis.to;
      if (++at[k] < axis.extent) break;
      from -= axis.from * axis.extent, to -= axis.to * axis.extent, at[k] = 0;
    }
    if (d < 0) return;
  }
}

// join(what there is, the next one)
template <class T, class Sum, class Join>
void join_columns(const T* from, npy_intp rows, npy_intp n, Sum* to, Join join) {
  for (npy_intp k = 0; k < rows; ++k, from += n)
    for (npy_intp j = 0; j < n; ++j) to[j] = join(to[j], from[j]);
}

// Rows of so many elements, each from the first to the last one, and then with what there was.
template <npy_intp n, class T, class Sum, class Join>
void join_rows_of(const T* from, npy_intp rows, npy_intp, Sum* to, Sum start, Join join) {
  for (npy_intp i = 0; i < rows; ++i) {
    Sum made = start;
    for (npy_intp k = 0; k < n; ++k) made = join(made, from[i * n + k]);
    to[i] = join(to[i], made);
  }
}

template <class T, class Sum, class Join>
void join_rows(const T* from, npy_intp rows, npy_intp n, Sum* to, Sum start, Join join) {
  if (n == 2) return join_rows_of<2>(from, rows, n, to, start, join);
  if (n == 3) return join_rows_of<3>(from, rows, n, to, start, join);
  if (n == 4) return join_rows_of<4>(from, rows, n, to, start, join);
  for (npy_intp i = 0; i < rows; ++i, from += n) {
    Sum made = start;
    for (npy_intp k = 0; k < n; ++k) made = join(made, from[k]);
    to[i] = join(to[i], made);
  }
}

constexpr auto kAdd = [](auto a, auto b) { return static_cast<decltype(a)>(a + static_cast<decltype(a)>(b)); };

template <class T, class Sum = T, class Take>
void each_of(const Apart& apart, const char* from, char* to, Take take) {
  const auto axis = [&](int behind) -> const Apart::Axis& { return apart.axes[static_cast<size_t>(apart.rank - behind)]; };
  each_pair(apart, [&](npy_intp first, npy_intp result) {
    take(reinterpret_cast<const T*>(from) + first, axis(2).extent, axis(1).extent, axis(1).reduced, reinterpret_cast<Sum*>(to) + result);
  });
}

// One pair of axes, n elements in each row.
template <class T>
void sum_pair(const numpy::InnerLoop& add, const T* from, npy_intp rows, npy_intp n, bool reduced, T* to) {
  if (!reduced) return join_columns(from, rows, n, to, kAdd);
  if (n < kFew) return join_rows(from, rows, n, to, -T{0}, kAdd);
  const npy_intp strides[] = {0, sizeof(T), 0};
  for (npy_intp i = 0; i < rows; ++i) {
    char* operands[] = {reinterpret_cast<char*>(to + i), reinterpret_cast<char*>(const_cast<T*>(from + i * n)),
                        reinterpret_cast<char*>(to + i)};
    add.function(operands, &n, strides, add.data);
  }
}

template <class T>
void sum(const numpy::InnerLoop& add, const Apart& apart, const char* from, char* to) {
  std::fill_n(reinterpret_cast<T*>(to), apart.kept, T{0});
  each_of<T>(apart, from, to,
             [&](const T* first, npy_intp rows, npy_intp n, bool reduced, T* result) { sum_pair(add, first, rows, n, reduced, result); });
}

struct Special {
  bool negative_zero = false, nan = false;
};

template <class T>
Special look_for_special(const T* from, npy_intp n) {
  using Word = std::conditional_t<sizeof(T) == sizeof(double), int64_t, int32_t>;
  constexpr npy_intp kLanes = 16 / sizeof(T);
  using Vector [[gnu::vector_size(16), gnu::aligned(alignof(T)), gnu::may_alias]] = T;
  using Words [[gnu::vector_size(16)]] = Word;
  Words zeros{}, nans{};
  npy_intp i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Vector x = *reinterpret_cast<const Vector*>(from + i);
    Words bits;
    std::memcpy(&bits, &x, sizeof bits);
    zeros |= (x == 0) & bits, nans |= x != x;
  }
  Special found;
  for (npy_intp lane = 0; lane < kLanes; ++lane) found.negative_zero |= zeros[lane] < 0, found.nan |= nans[lane] != 0;
  for (; i < n; ++i) found.negative_zero |= from[i] == 0 && std::signbit(from[i]), found.nan |= std::isnan(from[i]);
  return found;
}

template <class T, bool largest>
bool extremes(const Apart& apart, const char* from, char* to) {
  using Limits = std::numeric_limits<T>;
  constexpr bool kFloats = std::is_floating_point_v<T>;
  constexpr T kStart = largest ? (kFloats ? -Limits::infinity() : Limits::lowest()) : (kFloats ? Limits::infinity() : Limits::max());
  std::fill_n(reinterpret_cast<T*>(to), apart.kept, kStart);
  const auto find = [&](const auto& better) {
    each_of<T>(apart, from, to, [&](const T* first, npy_intp rows, npy_intp n, bool reduced, T* result) {
      reduced ? join_rows(first, rows, n, result, kStart, better) : join_columns(first, rows, n, result, better);
    });
  };
  const auto better = [](T best, T x) -> T { return (largest ? best > x : best < x) ? best : x; };
  if constexpr (kFloats) {
    const Special special = look_for_special(reinterpret_cast<const T*>(from), apart.kept * apart.reduced);
    if (special.negative_zero) return false;  // which of several zeros stays depends on NumPy's vectors: the others are all alike
    special.nan ? find([&](T best, T x) -> T { return std::isnan(best) ? best : better(best, x); }) : find(better);
    rt::clear_all_raised();  // as NumPy's loop does
  } else {
    find(better);
  }
  return true;
}

template <bool largest>
bool extremes(DType dtype, const Apart& apart, const char* from, char* to) {
  using Of = bool (*)(const Apart&, const char*, char*);
  static constexpr auto kAll = numpy::by_dtype([]<DType of>() -> Of {
    if constexpr (of == DType::kBool)
      return nullptr;
    else
      return extremes<typename numpy::Element<of>::Type, largest>;
  });
  const Of of = kAll[static_cast<size_t>(dtype)];
  return of && of(apart, from, to);
}

// What is left of each element beside its mean, squared, a pair of axes at a time.
template <class T>
bool spread(bool root, int64_t ddof, const numpy::InnerLoop& add, const Apart& apart, const char* from, char* to) {
  constexpr npy_intp kMostOfPair = 1 << 16;
  const npy_intp rows = apart.axes[static_cast<size_t>(apart.rank - 2)].extent, n = apart.axes[static_cast<size_t>(apart.rank - 1)].extent;
  if (rows * n > kMostOfPair) return false;
  const std::unique_ptr<T[]> memory(new (std::nothrow) T[static_cast<size_t>(apart.kept + rows * n)]);
  if (!memory) return false;
  T *means = memory.get(), *squares = means + apart.kept;
  sum<T>(add, apart, from, reinterpret_cast<char*>(means));
  divide<T>(reinterpret_cast<char*>(means), apart.kept, apart.reduced);
  std::fill_n(reinterpret_cast<T*>(to), apart.kept, T{0});
  each_of<T>(apart, from, to, [&](const T* first, npy_intp, npy_intp, bool reduced, T* result) {
    const T* mean = means + (result - reinterpret_cast<T*>(to));
    for (npy_intp i = 0; i < rows; ++i)
      for (npy_intp k = 0; k < n; ++k) {
        const T rest = first[i * n + k] - mean[reduced ? i : k];
        squares[i * n + k] = rest * rest;
      }
    sum_pair(add, squares, rows, n, reduced, result);
  });
  divide<T>(to, apart.kept, apart.reduced - ddof);
  for (npy_intp i = 0; root && i < apart.kept; ++i) reinterpret_cast<T*>(to)[i] = std::sqrt(reinterpret_cast<T*>(to)[i]);
  return true;
}

template <DType dtype>
void sum_whole(const Apart& apart, const char* from, int64_t* sums) {
  using T = typename numpy::Element<dtype>::Type;
  if constexpr (!std::is_floating_point_v<T>) {
    const auto add = [](uint64_t a, auto b) {
      if constexpr (dtype == DType::kBool && std::is_same_v<decltype(b), T>) return a + (b != 0);
      return a + static_cast<uint64_t>(b);
    };
    std::fill_n(sums, apart.kept, 0);
    const auto take = [&](const T* first, npy_intp rows, npy_intp n, bool reduced, uint64_t* result) {
      reduced ? join_rows(first, rows, n, result, uint64_t{0}, add) : join_columns(first, rows, n, result, add);
    };
    each_of<T, uint64_t>(apart, from, reinterpret_cast<char*>(sums), take);
  }
}

}  // namespace

bool reduce_apart(ArrayFn fn, DType dtype, const numpy::InnerLoop& loop, const Apart& apart, const char* from, char* to) {
  if (fn == ArrayFn::maximum) return extremes<true>(dtype, apart, from, to);
  if (fn == ArrayFn::minimum) return extremes<false>(dtype, apart, from, to);
  if (dtype == DType::kFloat64) return sum<double>(loop, apart, from, to), true;
  if (dtype == DType::kFloat32) return sum<float>(loop, apart, from, to), true;
  if (dtype == DType::kInt64) return sum_whole_apart(dtype, apart, from, reinterpret_cast<int64_t*>(to)), true;
  return false;
}

bool spread_apart(DType dtype, bool root, int64_t ddof, const numpy::InnerLoop& add, const Apart& apart, const char* from, char* to) {
  return (dtype == DType::kFloat64 ? spread<double> : spread<float>)(root, ddof, add, apart, from, to);
}

void sum_whole_apart(DType dtype, const Apart& apart, const char* from, int64_t* sums) {
  static constexpr auto kSums = numpy::by_dtype([]<DType of>() { return sum_whole<of>; });
  kSums[static_cast<size_t>(dtype)](apart, from, sums);
}

}  // namespace dalsegno::replay
