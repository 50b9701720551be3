// Elements, or rows, at positions: a[positions]. As NumPy does it for one array of positions (mapiter_trivial_get and mapiter_get in
// numpy/_core/src/multiarray/lowlevel_strided_loops.c.src), all bounds looked at first.
#include <algorithm>
#include <cstring>

#include "replay/machine/array_operand.h"
#include "replay/machine/scalars.h"
#include "replay/machine/small_arrays.h"
#include "replay/machine/vectors.h"

namespace dalsegno::replay {
namespace {

// Of all positions: is none out of bounds, is one negative? (By signs of differences, which the compiler can look at in vectors.)
struct Looked {
  bool inside, negative;
};

template <class Position>
Looked look_at(const char* at, npy_intp n, npy_intp stride, npy_intp size) {
  uint64_t outside = 0, all = 0;
  for (npy_intp k = 0; k < n; ++k) {
    const auto p = static_cast<uint64_t>(numpy::element_at<Position>(at + k * stride));
    outside |= (static_cast<uint64_t>(size) - 1 - p) | (p + static_cast<uint64_t>(size));
    all |= p;
  }
  return {n == 0 || static_cast<int64_t>(outside) >= 0, static_cast<int64_t>(all) < 0};
}

// `behind`: what is added to a negative position; 0: there is none.
template <class Position, class Item>
void take(const char* x, npy_intp step, const char* at, npy_intp n, npy_intp stride, npy_intp behind, char* out) {
  for (npy_intp k = 0; k < n; ++k) {
    auto p = static_cast<npy_intp>(numpy::element_at<Position>(at + k * stride));
    p += p < 0 ? behind : 0;
    std::memcpy(out + k * static_cast<npy_intp>(sizeof(Item)), x + p * step, sizeof(Item));
  }
}

// False: a position is out of bounds.
template <class Position, class Item>
bool gather_as(const Vector& x, const Vector& at, char* out) {
  constexpr npy_intp kPosition = sizeof(Position), kItem = sizeof(Item);
  const bool dense = at.stride == kPosition;  // loops of their own
  const Looked looked =
      dense ? look_at<Position>(at.data, at.size, kPosition, x.size) : look_at<Position>(at.data, at.size, at.stride, x.size);
  if (!looked.inside) return false;
  if (dense && !looked.negative && x.stride == kItem)
    take<Position, Item>(x.data, kItem, at.data, at.size, kPosition, 0, out);
  else
    take<Position, Item>(x.data, x.stride, at.data, at.size, at.stride, x.size, out);
  return true;
}

template <DType dtype>
bool gather(const Vector& x, const Vector& at, char* out, int size) {
  using T = typename numpy::Element<dtype>::Type;
  if (size == 1) return gather_as<T, uint8_t>(x, at, out);
  if (size == 2) return gather_as<T, uint16_t>(x, at, out);
  if (size == 16) return gather_as<T, npy_cdouble>(x, at, out);
  return size == 4 ? gather_as<T, uint32_t>(x, at, out) : gather_as<T, uint64_t>(x, at, out);
}

constexpr auto kGathers = numpy::by_dtype([]<DType dtype>() { return gather<dtype>; });

// Rows of `size` bytes, without a gap. known: their size, or 0.
template <class Position, npy_intp known>
void take_rows(const char* x, npy_intp rows, npy_intp size, const Vector& at, char* out) {
  const npy_intp n = known != 0 ? known : size;
  for (npy_intp k = 0; k < at.size; ++k, out += n) {
    auto p = static_cast<npy_intp>(numpy::element_at<Position>(at.data + k * at.stride));
    p += p < 0 ? rows : 0;
    std::memcpy(out, x + p * n, static_cast<size_t>(n));
  }
}

template <DType dtype>
bool gather_rows(const char* x, npy_intp rows, npy_intp size, const Vector& at, char* out) {
  using T = typename numpy::Element<dtype>::Type;
  if (!look_at<T>(at.data, at.size, at.stride, rows).inside) return false;
  switch (size) {
    case 2 * sizeof(double):
      return take_rows<T, 2 * sizeof(double)>(x, rows, size, at, out), true;
    case 3 * sizeof(double):
      return take_rows<T, 3 * sizeof(double)>(x, rows, size, at, out), true;
    case 4 * sizeof(double):
      return take_rows<T, 4 * sizeof(double)>(x, rows, size, at, out), true;
    case 8 * sizeof(double):
      return take_rows<T, 8 * sizeof(double)>(x, rows, size, at, out), true;
    default:
      return take_rows<T, 0>(x, rows, size, at, out), true;
  }
}

constexpr auto kRowGathers = numpy::by_dtype([]<DType dtype>() { return gather_rows<dtype>; });

// Of an array in C order: what stands at each position is one row, or what has more axes.
PyObject* gathered_rows(PyArrayObject* a, const ArrayFacts& of, PyArrayObject* p, const ArrayFacts& at) {
  constexpr int kMostAxes = 8;
  if (!PyArray_IS_C_CONTIGUOUS(a) || of.rank + at.rank - 1 > kMostAxes || PyArray_SIZE(a) == 0 || PyArray_SIZE(p) == 0) return nullptr;
  npy_intp shape[kMostAxes];
  std::copy_n(PyArray_DIMS(p), at.rank, shape);
  std::copy_n(PyArray_DIMS(a) + 1, of.rank - 1, shape + at.rank);
  PyObject* made = new_array(handed_on(PyArray_DESCR(a), of.dtype), at.rank + of.rank - 1, shape);
  const npy_intp rows = PyArray_DIM(a, 0), size = PyArray_NBYTES(a) / rows;
  const Vector all{PyArray_BYTES(p), PyArray_SIZE(p), PyArray_ITEMSIZE(p)};
  if (made && !kRowGathers[static_cast<size_t>(at.dtype)](PyArray_BYTES(a), rows, size, all, data_of(made))) Py_CLEAR(made);
  return made;
}

// Null: it is done by NumPy.
PyObject* gathered(PyObject* object, PyObject* positions) {
  ArrayFacts of, at;
  PyArrayObject* p = dense_array(positions, &at);
  if (!p || !object || !numpy::facts_of(object, &of) || of.rank < 1 || at.rank < 1) return nullptr;
  if (!holds_positions(at.dtype)) return nullptr;
  if (of.rank > 1) {
    PyArrayObject* rows = plain_array(object, of);
    return rows ? gathered_rows(rows, of, p, at) : nullptr;
  }
  PyArrayObject* a = plain_array(object, of);
  if (!a) return nullptr;
  const Vector x{PyArray_BYTES(a), PyArray_DIM(a, 0), PyArray_STRIDE(a, 0)}, all{PyArray_BYTES(p), PyArray_SIZE(p), PyArray_ITEMSIZE(p)};
  PyObject* made = new_array(handed_on(PyArray_DESCR(a), of.dtype), at.rank, PyArray_DIMS(p));
  if (made && !kGathers[static_cast<size_t>(at.dtype)](x, all, data_of(made), dtype_size(of.dtype))) Py_CLEAR(made);
  return made;
}

}  // namespace

const Step* step_gather_many(const Step* s, Reg* r, Machine& m) { return made_or_got(gathered(r[s->a].o, r[s->b].o), s, r, m); }

const Step* step_gather(const Step* s, Reg* r, Machine& m) {
  const auto dtype = static_cast<DType>(s->n), position = static_cast<DType>(s->imm);
  Vector x, at;
  if (!vector_of(s->a < 0 ? nullptr : r[s->a].o, s->list[0], r, dtype, &x) ||
      !vector_of(s->b < 0 ? nullptr : r[s->b].o, s->list[1], r, position, &at)) [[unlikely]]
    return refuse(m, s->exit);
  auto* of = reinterpret_cast<PyArrayObject*>(r[s->other].o);
  PyObject* made = new_array(handed_on(PyArray_DESCR(of), dtype), 1, &at.size);
  if (!made || !kGathers[static_cast<size_t>(position)](x, at, data_of(made), dtype_size(dtype))) [[unlikely]] {
    Py_XDECREF(made);
    return refuse(m, s->exit);
  }
  r[s->dst].o = made;
  return go_on(s + 1, r, m);
}

}  // namespace dalsegno::replay
