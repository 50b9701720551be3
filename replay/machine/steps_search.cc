// Positions in sorted vectors, and what lies on lines between points of them: np.searchsorted(), np.digitize(), np.interp(). Several
// searches go on side by side, without a branch, so that none waits for another. In a sorted vector there is but one answer; where it is
// not sorted, or has a NaN, NumPy is asked.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>

#include "halide_gen/runtime/flags.h"
#include "replay/machine/array_operand.h"
#include "replay/machine/made.h"
#include "replay/machine/small_arrays.h"

namespace dalsegno::replay {
namespace {

constexpr npy_intp kSides = 8;

// Of kSides keys: how many elements are less than each (`equals`: or equal to it).
template <bool equals, class T>
void search(const T* sorted, npy_intp n, const T* keys, npy_intp* found) {
  std::array<npy_intp, kSides> at{};
  const auto before = [&](size_t k, npy_intp i) { return equals ? npy_intp{sorted[i] <= keys[k]} : npy_intp{sorted[i] < keys[k]}; };
  for (npy_intp left = n; left > 1;) {
    const npy_intp half = left / 2;
    for (size_t k = 0; k < kSides; ++k) at[k] += -before(k, at[k] + half - 1) & half;
    left -= half;
  }
  for (size_t k = 0; k < kSides; ++k) found[k] = at[k] + before(k, at[k]);
}

// (A NaN is neither.)
template <class T>
bool is_sorted(const T* from, npy_intp n) {
  bool sorted = n == 0 || from[0] == from[0];
  for (npy_intp i = 1; i < n; ++i) sorted &= from[i - 1] <= from[i];
  return sorted;
}

// Calls take(number of the first key, how many, what was found) for all of them.
template <bool equals, class T, class Take>
void each_found(const T* sorted, npy_intp n, const T* keys, npy_intp many, Take take) {
  std::array<npy_intp, kSides> found;
  std::array<T, kSides> last{};
  npy_intp i = 0;
  if (is_sorted(keys, many)) {  // one walk
    npy_intp at = 0;
    for (; i < many; ++i) {
      while (at < n && (equals ? sorted[at] <= keys[i] : sorted[at] < keys[i])) ++at;
      take(i, 1, &at);
    }
    return;
  }
  for (; i + kSides <= many; i += kSides) search<equals>(sorted, n, keys + i, found.data()), take(i, kSides, found.data());
  if (i == many) return;
  std::copy_n(keys + i, many - i, last.data());
  search<equals>(sorted, n, last.data(), found.data());
  take(i, many - i, found.data());
}

PyArrayObject* keys_of(PyObject* o, DType dtype) {
  ArrayFacts facts;
  PyArrayObject* a = dense_array(o, &facts);
  return a && facts.dtype == dtype && facts.rank > 0 ? a : nullptr;
}

PyArrayObject* vector_of(PyObject* o, DType dtype) {
  PyArrayObject* a = keys_of(o, dtype);
  return a && PyArray_NDIM(a) == 1 ? a : nullptr;
}

template <class T>
const T* elements(PyArrayObject* a) {
  return reinterpret_cast<const T*>(PyArray_BYTES(a));
}

// It pays to look whether the vector is sorted.
bool pays(PyArrayObject* sorted, PyArrayObject* keys) { return PyArray_SIZE(sorted) > 0 && PyArray_SIZE(sorted) <= 4 * PyArray_SIZE(keys); }

template <bool equals, DType dtype>
PyObject* positions_in(PyObject* vector, PyObject* wanted) {
  using T = typename numpy::Element<dtype>::Type;
  PyArrayObject *sorted = vector_of(vector, dtype), *keys = sorted ? keys_of(wanted, dtype) : nullptr;
  if (!keys || !pays(sorted, keys) || !is_sorted(elements<T>(sorted), PyArray_SIZE(sorted))) return nullptr;
  PyObject* made = new_array(DType::kInt64, PyArray_NDIM(keys), PyArray_DIMS(keys));
  if (!made) return nullptr;
  auto* to = reinterpret_cast<int64_t*>(data_of(made));
  const T* all = elements<T>(keys);
  const npy_intp n = PyArray_SIZE(sorted);
  each_found<equals>(elements<T>(sorted), n, all, PyArray_SIZE(keys), [&](npy_intp first, npy_intp many, const npy_intp* found) {
    for (npy_intp k = 0; k < many; ++k) to[first + k] = all[first + k] == all[first + k] ? found[k] : n;  // a NaN stands behind all
  });
  rt::clear_all_raised();
  return made;
}

template <bool equals>
PyObject* positions_in(PyObject* vector, PyObject* wanted) {
  PyObject* made = positions_in<equals, DType::kFloat64>(vector, wanted);
  return made ? made : positions_in<equals, DType::kInt64>(vector, wanted);
}

// As arr_interp() of numpy/_core/src/multiarray/compiled_base.c.
struct Line {
  const double *x, *y, *slopes;  // slopes: of the lines from each point to the next; null: there are too many
  npy_intp n;
  double slope(npy_intp j) const { return slopes ? slopes[j] : (y[j + 1] - y[j]) / (x[j + 1] - x[j]); }
  double at(double key, npy_intp found) const {
    const npy_intp j = found - 1;  // the last point that is not behind it
    if (j < 0) return y[0];
    if (j == n - 1 || x[j] == key) return y[j];
    const double s = slope(j);
    double made = s * (key - x[j]) + y[j];
    if (std::isnan(made)) {
      made = s * (key - x[j + 1]) + y[j + 1];
      if (std::isnan(made) && y[j] == y[j + 1]) made = y[j];
    }
    return made;
  }
};

constexpr npy_intp kMostForOne = 256;  // points that are looked through for one number

// At one number: a number.
PyObject* interpolated_at(double key, PyArrayObject* x, PyArrayObject* y) {
  const npy_intp n = x && y && PyArray_SIZE(x) == PyArray_SIZE(y) ? PyArray_SIZE(x) : 0;
  if (n < 2 || n > kMostForOne) return nullptr;
  const Line line{elements<double>(x), elements<double>(y), nullptr, n};
  if (!is_sorted(line.x, n)) return nullptr;
  const double made = std::isnan(key) ? key : line.at(key, std::upper_bound(line.x, line.x + n, key) - line.x);
  rt::clear_all_raised();
  return new_double(made);
}

}  // namespace

PyObject* searched(const Step& s, const Reg* r) { return positions_in<false>(r[s.list[1]].o, r[s.list[2]].o); }

PyObject* digitized(const Step& s, const Reg* r) { return positions_in<true>(r[s.list[2]].o, r[s.list[1]].o); }

PyObject* interpolated(const Step& s, const Reg* r) {
  PyObject* wanted = r[s.list[1]].o;
  PyArrayObject *x = vector_of(r[s.list[2]].o, DType::kFloat64), *y = vector_of(r[s.list[3]].o, DType::kFloat64);
  if (PyFloat_CheckExact(wanted) || Py_IS_TYPE(wanted, &PyDoubleArrType_Type)) return interpolated_at(PyFloat_AS_DOUBLE(wanted), x, y);
  PyArrayObject* keys = keys_of(wanted, DType::kFloat64);
  if (!keys || !x || !y || PyArray_SIZE(x) != PyArray_SIZE(y) || PyArray_SIZE(x) < 2 || !pays(x, keys)) return nullptr;
  const npy_intp n = PyArray_SIZE(x), many = PyArray_SIZE(keys);
  Line line{elements<double>(x), elements<double>(y), nullptr, n};
  if (!is_sorted(line.x, n)) return nullptr;
  std::unique_ptr<double[]> slopes;
  rt::clear_all_raised();
  if (n <= many) {
    slopes.reset(new (std::nothrow) double[static_cast<size_t>(n)]);
    if (!slopes) return nullptr;
    for (npy_intp j = 0; j + 1 < n; ++j) slopes[static_cast<size_t>(j)] = line.slope(j);
    line.slopes = slopes.get();
  }
  PyObject* made = new_array(DType::kFloat64, PyArray_NDIM(keys), PyArray_DIMS(keys));
  if (!made) return nullptr;
  auto* to = reinterpret_cast<double*>(data_of(made));
  const auto* all = elements<double>(keys);
  each_found<true>(line.x, n, all, many, [&](npy_intp first, npy_intp count, const npy_intp* found) {
    for (npy_intp k = 0; k < count; ++k) {
      const double key = all[first + k];
      to[first + k] = std::isnan(key) ? key : line.at(key, found[k]);
    }
  });
  rt::clear_all_raised();  // NumPy looks at none
  return made;
}

}  // namespace dalsegno::replay
