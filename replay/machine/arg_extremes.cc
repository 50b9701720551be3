#include "replay/machine/arg_extremes.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

namespace dalsegno::replay {
namespace {

using numpy::element_at;

// (A truth value is true in any byte but 0.)
template <class T>
T look(const char* p) {
  if constexpr (std::is_same_v<T, bool>)
    return element_at<uint8_t>(p) != 0;
  else
    return element_at<T>(p);
}

// Does x stand before what was the best? (A NaN does, and stays.)
template <class T, bool largest>
bool beats(T x, T best) {
  if constexpr (std::is_floating_point_v<T>)
    return !(largest ? x <= best : x >= best) & (best == best);
  else
    return largest ? x > best : x < best;
}

template <class T, bool largest, class Step>
int64_t in_row(const char* from, npy_intp n, Step step) {
  T best = look<T>(from);
  int64_t at = 0;
  for (npy_intp k = 1; k < n; ++k) {
    const T x = look<T>(from + k * step);
    const bool is = beats<T, largest>(x, best);
    best = is ? x : best;
    at = is ? k : at;
  }
  return at;
}

// The same of columns, from row to row: of so many at a time that what is known of them stays in registers.
template <class T>
struct Lanes {
  using Plain = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
  using Mark = std::conditional_t<sizeof(T) == 8, int64_t,
                                  std::conditional_t<sizeof(T) == 4, int32_t, std::conditional_t<sizeof(T) == 2, int16_t, int8_t>>>;
  typedef Plain Values __attribute__((vector_size(32)));
  typedef Mark Marks __attribute__((vector_size(32)));
  static constexpr npy_intp kMany = 32 / static_cast<npy_intp>(sizeof(T)), kGroup = 4;

  // Of at most kGroup * kMany columns, which lie side by side. Positions are counted anew before a mark is too small for them.
  template <bool largest, npy_intp group>
  [[gnu::target("avx2"), gnu::always_inline]] static inline void search(const char* row, const Walk& along, int64_t* to) {
    constexpr npy_intp kRun = std::min<npy_intp>(std::numeric_limits<Mark>::max(), npy_intp{1} << 30);
    Values best[group];
    for (npy_intp g = 0; g < group; ++g) best[g] = load(row + g * 32);
    std::fill_n(to, group * kMany, 0);
    for (npy_intp first = 1; first < along.many; first += kRun) {
      const npy_intp n = std::min(kRun, along.many - first);
      Marks at[group];
      for (npy_intp g = 0; g < group; ++g) at[g] = Marks{} - 1;
      for (npy_intp k = 0; k < n; ++k) {
        row += along.step;
        const Marks here = Marks{} + static_cast<Mark>(k);
        for (npy_intp g = 0; g < group; ++g) {
          const Values x = load(row + g * 32);
          const Marks is = beat<largest>(x, best[g]);
          best[g] = is ? x : best[g];
          at[g] = is ? here : at[g];
        }
      }
      for (npy_intp j = 0; j < group * kMany; ++j)
        if (const Mark found = at[j / kMany][j % kMany]; found >= 0) to[j] = first + found;
    }
  }

 private:
  [[gnu::target("avx2"), gnu::always_inline]] static inline Values load(const char* p) {
    Values made;
    std::memcpy(&made, p, sizeof(made));
    if constexpr (std::is_same_v<T, bool>)
      return reinterpret_cast<Values>(made != 0);
    else
      return made;
  }
  template <bool largest>
  [[gnu::target("avx2"), gnu::always_inline]] static inline Marks beat(Values x, Values best) {
    if constexpr (std::is_floating_point_v<T>)
      return ~(largest ? x <= best : x >= best) & (best == best);
    else
      return largest ? x > best : x < best;
  }
};

// The last columns with some that have been looked at. False: there are too few of them.
template <class T, bool largest>
[[gnu::target("avx2")]] bool in_columns(const char* from, const Walk& along, npy_intp columns, int64_t* to) {
  constexpr npy_intp kMany = Lanes<T>::kMany, kGroup = Lanes<T>::kGroup;
  if (columns < kMany) return false;
  npy_intp j = 0;
  const auto at = [&] { return from + j * static_cast<npy_intp>(sizeof(T)); };
  for (; j + kGroup * kMany <= columns; j += kGroup * kMany) Lanes<T>::template search<largest, kGroup>(at(), along, to + j);
  for (; j + kMany <= columns; j += kMany) Lanes<T>::template search<largest, 1>(at(), along, to + j);
  if (j < columns) j = columns - kMany, Lanes<T>::template search<largest, 1>(at(), along, to + j);
  return true;
}

// Rows that are long enough for NumPy's own function, which looks at many elements at once, but not at those with gaps between.
// (Of truth values it looks for one.)
template <class T>
constexpr npy_intp kLong = std::is_same_v<T, bool> ? 6 : 16;

template <class T, DType dtype, bool largest>
void in_rows(const Cut& cut, const char* from, int64_t* to) {
  const npy_intp n = cut.along.many, step = cut.along.step;
  const auto each = [&](auto find) {
    for (npy_intp i = 0; i < cut.before.many; ++i, from += cut.before.step) to[i] = find();
  };
  constexpr auto kItem = std::integral_constant<npy_intp, sizeof(T)>();
  if (step != kItem) return each([&] { return in_row<T, largest>(from, n, step); });
  if (n < kLong<T>) return each([&] { return in_row<T, largest>(from, n, kItem); });
  const PyArray_ArrFuncs* functions = PyDataType_GetArrFuncs(numpy::descriptor(dtype));
  each([&] {
    npy_intp at = 0;
    (largest ? functions->argmax : functions->argmin)(const_cast<char*>(from), n, &at, nullptr);
    return static_cast<int64_t>(at);
  });
}

constexpr npy_intp kFew = 256;  // elements: each by itself

template <DType dtype, bool largest>
bool positions(const Cut& cut, const char* from, int64_t* to) {
  using Element = typename numpy::Element<dtype>::Type;
  using T = std::conditional_t<dtype == DType::kBool, bool, Element>;
  const auto& [before, rounds, along, behind] = cut;
  if (behind.many == 1) return in_rows<T, dtype, largest>(cut, from, to), true;
  static const bool newer = __builtin_cpu_supports("avx2");
  const bool few = before.many * along.many * behind.many <= kFew, wide = newer && behind.step == sizeof(T);
  for (npy_intp i = 0; i < before.many; ++i, from += before.step, to += behind.many) {
    if (wide && in_columns<T, largest>(from, along, behind.many, to)) continue;
    if (!few) return false;
    for (npy_intp j = 0; j < behind.many; ++j) to[j] = in_row<T, largest>(from + j * behind.step, along.many, along.step);
  }
  return true;
}

}  // namespace

bool find_positions(DType dtype, bool largest, const Cut& cut, const char* from, int64_t* to) {
  static constexpr auto kGreatest = numpy::by_dtype([]<DType dtype>() { return positions<dtype, true>; });
  static constexpr auto kLeast = numpy::by_dtype([]<DType dtype>() { return positions<dtype, false>; });
  return (largest ? kGreatest : kLeast)[static_cast<size_t>(dtype)](cut, from, to);
}

}  // namespace dalsegno::replay
