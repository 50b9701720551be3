// Elements at positions: a[positions], of one axis. As NumPy does it for one array of positions (mapiter_trivial_get in
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

// Null: it is done by NumPy.
PyObject* gathered(PyObject* object, PyObject* positions) {
  ArrayFacts of, at;
  PyArrayObject* p = dense_array(positions, &at);
  if (!p || !object || !numpy::facts_of(object, &of) || of.rank != 1) return nullptr;
  if (at.dtype == DType::kBool || is_float(at.dtype) || is_complex(at.dtype) || at.dtype == DType::kUint64) return nullptr;
  PyArrayObject* a = plain_array(object, of);
  if (!a) return nullptr;
  const Vector x{PyArray_BYTES(a), PyArray_DIM(a, 0), PyArray_STRIDE(a, 0)}, all{PyArray_BYTES(p), PyArray_SIZE(p), PyArray_ITEMSIZE(p)};
  PyObject* made = new_array(handed_on(PyArray_DESCR(a), of.dtype), at.rank, PyArray_DIMS(p));
  if (made && !kGathers[static_cast<size_t>(at.dtype)](x, all, data_of(made), dtype_size(of.dtype))) Py_CLEAR(made);
  return made;
}

}  // namespace

const Step* step_gather_many(const Step* s, Reg* r, Machine& m) {
  PyObject* made = gathered(r[s->a].o, r[s->b].o);
  if (!made) [[unlikely]]
    return step_get_item(s, r, m);
  r[s->dst].o = made;
  return go_on(s + 1, r, m);
}

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
