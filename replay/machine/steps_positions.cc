// Where a mask is true, as NumPy's nonzero() says it (item_selection.c): without a branch for each element.
#include <algorithm>
#include <array>
#include <numeric>

#include "replay/machine/array_operand.h"
#include "replay/machine/made.h"
#include "replay/machine/small_arrays.h"
#include "replay/masks/stretches.h"

namespace dalsegno::replay {
namespace {

constexpr int kMostAxes = 2;

// A mask without gaps, and how often it is true. Null: it is none, or not known, or never true.
PyArrayObject* mask_of(PyObject* o, npy_intp* count) {
  ArrayFacts facts;
  PyArrayObject* mask = dense_array(o, &facts);
  if (!mask || facts.dtype != DType::kBool || facts.rank < 1 || facts.rank > kMostAxes) return nullptr;
  bool odd = false;
  *count = masks::count({PyArray_BYTES(mask), 1, PyArray_SIZE(mask)}, &odd);
  return odd || *count == 0 ? nullptr : mask;
}

// Where the numbers of one axis after the other go.
struct Positions {
  int64_t* to[kMostAxes];
  npy_intp step;  // numbers
};

// Where a row is true: at most `left` times, the others stay 0. (Another thread may change the mask meanwhile.)
template <class Take>
npy_intp find_in_row(const char* row, npy_intp n, npy_intp left, Take take) {
  constexpr npy_intp kPiece = 1024;
  static const auto kNumbers = [] {
    std::array<int64_t, kPiece> numbers{};
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  }();
  std::array<int64_t, kPiece> found;
  npy_intp all = 0;
  for (npy_intp at = 0; at < n && all < left; at += kPiece) {
    const npy_intp size = std::min(kPiece, n - at);
    const masks::Items numbers{const_cast<char*>(reinterpret_cast<const char*>(kNumbers.data())), sizeof(int64_t)};
    const int64_t count =
        masks::take({row + at, 1, size}, sizeof(int64_t), numbers, reinterpret_cast<char*>(found.data()), std::min(size, left - all));
    take(found.data(), count, at);
    all += count;
  }
  return all;
}

void find(PyArrayObject* mask, Positions out, npy_intp left) {
  const bool flat = PyArray_NDIM(mask) == 1;
  const npy_intp rows = flat ? 1 : PyArray_DIM(mask, 0), n = PyArray_DIM(mask, flat ? 0 : 1);
  int64_t *row_to = out.to[0], *to = out.to[1];
  for (npy_intp row = 0; row < rows && left > 0; ++row)
    left -= find_in_row(PyArray_BYTES(mask) + row * n, n, left, [&](const int64_t* found, int64_t count, npy_intp first) {
      for (int64_t k = 0; k < count; ++k) {
        if (!flat) row_to[k * out.step] = row;
        to[k * out.step] = first + found[k];
      }
      row_to += count * out.step, to += count * out.step;
    });
  for (; left > 0; --left, row_to += out.step, to += out.step) *row_to = *to = 0;
}

// The positions beside one another, a row for each.
PyObject* rows_of(PyObject* o, npy_intp* count, int* rank) {
  PyArrayObject* mask = mask_of(o, count);
  if (!mask) return nullptr;
  *rank = PyArray_NDIM(mask);
  const npy_intp shape[] = {*count, *rank};
  PyObject* made = new_array(DType::kInt64, 2, shape);
  if (!made) return nullptr;
  auto* to = reinterpret_cast<int64_t*>(data_of(made));
  find(mask, {{to, to + *rank - 1}, *rank}, *count);
  return made;
}

// A column of them, which it keeps.
PyObject* column(PyObject* rows, npy_intp count, int rank, int k) {
  constexpr npy_intp kItem = sizeof(int64_t);
  return new_view(rows, DType::kInt64, count, rank * kItem, k * kItem);
}

}  // namespace

PyObject* positions(const Step& s, const Reg* r) {
  npy_intp count;
  int rank;
  PyObject* rows = rows_of(r[s.list[1]].o, &count, &rank);
  PyObject* made = rows ? PyTuple_New(rank) : nullptr;
  for (int k = 0; made && k < rank; ++k) {
    PyObject* one = column(rows, count, rank, k);
    if (one)
      PyTuple_SET_ITEM(made, k, one);
    else
      Py_CLEAR(made);
  }
  Py_XDECREF(rows);
  PyErr_Clear();
  return made;
}

PyObject* flat_positions(const Step& s, const Reg* r) {
  npy_intp count;
  int rank;
  PyObject* o = r[s.list[1]].o;
  if (!PyArray_CheckExact(o) || PyArray_NDIM(reinterpret_cast<PyArrayObject*>(o)) != 1) return nullptr;
  PyObject* rows = rows_of(o, &count, &rank);
  PyObject* made = rows ? column(rows, count, rank, 0) : nullptr;
  Py_XDECREF(rows);
  PyErr_Clear();
  return made;
}

PyObject* position_per_row(const Step& s, const Reg* r) {
  npy_intp count;
  PyArrayObject* mask = mask_of(r[s.list[1]].o, &count);
  if (!mask) return nullptr;
  const npy_intp shape[] = {PyArray_NDIM(mask), count};
  PyObject* columns = new_array(DType::kInt64, 2, shape);
  if (!columns) return nullptr;
  auto* to = reinterpret_cast<int64_t*>(data_of(columns));
  find(mask, {{to, to + (shape[0] - 1) * count}, 1}, count);
  PyObject* made = PyArray_Transpose(reinterpret_cast<PyArrayObject*>(columns), nullptr);
  Py_DECREF(columns);
  PyErr_Clear();
  return made;
}

}  // namespace dalsegno::replay
