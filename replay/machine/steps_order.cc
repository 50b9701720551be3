// Of short vectors, or of lists: np.median() (of more, too), np.ptp(), np.prod(), np.sort(), np.array_equal(), np.mean() and its like,
// which take NumPy some microseconds of Python around nanoseconds of work. Numbers in order are the same by whatever algorithm, unless they
// are zeros of two signs, or NaNs: then NumPy is asked.
#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>

#include "numpy/loops.h"
#include "numpy/sums.h"
#include "replay/machine/made.h"
#include "replay/machine/small_arrays.h"

namespace dalsegno::replay {
namespace {

constexpr npy_intp kMost = 256;  // elements; of more NumPy's own algorithms are as fast

PyArrayObject* short_vector(PyObject* o, std::initializer_list<DType> dtypes, DType* dtype) {
  PyArrayObject* a = operand_among(dtypes, o, dtype);
  return a && PyArray_NDIM(a) == 1 && PyArray_DIM(a, 0) > 0 && PyArray_DIM(a, 0) <= kMost ? a : nullptr;
}

template <class T>
void take_elements(PyArrayObject* a, T* to) {
  const char* from = PyArray_BYTES(a);
  for (npy_intp i = 0; i < PyArray_DIM(a, 0); ++i, from += PyArray_STRIDE(a, 0)) std::memcpy(to + i, from, sizeof(T));
}

bool has_negative_zero(const double* from, npy_intp n) {
  return std::any_of(from, from + n, [](double x) { return x == 0 && std::signbit(x); });
}
bool has_negative_zero(const int64_t*, npy_intp) { return false; }
bool has_nan(const double* from, npy_intp n) {
  return std::any_of(from, from + n, [](double x) { return x != x; });
}
bool has_nan(const int64_t*, npy_intp) { return false; }

// A copy of the elements, in any order.
template <class T>
class Elements {
 public:
  explicit Elements(PyArrayObject* a) : n_(PyArray_SIZE(a)) {
    if (n_ > kMost) more_.reset(new (std::nothrow) T[static_cast<size_t>(n_)]);
    if (!begin()) return;
    if (PyArray_NDIM(a) == 1)
      take_elements(a, begin());
    else
      std::memcpy(begin(), PyArray_BYTES(a), static_cast<size_t>(n_) * sizeof(T));
  }
  T* begin() { return n_ > kMost ? more_.get() : few_.data(); }  // null: there is no memory
  T* end() { return begin() + n_; }
  npy_intp size() const { return n_; }

 private:
  const npy_intp n_;
  std::array<T, kMost> few_;
  std::unique_ptr<T[]> more_;
};

// Of a list or tuple of floats alone, without NaNs.
struct Doubles {
  std::array<double, kMost> of;
  npy_intp n = 0;  // 0: it is something else

  Doubles() {}  // (`of` is as it is)
  // (np.asanyarray() makes an array of doubles of it.)
  static Doubles of_items(PyObject* o) {
    Doubles x;
    if ((!PyList_CheckExact(o) && !PyTuple_CheckExact(o)) || Py_SIZE(o) > kMost) return x;
    for (npy_intp k = 0; k < Py_SIZE(o); ++k) {
      PyObject* item = PySequence_Fast_GET_ITEM(o, k);
      if (!PyFloat_CheckExact(item)) return x;
      x.of[static_cast<size_t>(k)] = PyFloat_AS_DOUBLE(item);
    }
    if (!has_nan(x.of.data(), Py_SIZE(o))) x.n = Py_SIZE(o);
    return x;
  }
  const char* data() const { return reinterpret_cast<const char*>(of.data()); }
  double* end() { return of.data() + n; }
};

// As np.add.reduce() does.
bool add_up(const char* from, npy_intp n, npy_intp stride, double* sum) {
  static const numpy::InnerLoop add = numpy::reducing_loop(ArrayFn::add, DType::kFloat64);
  if (!add.function) return false;
  *sum = 0;
  auto* to = reinterpret_cast<char*>(sum);
  char* operands[] = {to, const_cast<char*>(from), to};
  const npy_intp strides[] = {0, stride, 0};
  add.function(operands, &n, strides, add.data);
  return true;
}

template <class T>
bool same_elements(PyArrayObject* a, PyArrayObject* b) {
  std::array<T, kMost> one, other;
  const npy_intp n = PyArray_DIM(a, 0);
  if (n != PyArray_DIM(b, 0)) return false;
  take_elements(a, one.data()), take_elements(b, other.data());
  return std::equal(one.data(), one.data() + n, other.data());
}

// Neither zero, whose sign is not known, nor anything that a flag comes with.
PyObject* unless_special(double number) {
  rt::clear_all_raised();
  return std::isnormal(number) ? new_double(number) : nullptr;
}

template <class T>
PyObject* sorted_elements(PyArrayObject* a) {
  PyObject* made = new_array(PyArray_DESCR(a), 1, PyArray_DIMS(a));
  if (!made) return PyErr_Clear(), nullptr;
  auto* to = reinterpret_cast<T*>(data_of(made));
  const npy_intp n = PyArray_DIM(a, 0);
  take_elements(a, to);
  if (has_nan(to, n) || has_negative_zero(to, n)) return Py_DECREF(made), nullptr;
  std::sort(to, to + n);
  return made;
}

}  // namespace

// (NumPy: array_equal of numpy/_core/numeric.py)
PyObject* equal_vectors(const Step& s, const Reg* r) {
  DType one, other;
  PyArrayObject *a = short_vector(r[s.list[1]].o, {DType::kFloat64, DType::kInt64}, &one),
                *b = short_vector(r[s.list[2]].o, {DType::kFloat64, DType::kInt64}, &other);
  if (!a || !b || one != other) return nullptr;
  const bool equal = one == DType::kFloat64 ? same_elements<double>(a, b) : same_elements<int64_t>(a, b);
  rt::clear_all_raised();
  return PyBool_FromLong(equal);
}

// The sum of a matrix's diagonal.
PyObject* trace_of(const Step& s, const Reg* r) {
  DType dtype;
  PyArrayObject* a = operand_among({DType::kFloat64}, r[s.list[1]].o, &dtype);
  if (!a || PyArray_NDIM(a) != 2) return nullptr;
  const npy_intp n = std::min(PyArray_DIM(a, 0), PyArray_DIM(a, 1));
  double sum;
  return n > 0 && n <= kMost && add_up(PyArray_BYTES(a), n, PyArray_STRIDE(a, 0) + PyArray_STRIDE(a, 1), &sum) ? unless_special(sum)
                                                                                                               : nullptr;
}

PyObject* mean_of_items(const Step& s, const Reg* r) {
  const Doubles x = Doubles::of_items(r[s.list[1]].o);
  double sum;
  return x.n > 0 && add_up(x.data(), x.n, sizeof(double), &sum) ? unless_special(sum / static_cast<double>(x.n)) : nullptr;
}

PyObject* sum_of_items(const Step& s, const Reg* r) {
  const Doubles x = Doubles::of_items(r[s.list[1]].o);
  double sum;
  return x.n > 0 && add_up(x.data(), x.n, sizeof(double), &sum) ? unless_special(sum) : nullptr;
}

PyObject* largest_item(const Step& s, const Reg* r) {
  Doubles x = Doubles::of_items(r[s.list[1]].o);
  return x.n > 0 ? unless_special(*std::max_element(x.of.data(), x.end())) : nullptr;
}

PyObject* least_item(const Step& s, const Reg* r) {
  Doubles x = Doubles::of_items(r[s.list[1]].o);
  return x.n > 0 ? unless_special(*std::min_element(x.of.data(), x.end())) : nullptr;
}

namespace {

constexpr npy_intp kMostToSelect = 32768;  // elements: of more, what NumPy's Python code takes is little

// False: there is a NaN, or no memory.
template <class T>
bool median_of(PyArrayObject* a, double* median) {
  Elements<T> x(a);
  if (!x.begin() || has_nan(x.begin(), x.size())) return false;
  T* middle = x.begin() + x.size() / 2;
  std::nth_element(x.begin(), middle, x.end());
  *median = static_cast<double>(*middle);
  if (x.size() % 2 == 0) *median = (static_cast<double>(*std::max_element(x.begin(), middle)) + *median) / 2;
  return true;
}

}  // namespace

// The mean of the one or two in the middle of all. (NumPy: _median of numpy/lib/_function_base_impl.py)
PyObject* median(const Step& s, const Reg* r) {
  DType dtype;
  PyArrayObject* a = operand_among({DType::kFloat64, DType::kInt64}, r[s.list[1]].o, &dtype);
  if (!a || PyArray_NDIM(a) == 0 || PyArray_SIZE(a) == 0 || PyArray_SIZE(a) > kMostToSelect) return nullptr;
  if (PyArray_NDIM(a) > 1 && !PyArray_IS_C_CONTIGUOUS(a) && !PyArray_IS_F_CONTIGUOUS(a)) return nullptr;
  double number;
  if (dtype == DType::kInt64) return median_of<int64_t>(a, &number) ? new_double(number) : nullptr;
  return median_of<double>(a, &number) ? unless_special(number) : nullptr;
}

// (NumPy: _ptp of numpy/_core/_methods.py)
PyObject* peak_to_peak(const Step& s, const Reg* r) {
  DType dtype;
  PyArrayObject* a = short_vector(r[s.list[1]].o, {DType::kFloat64}, &dtype);
  if (!a) return nullptr;
  Elements<double> x(a);
  if (has_nan(x.begin(), x.size())) return nullptr;
  const auto [least, most] = std::minmax_element(x.begin(), x.end());
  return unless_special(*most - *least);
}

PyObject* product_of(const Step& s, const Reg* r) {
  static const numpy::InnerLoop loop = numpy::inner_loop(ArrayFn::multiply, DType::kFloat64, DType::kFloat64);
  DType dtype;
  PyArrayObject* a = short_vector(r[s.list[1]].o, {DType::kFloat64}, &dtype);
  if (!loop.function || !a || PyArray_STRIDE(a, 0) <= 0) return nullptr;
  double made;
  std::memcpy(&made, PyArray_BYTES(a), sizeof made);
  auto* to = reinterpret_cast<char*>(&made);
  char* operands[] = {to, PyArray_BYTES(a) + PyArray_STRIDE(a, 0), to};
  const npy_intp rest = PyArray_DIM(a, 0) - 1, strides[] = {0, PyArray_STRIDE(a, 0), 0};
  rt::clear_all_raised();
  if (rest > 0) loop.function(operands, &rest, strides, loop.data);
  const int raised = rt::all_raised();
  return raised == 0 || numpy::errstate_ignores(raised) ? new_double(made) : nullptr;
}

PyObject* sorted_copy(const Step& s, const Reg* r) {
  DType dtype;
  PyArrayObject* a = short_vector(r[s.list[1]].o, {DType::kFloat64, DType::kInt64}, &dtype);
  if (!a) return nullptr;
  return dtype == DType::kFloat64 ? sorted_elements<double>(a) : sorted_elements<int64_t>(a);
}

}  // namespace dalsegno::replay
