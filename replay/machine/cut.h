// How NumPy goes through arrays as it reduces them along axes: what steps_along_axis.cc is made of. No GIL is needed.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

#include "numpy/dtypes.h"
#include "numpy/sums.h"
#include "replay/memory/added_rows.h"

namespace dalsegno::replay {

inline constexpr npy_intp kMostReduced = 1 << 30;  // elements

// Neighbouring axes that are reduced, the first and the last.
struct Span {
  int first = 0, last = 0;
  bool has(int axis) const { return axis >= first && axis <= last; }
  int count() const { return last - first + 1; }
};

// Axes that are walked through as one: how many elements, and how far apart in bytes.
struct Walk {
  npy_intp many = 1, step = 0;
  // One more axis around it, `stride` bytes apart. False: not evenly.
  bool widen(npy_intp extent, npy_intp stride) {
    if (many != 1 && stride != step * many) return false;
    if (many == 1) step = stride;
    many *= extent;
    return true;
  }
};

// An array as what lies before the axes that are reduced, along them, and behind them. What they do not walk through as one axis they
// do in rounds.
struct Cut {
  Walk before, rounds, along, behind;
  npy_intp reduced() const { return rounds.many * along.many; }
};

// Is every axis as far apart as the ones behind it are long, or farther, and does it go upwards? NumPy then goes through them in this
// order, and so lie the elements of the result. Axes before those that are reduced, and behind them, must be one each. (Where there is no
// gap, axes of one element may stand anywhere: they are as in any other array.)
inline bool cut_at(PyArrayObject* a, Span reduced, Cut* cut) {
  npy_intp least = PyArray_ITEMSIZE(a), dense = least, size = 1;
  bool gaps = false;
  for (int d = PyArray_NDIM(a) - 1; d >= 0; --d) {
    const npy_intp extent = PyArray_DIM(a, d), stride = PyArray_STRIDE(a, d);
    if (extent < 1 || extent > kMostReduced || stride < least) return false;
    if (d > reduced.last) {
      if (!cut->behind.widen(extent, stride)) return false;
    } else if (d < reduced.first) {
      if (!cut->before.widen(extent, stride)) return false;
    } else if (cut->rounds.many != 1 || !cut->along.widen(extent, stride)) {
      if (!cut->rounds.widen(extent, stride)) return false;
    }
    gaps |= stride != dense;
    if (gaps && extent == 1) return false;
    size *= extent, dense *= extent;
    if (size > kMostReduced) return false;
    least = stride * extent;
  }
  if (cut->behind.many == 1 && cut->rounds.many != 1) return false;  // NumPy copies it, and adds all of it as one
  return !gaps || cut->behind.many == 1 || cut->behind.step == PyArray_ITEMSIZE(a);
}

// Sums of few: an inner loop costs more to be called than what it adds. Below this, NumPy adds one after the other (pairwise_sum in
// numpy/_core/src/umath/loops_utils.h.src), and then what there was.
inline constexpr npy_intp kFew = 8;

template <class T>
bool sum_of_few(const Cut& cut, const char* from, char* to) {
  if (cut.rounds.many != 1) return false;
  const auto at = [](const char* p) { return *reinterpret_cast<const T*>(p); };
  T* sums = reinterpret_cast<T*>(to);
  if (cut.behind.many == 1 && cut.along.many < kFew) {
    for (npy_intp i = 0; i < cut.before.many; ++i, from += cut.before.step) {
      T sum = -T{0};
      for (npy_intp k = 0; k < cut.along.many; ++k) sum += at(from + k * cut.along.step);
      sums[i] = T{0} + sum;
    }
    return true;
  }
  if (cut.behind.many == 1 || cut.behind.many >= kFew) return false;
  for (npy_intp i = 0; i < cut.before.many; ++i, from += cut.before.step, sums += cut.behind.many) {
    T sum[kFew] = {};
    const char* row = from;
    for (npy_intp k = 0; k < cut.along.many; ++k, row += cut.along.step)
      for (npy_intp j = 0; j < cut.behind.many; ++j) sum[j] += at(row + j * cut.behind.step);
    std::copy_n(sum, cut.behind.many, sums);
  }
  return true;
}

// Sums of rows that are short, one added after the other as NumPy does: what has been added stays in registers.
inline constexpr npy_intp kShortRow = 512;  // bytes

template <class T>
bool sum_of_rows(const Cut& cut, const char* from, char* to) {
  constexpr npy_intp kItem = sizeof(T);
  const npy_intp n = cut.behind.many;
  if (n < kFew || n * kItem > kShortRow || cut.behind.step != kItem) return false;
  for (npy_intp i = 0; i < cut.before.many; ++i, from += cut.before.step, to += n * kItem)
    add_stepped_rows<T>({from, cut.along.many, cut.along.step, cut.rounds.many, cut.rounds.step}, to, n);
  return true;
}

// False: NumPy's loop has to be called.
template <class T>
bool sum_at_once(const Cut& cut, const char* from, char* to) {
  if (sum_of_few<T>(cut, from, to) || sum_of_rows<T>(cut, from, to)) return true;
  if constexpr (std::is_floating_point_v<T>) {
    if (cut.behind.many == 1 && cut.rounds.many == 1 && cut.along.step == sizeof(T))
      return numpy::sums_of_rows(from, cut.before.many, cut.before.step, cut.along.many, reinterpret_cast<T*>(to));
  }
  return false;
}

inline bool sum_at_once(DType dtype, const Cut& cut, const char* from, char* to) {
  switch (dtype) {
    case DType::kFloat64:
      return sum_at_once<double>(cut, from, to);
    case DType::kFloat32:
      return sum_at_once<float>(cut, from, to);
    case DType::kInt64:
      return sum_at_once<uint64_t>(cut, from, to);
    default:
      return false;
  }
}

// As a ufunc's reduce does it (numpy/_core/src/umath/reduction.c): the axes in the order of memory; along the innermost, one loop whose
// result is its first operand; along another, one of whole rows after the other. A sum begins with its identity, what has none with the
// first elements.
inline void reduce(const numpy::InnerLoop& loop, const Cut& cut, bool sums, const char* from, char* to, npy_intp item) {
  const npy_intp row = cut.behind.many * item;
  const bool inner = cut.behind.many == 1;
  const npy_intp strides[] = {inner ? 0 : item, inner ? cut.along.step : item, inner ? 0 : item};
  for (npy_intp i = 0; i < cut.before.many; ++i, from += cut.before.step, to += row) {
    if (sums)
      std::memset(to, 0, static_cast<size_t>(row));
    else
      std::memcpy(to, from, static_cast<size_t>(row));
    for (npy_intp round = 0; round < cut.rounds.many; ++round) {
      const npy_intp first = sums || round > 0 ? 0 : 1;
      npy_intp size = inner ? cut.along.many - first : cut.behind.many;
      for (npy_intp k = first; k < (inner ? first + 1 : cut.along.many) && size > 0; ++k) {
        char* operands[] = {to, const_cast<char*>(from) + round * cut.rounds.step + k * cut.along.step, to};
        loop.function(operands, &size, strides, loop.data);
      }
    }
  }
}

// Sums as means: the quotient of one and NumPy's 64-bit integer is a double, whatever the dtype (numpy/_core/_methods.py).
template <class T>
void divide(char* sums, npy_intp n, npy_intp by) {
  T* at = reinterpret_cast<T*>(sums);
  for (npy_intp i = 0; i < n; ++i) at[i] = static_cast<T>(static_cast<double>(at[i]) / static_cast<double>(by));
}

// As _var() and _std() of numpy/_core/_methods.py: the mean; what is left of each element beside it, squared; the mean of that.
template <class T>
class Spread {
 public:
  // ddof: by how much fewer than there are is divided.
  Spread(const numpy::InnerLoop& add, const Cut& cut, int64_t ddof, bool root) : add_(add), cut_(cut), ddof_(ddof), root_(root) {}

  // Memory of its own, which a thread without the GIL may take. False: there is none.
  bool run(const char* from, char* to) {
    const bool rows = cut_.behind.many == 1;
    const auto room = static_cast<size_t>(rows ? cut_.along.many : cut_.behind.many);
    const std::unique_ptr<T[]> memory(new (std::nothrow) T[room]);
    if (!memory) return false;
    Cut one = cut_;
    one.before.many = 1;
    T* out = reinterpret_cast<T*>(to);
    for (npy_intp i = 0; i < cut_.before.many; ++i, from += cut_.before.step, out += cut_.behind.many) {
      if (!sum_at_once<T>(one, from, reinterpret_cast<char*>(out))) reduce(add_, one, true, from, reinterpret_cast<char*>(out), sizeof(T));
      divide<T>(reinterpret_cast<char*>(out), cut_.behind.many, cut_.reduced());
      rows ? along_row(from, memory.get(), out) : along_columns(from, memory.get(), out);
      divide<T>(reinterpret_cast<char*>(out), cut_.behind.many, cut_.reduced() - ddof_);
      for (npy_intp k = 0; root_ && k < cut_.behind.many; ++k) out[k] = std::sqrt(out[k]);
    }
    return true;
  }

 private:
  void along_row(const char* from, T* squares, T* out) const {
    const T mean = *out;
    const npy_intp n = cut_.along.many, step = cut_.along.step;
    if (n >= kFew && step == sizeof(T) && numpy::sum_of_squares(reinterpret_cast<const T*>(from), n, mean, out)) return;
    for (npy_intp k = 0; k < n; ++k) {
      const T rest = *reinterpret_cast<const T*>(from + k * step) - mean;
      squares[k] = rest * rest;
    }
    Cut row;
    row.along = {n, sizeof(T)};
    if (!sum_at_once<T>(row, reinterpret_cast<const char*>(squares), reinterpret_cast<char*>(out)))
      reduce(add_, row, true, reinterpret_cast<const char*>(squares), reinterpret_cast<char*>(out), sizeof(T));
  }

  void along_columns(const char* from, T* means, T* out) const {
    const npy_intp n = cut_.behind.many;
    std::copy_n(out, n, means);
    std::fill_n(out, n, T{0});
    for (npy_intp round = 0; round < cut_.rounds.many; ++round) {
      for (npy_intp k = 0; k < cut_.along.many; ++k) {
        const char* row = from + round * cut_.rounds.step + k * cut_.along.step;
        for (npy_intp j = 0; j < n; ++j) {
          const T rest = *reinterpret_cast<const T*>(row + j * static_cast<npy_intp>(sizeof(T))) - means[j];
          out[j] += rest * rest;
        }
      }
    }
  }

  const numpy::InnerLoop& add_;
  const Cut& cut_;
  const int64_t ddof_;
  const bool root_;
};

}  // namespace dalsegno::replay
