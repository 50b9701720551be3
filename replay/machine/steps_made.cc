// Calls that make a small array out of numbers, of other arrays, or like one: at once, where a call of NumPy costs more than what it does.
// Where anything is not as expected, or a flag is up, the step is done as any other: nothing has happened yet.
#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "numpy/loops.h"
#include "replay/machine/array_operand.h"
#include "replay/machine/made.h"
#include "replay/machine/scalars.h"
#include "replay/machine/small_arrays.h"
#include "replay/memory/strided_copy.h"
#include "trace/recorder/facts.h"

namespace dalsegno::replay {
namespace {

constexpr npy_intp kMostMade = 8192;     // elements
constexpr npy_intp kInCache = 16 << 10;  // bytes

// ---- of numbers

struct Number {
  bool whole = false;
  int64_t i = 0;
  double f = 0;
};

bool number_of(PyObject* o, Number* out) {
  Reg value;
  if (PyFloat_CheckExact(o)) return out->f = PyFloat_AS_DOUBLE(o), true;
  if (unbox_numpy(Rep::kNpFloat64, o, &value)) return out->f = value.f, true;
  if (!PyLong_CheckExact(o)) return false;
  int overflow = 0;
  out->whole = true;
  out->i = PyLong_AsLongLongAndOverflow(o, &overflow);
  out->f = static_cast<double>(out->i);
  return overflow == 0;
}

std::span<PyObject* const> items_of(PyObject* o) {
  if (!PyList_CheckExact(o) && !PyTuple_CheckExact(o)) return {};
  return {PySequence_Fast_ITEMS(o), static_cast<size_t>(Py_SIZE(o))};
}

bool is_nested(PyObject* o) { return PyList_CheckExact(o) || PyTuple_CheckExact(o); }

// Are all items numbers? `whole`: they are ints, every one.
bool are_numbers(std::span<PyObject* const> items, bool* whole) {
  Number number;
  return std::all_of(items.begin(), items.end(), [&](PyObject* o) {
    number = {};
    const bool known = number_of(o, &number);
    *whole &= number.whole;
    return known;
  });
}

char* store_numbers(std::span<PyObject* const> items, DType dtype, char* to) {
  for (PyObject* o : items) {
    Number number;
    number_of(o, &number);
    if (dtype == DType::kInt64)
      std::memcpy(to, &number.i, sizeof number.i), to += sizeof number.i;
    else
      std::memcpy(to, &number.f, sizeof number.f), to += sizeof number.f;
  }
  return to;
}

// np.array() of a list of numbers, or of such lists: of ints it is one of int64, else one of doubles.
PyObject* of_numbers(const Step& s, const Reg* r) {
  const std::span<PyObject* const> outer = items_of(r[s.list[1]].o);
  if (outer.empty() || outer.size() > kMostMade) return nullptr;
  bool whole = true;
  const bool nested = is_nested(outer[0]);
  npy_intp shape[] = {static_cast<npy_intp>(outer.size()), nested ? static_cast<npy_intp>(Py_SIZE(outer[0])) : 1};
  if (shape[1] == 0 || shape[0] * shape[1] > kMostMade) return nullptr;
  if (!nested && !are_numbers(outer, &whole)) return nullptr;
  for (size_t k = 0; nested && k < outer.size(); ++k)
    if (!is_nested(outer[k]) || Py_SIZE(outer[k]) != shape[1] || !are_numbers(items_of(outer[k]), &whole)) return nullptr;
  const DType dtype = whole ? DType::kInt64 : DType::kFloat64;
  PyObject* made = new_array(dtype, nested ? 2 : 1, shape);
  if (!made) return nullptr;
  char* to = data_of(made);
  if (!nested) store_numbers(outer, dtype, to);
  for (size_t k = 0; nested && k < outer.size(); ++k) to = store_numbers(items_of(outer[k]), dtype, to);
  return made;
}

PyObject* identity(const Step& s, const Reg* r) {
  constexpr int64_t kMostRows = 64;
  PyObject* n = r[s.list[1]].o;
  Number rows;
  if (!PyLong_CheckExact(n) || !number_of(n, &rows) || rows.i < 1 || rows.i > kMostRows) return nullptr;
  npy_intp shape[] = {rows.i, rows.i};
  PyObject* made = new_array(DType::kFloat64, 2, shape);
  if (!made) return nullptr;
  auto* to = reinterpret_cast<double*>(data_of(made));
  std::fill_n(to, rows.i * rows.i, 0.0);
  for (int64_t i = 0; i < rows.i; ++i) to[i * (rows.i + 1)] = 1.0;
  return made;
}

// ---- of one number

// An int, or a tuple of ints, of some axes; no more than kMostMade elements, and at least one.
struct Shape {
  npy_intp extents[NPY_MAXDIMS];
  int rank = 0;
};
bool shape_of(PyObject* o, Shape* shape) {
  const bool tuple = PyTuple_CheckExact(o);
  const Py_ssize_t rank = tuple ? PyTuple_GET_SIZE(o) : 1;
  if (rank < 1 || rank > NPY_MAXDIMS) return false;
  npy_intp size = 1;
  for (Py_ssize_t d = 0; d < rank; ++d) {
    PyObject* part = tuple ? PyTuple_GET_ITEM(o, d) : o;
    Number extent;
    if (!PyLong_CheckExact(part) || !number_of(part, &extent) || extent.i < 1 || extent.i > kMostMade) return false;
    if ((size *= extent.i) > kMostMade) return false;
    shape->extents[shape->rank++] = extent.i;
  }
  return true;
}

template <class T>
PyObject* filled(DType dtype, const Shape& shape, T value) {
  PyObject* made = new_array(dtype, shape.rank, shape.extents);
  if (made) std::fill_n(reinterpret_cast<T*>(data_of(made)), PyArray_SIZE(reinterpret_cast<PyArrayObject*>(made)), value);
  return made;
}

PyObject* ones(const Step& s, const Reg* r) {
  Shape shape;
  return shape_of(r[s.list[1]].o, &shape) ? filled(DType::kFloat64, shape, 1.0) : nullptr;
}

PyObject* full(const Step& s, const Reg* r) {
  Shape shape;
  Number value;
  if (!shape_of(r[s.list[1]].o, &shape) || !number_of(r[s.list[2]].o, &value)) return nullptr;
  return value.whole ? filled(DType::kInt64, shape, value.i) : filled(DType::kFloat64, shape, value.f);
}

// Of ints, up to one or from one to the other.
PyObject* counted(const Step& s, const Reg* r) {
  Number from, to;
  if (s.n == 2) from.whole = true;
  if (s.n > 2 && !number_of(r[s.list[1]].o, &from)) return nullptr;
  if (!number_of(r[s.list[s.n - 1]].o, &to) || !from.whole || !to.whole) return nullptr;
  npy_intp n = 0;
  if (__builtin_sub_overflow(to.i, from.i, &n) || n < 1 || n > kMostMade) return nullptr;
  PyObject* made = new_array(DType::kInt64, 1, &n);
  if (!made) return nullptr;
  auto* at = reinterpret_cast<int64_t*>(data_of(made));
  for (npy_intp i = 0; i < n; ++i) at[i] = from.i + i;
  return made;
}

// ---- like another

// In C order, as it is.
PyObject* copied(const Step& s, const Reg* r) {
  ArrayFacts facts;
  PyArrayObject* a = dense_array(r[s.list[1]].o, &facts);
  if (!a || PyArray_SIZE(a) < 1 || PyArray_SIZE(a) > kMostMade) return nullptr;
  PyObject* made = new_array(PyArray_DESCR(a), facts.rank, PyArray_DIMS(a));
  if (made) copy_bytes(data_of(made), PyArray_BYTES(a), static_cast<size_t>(PyArray_NBYTES(a)));
  return made;
}

PyObject* like(const Step& s, const Reg* r, bool zeros) {
  DType dtype;
  PyArrayObject* a = small_operand(r[s.list[1]].o, &dtype);
  if (!a || PyArray_SIZE(a) > kMostMade) return nullptr;
  PyObject* made = PyArray_NewLikeArray(a, NPY_KEEPORDER, nullptr, 1);
  if (!made) return PyErr_Clear(), nullptr;
  if (zeros) std::memset(data_of(made), 0, static_cast<size_t>(PyArray_NBYTES(reinterpret_cast<PyArrayObject*>(made))));
  return made;
}
PyObject* zeros_like(const Step& s, const Reg* r) { return like(s, r, true); }
PyObject* empty_like(const Step& s, const Reg* r) { return like(s, r, false); }

// ---- of vectors

char* copy_vector(PyArrayObject* from, npy_intp first, npy_intp n, char* to) {
  const npy_intp item = PyArray_ITEMSIZE(from), stride = PyArray_STRIDE(from, 0);
  const char* at = PyArray_BYTES(from) + first * stride;
  if (stride == item) {
    copy_bytes(to, at, static_cast<size_t>(n * item));
  } else {
    for (npy_intp i = 0; i < n; ++i) std::memcpy(to + i * item, at + i * stride, static_cast<size_t>(item));
  }
  return to + n * item;
}

// Vectors of one dtype, and lists of numbers that it holds.
PyObject* joined(const Step& s, const Reg* r) {
  const std::span<PyObject* const> parts = items_of(r[s.list[1]].o);
  DType dtype = DType::kBool, other;
  npy_intp total = 0;
  for (PyObject* part : parts) {
    if (is_nested(part)) continue;
    PyArrayObject* a = small_operand(part, &other);
    if (!a || PyArray_NDIM(a) != 1 || (dtype != DType::kBool && dtype != other)) return nullptr;
    dtype = other;
  }
  if (dtype == DType::kBool) return nullptr;
  for (PyObject* part : parts) {
    bool whole = true;
    if (is_nested(part)) {
      const std::span<PyObject* const> items = items_of(part);
      if (items.empty() || !are_numbers(items, &whole) || (dtype != DType::kFloat64 && (dtype != DType::kInt64 || !whole))) return nullptr;
      total += static_cast<npy_intp>(items.size());
    } else {
      total += PyArray_DIM(reinterpret_cast<PyArrayObject*>(part), 0);
    }
    if (total > kMostMade) return nullptr;
  }
  PyObject* made = new_array(dtype, 1, &total);
  if (!made) return nullptr;
  char* to = data_of(made);
  for (PyObject* part : parts) {
    auto* a = reinterpret_cast<PyArrayObject*>(part);
    to = is_nested(part) ? store_numbers(items_of(part), dtype, to) : copy_vector(a, 0, PyArray_DIM(a, 0), to);
  }
  return made;
}

// ---- arrays side by side

constexpr int kMostJoinedRank = 4;

// Where the parts stand side by side: along `axis`, which `added` says is a new one.
struct Side {
  int axis;
  bool added;
};

// Arrays in C order of one dtype, which agree but along the axis. The result is in C order, too (PyArray_ConcatenateArrays: axes of one
// element decide nothing).
PyObject* side_by_side(std::span<PyObject* const> parts, Side side) {
  DType dtype = DType::kBool, other;
  npy_intp shape[kMostJoinedRank + 1], size = 0, before = 1;
  int rank = 0;
  for (PyObject* part : parts) {
    PyArrayObject* a = small_operand(part, &other);
    if (!a || !PyArray_IS_C_CONTIGUOUS(a)) return nullptr;
    if (part == parts[0]) {
      dtype = other, rank = PyArray_NDIM(a);
      if (rank < 1 || rank > kMostJoinedRank || side.axis < 0 || side.axis >= rank + side.added) return nullptr;
      std::copy_n(PyArray_DIMS(a), rank, shape);
    }
    if (dtype != other || PyArray_NDIM(a) != rank) return nullptr;
    for (int d = 0; d < rank; ++d)
      if ((side.added || d != side.axis) && PyArray_DIM(a, d) != shape[d]) return nullptr;
    size += PyArray_SIZE(a);
  }
  if (parts.empty() || size == 0 || size > kMostMade) return nullptr;
  for (int d = 0; d < side.axis; ++d) before *= shape[d];
  npy_intp along = static_cast<npy_intp>(parts.size());
  if (side.added) {
    std::copy_backward(shape + side.axis, shape + rank, shape + rank + 1);
  } else {
    along = 0;
    for (PyObject* part : parts) along += PyArray_DIM(reinterpret_cast<PyArrayObject*>(part), side.axis);
  }
  shape[side.axis] = along;
  PyObject* made = new_array(dtype, rank + side.added, shape);
  if (!made) return nullptr;
  const npy_intp row = size / before * dtype_size(dtype);
  // So many rows at a time that they stay in the cache while each part is put there.
  const npy_intp at_once = std::max<npy_intp>(1, kInCache / row);
  for (npy_intp first = 0; first < before; first += at_once) {
    const npy_intp rows = std::min(at_once, before - first);
    char* to = data_of(made) + first * row;
    for (PyObject* part : parts) {
      auto* a = reinterpret_cast<PyArrayObject*>(part);
      const npy_intp bytes = PyArray_NBYTES(a) / before;
      const char* from = PyArray_BYTES(a) + first * bytes;
      if (bytes == sizeof(int64_t)) {
        for (npy_intp k = 0; k < rows; ++k) std::memcpy(to + k * row, from + k * bytes, sizeof(int64_t));
      } else {
        for (npy_intp k = 0; k < rows; ++k) copy_bytes(to + k * row, from + k * bytes, static_cast<size_t>(bytes));
      }
      to += bytes;
    }
  }
  return made;
}

// -1: it is none of them. Null: the first one.
int axis_or_first(PyObject* which, int axes) { return which ? axis_of(which, axes) : 0; }

int rank_of_first(std::span<PyObject* const> parts) {
  PyObject* first = parts.empty() ? nullptr : parts[0];
  return first && PyArray_CheckExact(first) ? PyArray_NDIM(reinterpret_cast<PyArrayObject*>(first)) : 0;
}

PyObject* concatenated(const Step& s, const Reg* r) {
  const std::span<PyObject* const> parts = items_of(r[s.list[1]].o);
  PyObject* which = s.n > 2 ? r[s.list[2]].o : nullptr;
  if (!which && rank_of_first(parts) <= 1) return joined(s, r);
  return side_by_side(parts, {axis_or_first(which, rank_of_first(parts)), false});
}

PyObject* stacked(const Step& s, const Reg* r) {
  const std::span<PyObject* const> parts = items_of(r[s.list[1]].o);
  return side_by_side(parts, {axis_or_first(s.n > 2 ? r[s.list[2]].o : nullptr, rank_of_first(parts) + 1), true});
}

PyObject* in_rows(const Step& s, const Reg* r) {
  const std::span<PyObject* const> parts = items_of(r[s.list[1]].o);
  return side_by_side(parts, {0, rank_of_first(parts) == 1});
}

PyObject* in_a_row(const Step& s, const Reg* r) {
  const std::span<PyObject* const> parts = items_of(r[s.list[1]].o);
  return side_by_side(parts, {rank_of_first(parts) > 1, false});
}

PyObject* in_columns(const Step& s, const Reg* r) {
  const std::span<PyObject* const> parts = items_of(r[s.list[1]].o);
  return side_by_side(parts, {1, rank_of_first(parts) == 1});
}

// Of a vector. What np.roll() gives back is a view of what it has made, as it reshapes it at the end.
PyObject* rolled(const Step& s, const Reg* r) {
  DType dtype;
  PyArrayObject* a = small_operand(r[s.list[1]].o, &dtype);
  Number shift;
  if (!a || PyArray_NDIM(a) != 1 || !number_of(r[s.list[2]].o, &shift) || !shift.whole) return nullptr;
  npy_intp n = PyArray_DIM(a, 0);
  if (n < 1 || n > kMostMade) return nullptr;
  PyObject* made = new_array(PyArray_DESCR(a), 1, &n);
  if (!made) return nullptr;
  const npy_intp by = ((shift.i % n) + n) % n;
  copy_vector(a, 0, n - by, copy_vector(a, n - by, by, data_of(made)));
  PyArray_Dims shape{&n, 1};
  PyObject* view = PyArray_Newshape(reinterpret_cast<PyArrayObject*>(made), &shape, NPY_CORDER);
  Py_DECREF(made);
  if (!view) PyErr_Clear();
  return view;
}

// ---- rolled along axes

constexpr int kMostRolledRank = 4;
constexpr npy_intp kMostRolled = 1 << 20;  // elements

// How far along each axis: numbers, or tuples of them, which are broadcast.
bool find_shifts(PyObject* given, PyObject* axes, const npy_intp* shape, int rank, npy_intp* by) {
  const auto all = [](PyObject*& one) { return PyTuple_CheckExact(one) ? items_of(one) : std::span<PyObject* const>(&one, 1); };
  const std::span<PyObject*const> shifts = all(given), along = all(axes);
  const size_t n = std::max(shifts.size(), along.size());
  if (shifts.empty() || along.empty() || (shifts.size() != 1 && shifts.size() != n) || (along.size() != 1 && along.size() != n))
    return false;
  for (size_t k = 0; k < n; ++k) {
    Number shift;
    const int axis = axis_of(along[along.size() == 1 ? 0 : k], rank);
    if (axis < 0 || !number_of(shifts[shifts.size() == 1 ? 0 : k], &shift) || !shift.whole) return false;
    by[axis] = (by[axis] + shift.i % shape[axis] + shape[axis]) % shape[axis];
  }
  return true;
}

// The result is empty_like(): in C order, as what is rolled is.
PyObject* rolled_along(const Step& s, const Reg* r) {
  PyObject* o = r[s.list[1]].o;
  if (!o || !PyArray_CheckExact(o)) return nullptr;
  auto* a = reinterpret_cast<PyArrayObject*>(o);
  const int rank = PyArray_NDIM(a), kind = PyArray_TYPE(a);
  const npy_intp *shape = PyArray_DIMS(a), size = PyArray_SIZE(a);
  if (!(PyTypeNum_ISNUMBER(kind) || PyTypeNum_ISBOOL(kind)) || !PyArray_IS_C_CONTIGUOUS(a)) return nullptr;
  npy_intp by[kMostRolledRank] = {};
  if (rank < 1 || rank > kMostRolledRank || size < 1 || size > kMostRolled) return nullptr;
  if (!find_shifts(r[s.list[2]].o, r[s.list[3]].o, shape, rank, by)) return nullptr;
  PyObject* made = new_array(PyArray_DESCR(a), rank, shape);
  if (!made) return nullptr;
  copy_rolled(PyArray_BYTES(a), data_of(made), shape, by, rank, static_cast<size_t>(PyArray_ITEMSIZE(a)));
  return made;
}

// ---- outer products

const numpy::InnerLoop& product_loop(DType dtype) {
  static std::array<std::pair<bool, numpy::InnerLoop>, static_cast<size_t>(DType::kCount)> loops;
  auto& [known, loop] = loops[static_cast<size_t>(dtype)];
  if (!known) loop = numpy::inner_loop(ArrayFn::multiply, dtype, dtype), known = true;
  return loop;
}

// Of vectors of more than one element, a row at a time. Vectors that go downwards: NumPy may go through the result in another order.
PyObject* outer_product(const Step& s, const Reg* r) {
  PyObject *left = r[s.list[1]].o, *right = r[s.list[2]].o;
  DType dtype, other;
  PyArrayObject *a = small_operand(left, &dtype), *b = a ? small_operand(right, &other) : nullptr;
  if (!b || dtype != other || PyArray_NDIM(a) != 1 || PyArray_NDIM(b) != 1) return nullptr;
  npy_intp shape[] = {PyArray_DIM(a, 0), PyArray_DIM(b, 0)};
  if (shape[0] < 2 || shape[1] < 2 || PyArray_STRIDE(a, 0) < 0 || PyArray_STRIDE(b, 0) < 0) return nullptr;
  if (shape[0] > kMostMade || shape[1] > kMostMade || shape[0] * shape[1] > kMostMade) return nullptr;
  const numpy::InnerLoop& loop = product_loop(dtype);
  PyObject* made = loop.function ? new_array(PyArray_DESCR(a), 2, shape) : nullptr;
  if (!made) return nullptr;
  const npy_intp item = dtype_size(dtype), strides[] = {0, PyArray_STRIDE(b, 0), item};
  rt::clear_all_raised();
  for (npy_intp i = 0; i < shape[0]; ++i) {
    char* operands[] = {PyArray_BYTES(a) + i * PyArray_STRIDE(a, 0), PyArray_BYTES(b), data_of(made) + i * shape[1] * item};
    npy_intp n = shape[1];
    loop.function(operands, &n, strides, loop.data);
  }
  return unless_raised(made);
}

template <Make make>
const Step* step_make(const Step* s, Reg* r, Machine& m) {
  return made_or_called(make(*s, r), s, r, m);
}

struct Row {
  typed::Callee callee;
  int32_t n;  // operands, the callee among them; 0: any number of them, also by name
  StepFn step;
  const char* last = nullptr;  // the name by which its last argument may be given
};
constexpr Row kRows[] = {
    {typed::Callee::kArray, 2, step_make<of_numbers>},
    {typed::Callee::kEye, 2, step_make<identity>},
    {typed::Callee::kOnes, 2, step_make<ones>},
    {typed::Callee::kFull, 3, step_make<full>},
    {typed::Callee::kArange, 2, step_make<counted>},
    {typed::Callee::kArange, 3, step_make<counted>},
    {typed::Callee::kCopyMethod, 2, step_make<copied>},
    {typed::Callee::kZerosLike, 2, step_make<zeros_like>},
    {typed::Callee::kEmptyLike, 2, step_make<empty_like>},
    {typed::Callee::kConcatenate, 2, step_make<concatenated>},
    {typed::Callee::kConcatenate, 3, step_make<concatenated>, "axis"},
    {typed::Callee::kStack, 2, step_make<stacked>},
    {typed::Callee::kStack, 3, step_make<stacked>, "axis"},
    {typed::Callee::kVstack, 2, step_make<in_rows>},
    {typed::Callee::kHstack, 2, step_make<in_a_row>},
    {typed::Callee::kColumnStack, 2, step_make<in_columns>},
    {typed::Callee::kRoll, 3, step_make<rolled>},
    {typed::Callee::kRoll, 4, step_make<rolled_along>, "axis"},
    {typed::Callee::kOuter, 3, step_make<outer_product>},
    {typed::Callee::kCross, 3, step_make<crossed>},
    {typed::Callee::kSolve, 3, step_make<solved>},
    {typed::Callee::kDet, 2, step_make<determinant>},
    {typed::Callee::kInv, 2, step_make<inverse>},
    {typed::Callee::kWhere, 2, step_make<positions>},
    {typed::Callee::kNonzero, 2, step_make<positions>},
    {typed::Callee::kFlatnonzero, 2, step_make<flat_positions>},
    {typed::Callee::kHistogram, 0, step_make<histogram>},
    {typed::Callee::kSearchsorted, 3, step_make<searched>},
    {typed::Callee::kSearchsortedMethod, 3, step_make<searched>},
    {typed::Callee::kDigitize, 3, step_make<digitized>},
    {typed::Callee::kInterp, 4, step_make<interpolated>},
    {typed::Callee::kArgwhere, 2, step_make<position_per_row>},
    {typed::Callee::kMean, 2, step_make<mean_of_items>},
    {typed::Callee::kSum, 2, step_make<sum_of_items>},
    {typed::Callee::kLargest, 2, step_make<largest_item>},
    {typed::Callee::kLeast, 2, step_make<least_item>},
    {typed::Callee::kTrace, 2, step_make<trace_of>},
    {typed::Callee::kArrayEqual, 3, step_make<equal_vectors>},
    {typed::Callee::kMedian, 2, step_make<median>},
    {typed::Callee::kPtp, 2, step_make<peak_to_peak>},
    {typed::Callee::kProd, 2, step_make<product_of>},
    {typed::Callee::kSort, 2, step_make<sorted_copy>},
};

}  // namespace

StepFn making_step(typed::Callee callee, int32_t n, PyObject* names) {
  if (callee == typed::Callee::kHistogram && !knows_histogram()) return nullptr;
  const auto fits = [names](const Row& row) {
    if (!names || row.n == 0) return true;
    return row.last && PyTuple_GET_SIZE(names) == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), row.last) == 0;
  };
  for (const Row& row : kRows)
    if (row.callee == callee && (row.n == 0 || row.n == n) && fits(row)) return row.step;
  return nullptr;
}

}  // namespace dalsegno::replay
