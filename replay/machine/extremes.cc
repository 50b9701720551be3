#include "replay/machine/extremes.h"

#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "halide_gen/runtime/flags.h"

namespace dalsegno::replay {
namespace {

using numpy::element_at;

// Of equals one stays (of zeros, that is seen), and a NaN (loops_minmax.dispatch.c.src in numpy/_core/src/umath).
enum class Stays : uint8_t { kFirst, kLast };

template <class T, bool largest, Stays stays>
T better(T best, T x) {
  if constexpr (std::is_floating_point_v<T>) {
    const bool is = stays == Stays::kFirst ? (largest ? std::isgreaterequal(best, x) : std::islessequal(best, x))
                                           : (largest ? std::isgreater(best, x) : std::isless(best, x));
    return is || std::isnan(best) ? best : x;
  } else {
    return largest ? std::max(best, x) : std::min(best, x);
  }
}

template <class T, bool largest, Stays stays>
T one_row(const char* from, npy_intp n, npy_intp step) {
  T best = element_at<T>(from);
  for (npy_intp k = 1; k < n; ++k) best = better<T, largest, stays>(best, element_at<T>(from + k * step));
  return best;
}

// Several rows side by side. (Comparisons raise flags.)
struct Doubles {
  static constexpr npy_intp kLanes = 4;
  __m128d low, high;
  static Doubles column(const char* p, npy_intp step) {
    const auto two = [&](const char* q) { return _mm_setr_pd(element_at<double>(q), element_at<double>(q + step)); };
    return {two(p), two(p + 2 * step)};
  }
  void store(double* to) const { _mm_storeu_pd(to, low), _mm_storeu_pd(to + 2, high); }
  template <bool largest, Stays stays>
  static __m128d better(__m128d best, __m128d x) {
    const __m128d is = stays == Stays::kFirst ? (largest ? _mm_cmpge_pd(best, x) : _mm_cmple_pd(best, x))
                                              : (largest ? _mm_cmpgt_pd(best, x) : _mm_cmplt_pd(best, x));
    const __m128d mask = _mm_or_pd(is, _mm_cmpunord_pd(best, best));
    return _mm_or_pd(_mm_and_pd(mask, best), _mm_andnot_pd(mask, x));
  }
  template <bool largest, Stays stays>
  void take(const Doubles& x) {
    low = better<largest, stays>(low, x.low), high = better<largest, stays>(high, x.high);
  }
};
struct Floats {
  static constexpr npy_intp kLanes = 4;
  __m128 all;
  static Floats column(const char* p, npy_intp step) {
    return {
        _mm_setr_ps(element_at<float>(p), element_at<float>(p + step), element_at<float>(p + 2 * step), element_at<float>(p + 3 * step))};
  }
  void store(float* to) const { _mm_storeu_ps(to, all); }
  template <bool largest, Stays stays>
  void take(const Floats& x) {
    const __m128 is = stays == Stays::kFirst ? (largest ? _mm_cmpge_ps(all, x.all) : _mm_cmple_ps(all, x.all))
                                             : (largest ? _mm_cmpgt_ps(all, x.all) : _mm_cmplt_ps(all, x.all));
    const __m128 mask = _mm_or_ps(is, _mm_cmpunord_ps(all, all));
    all = _mm_or_ps(_mm_and_ps(mask, all), _mm_andnot_ps(mask, x.all));
  }
};

template <class T, bool largest, Stays stays>
void rows_of_floats(const Cut& cut, const char* from, T* to) {
  using Rows = std::conditional_t<sizeof(T) == sizeof(double), Doubles, Floats>;
  const npy_intp n = cut.along.many, step = cut.before.step, along = cut.along.step;
  npy_intp i = 0;
  for (; i + Rows::kLanes <= cut.before.many; i += Rows::kLanes, from += Rows::kLanes * step) {
    Rows best = Rows::column(from, step);
    for (npy_intp k = 1; k < n; ++k) best.template take<largest, stays>(Rows::column(from + k * along, step));
    best.store(to + i);
  }
  for (; i < cut.before.many; ++i, from += step) to[i] = one_row<T, largest, stays>(from, n, along);
}

// (Pixels in loops of their own.)
template <class T, bool largest>
void rows_of_integers(const Cut& cut, const char* from, T* to) {
  const auto rows = [&](auto n, npy_intp along, npy_intp step) {
    for (npy_intp i = 0; i < cut.before.many; ++i) to[i] = one_row<T, largest, Stays::kFirst>(from + i * step, n, along);
  };
  const auto dense = [&]<npy_intp n>(std::integral_constant<npy_intp, n> of) { rows(of, sizeof(T), n * npy_intp{sizeof(T)}); };
  const npy_intp n = cut.along.many;
  const bool packed = cut.along.step == sizeof(T) && cut.before.step == n * npy_intp{sizeof(T)};
  if (packed && n == 2) return dense(std::integral_constant<npy_intp, 2>());
  if (packed && n == 3) return dense(std::integral_constant<npy_intp, 3>());
  if (packed && n == 4) return dense(std::integral_constant<npy_intp, 4>());
  rows(n, cut.along.step, cut.before.step);
}

constexpr npy_intp kMostOfFloats = 8, kMostOfIntegers = 16;

// Of how many elements, in order, NumPy's loop leaves the zero that this rule does: that depends on its vectors, on the processor and on
// what it was compiled with. Found out by asking it.
template <class T, bool largest, Stays stays>
npy_intp most_by(const numpy::InnerLoop& loop) {
  for (npy_intp n = 2; n <= kMostOfFloats; ++n)
    for (npy_intp apart = 1; apart <= 2; ++apart)
      for (unsigned signs = 0; signs < 1u << n; ++signs) {
        std::array<T, 2 * kMostOfFloats> row{};
        for (npy_intp k = 0; k < n; ++k) row[static_cast<size_t>(k * apart)] = signs >> k & 1 ? -T{0} : T{0};
        const npy_intp step = apart * static_cast<npy_intp>(sizeof(T)), rest = n - 1, strides[] = {0, step, 0};
        T made = row[0];
        char* operands[] = {reinterpret_cast<char*>(&made), reinterpret_cast<char*>(row.data()) + step, reinterpret_cast<char*>(&made)};
        loop.function(operands, &rest, strides, loop.data);
        const T ours = one_row<T, largest, stays>(reinterpret_cast<const char*>(row.data()), n, step);
        if (std::memcmp(&made, &ours, sizeof made) != 0) return n - 1;
      }
  return kMostOfFloats;
}

template <class T, bool largest>
bool extremes(const numpy::InnerLoop& loop, const Cut& cut, const char* from, char* to) {
  T* out = reinterpret_cast<T*>(to);
  if constexpr (std::is_floating_point_v<T>) {
    static const npy_intp kLast = most_by<T, largest, Stays::kLast>(loop), kFirst = most_by<T, largest, Stays::kFirst>(loop);
    if (cut.along.many > std::max(kLast, kFirst)) return false;
    cut.along.many <= kLast ? rows_of_floats<T, largest, Stays::kLast>(cut, from, out)
                            : rows_of_floats<T, largest, Stays::kFirst>(cut, from, out);
    rt::clear_all_raised();  // as NumPy's loop does
  } else {
    if (cut.along.many > kMostOfIntegers) return false;
    rows_of_integers<T, largest>(cut, from, out);
  }
  return true;
}

using Extremes = bool (*)(const numpy::InnerLoop&, const Cut&, const char*, char*);

template <bool largest>
Extremes extremes_for(DType dtype) {
  static constexpr auto kAll = numpy::by_dtype([]<DType dtype>() -> Extremes {
    if constexpr (dtype == DType::kBool)
      return nullptr;
    else
      return extremes<typename numpy::Element<dtype>::Type, largest>;
  });
  return kAll[static_cast<size_t>(dtype)];
}

}  // namespace

bool extremes_of_few(ArrayFn fn, DType dtype, const numpy::InnerLoop& loop, const Cut& cut, const char* from, char* to) {
  if (cut.behind.many != 1 || cut.rounds.many != 1 || cut.before.many < 2) return false;
  const Extremes of = fn == ArrayFn::maximum ? extremes_for<true>(dtype) : extremes_for<false>(dtype);
  return of && of(loop, cut, from, to);
}

}  // namespace dalsegno::replay
