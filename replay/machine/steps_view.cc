// Views of arrays by basic indexing, as numbers; and products of vectors through them. Nothing here runs code of the user's.
//
// Where a view's elements lie is found as NumPy finds it (get_view_from_index in numpy/_core/src/multiarray/mapping.c).
#include <algorithm>
#include <cmath>
#include <cstring>

#include "halide_gen/runtime/flags.h"
#include "numpy/errstate.h"
#include "numpy/loops.h"
#include "replay/machine/array_operand.h"
#include "replay/machine/scalars.h"
#include "replay/machine/small_arrays.h"
#include "replay/machine/vectors.h"
#include "trace/fault.h"

namespace dalsegno::replay {
namespace {

// What a slice leaves of an axis.
bool slice_axis(const IndexPart& part, const Reg* r, npy_intp* extent, npy_intp* stride, char** data) {
  const auto value = [&](size_t k, Py_ssize_t otherwise) {
    return part.regs[k] < 0 ? otherwise : static_cast<Py_ssize_t>(r[part.regs[k]].i);
  };
  Py_ssize_t step = value(2, 1);
  if (step == 0) return false;
  if (step < -PY_SSIZE_T_MAX) step = -PY_SSIZE_T_MAX;
  Py_ssize_t start = value(0, step < 0 ? PY_SSIZE_T_MAX : 0), stop = value(1, step < 0 ? PY_SSIZE_T_MIN : PY_SSIZE_T_MAX);
  Py_ssize_t n = PySlice_AdjustIndices(*extent, &start, &stop, step);
  if (n <= 0) n = start = 0, step = 1;
  *data += *stride * start;
  *stride *= planted(Fault::wrong_view_stride) ? 1 : step;
  *extent = n;
  return true;
}

}  // namespace

bool find_view(const Virtual& view, Reg* r) {
  PyArrayObject* a = plain_array(r[view.parts[0].obj].o, view.array);
  if (!a) return false;
  char* data = PyArray_BYTES(a);
  Reg* shape = r + view.block + 1;
  Reg* strides = shape + view.view.rank;
  int32_t axis = 0, made = 0, taken = 0;
  for (const IndexPart& part : view.index) taken += part.kind == typed::IndexPart::kPosition || part.kind == typed::IndexPart::kSlice;
  const auto leave_axes = [&](int32_t n) {
    for (; n > 0; --n, ++axis, ++made) shape[made].i = PyArray_DIM(a, axis), strides[made].i = PyArray_STRIDE(a, axis);
  };
  for (const IndexPart& part : view.index) {
    if (part.kind == typed::IndexPart::kEllipsis) {
      leave_axes(view.array.rank - taken);
      continue;
    }
    if (part.kind == typed::IndexPart::kNewAxis) {
      shape[made].i = 1, strides[made++].i = 0;
      continue;
    }
    npy_intp extent = PyArray_DIM(a, axis), stride = PyArray_STRIDE(a, axis);
    ++axis;
    if (part.kind == typed::IndexPart::kSlice) {
      if (!slice_axis(part, r, &extent, &stride, &data)) return false;
      shape[made].i = extent, strides[made++].i = stride;
      continue;
    }
    int64_t at = r[part.regs[0]].i;
    if (at < 0) at += extent;
    if (at < 0 || at >= extent) return false;
    data += at * stride;
  }
  leave_axes(view.array.rank - axis);
  r[view.block].i = reinterpret_cast<int64_t>(data);
  return true;
}

PyObject* new_view(const Virtual& view, const Reg* r) {
  PyObject* array = r[view.parts[0].obj].o;
  auto* a = reinterpret_cast<PyArrayObject*>(array);
  npy_intp shape[typed::kMaxViewRank], strides[typed::kMaxViewRank];
  for (int32_t d = 0; d < view.view.rank; ++d) {
    shape[d] = r[view.block + 1 + d].i;
    strides[d] = r[view.block + 1 + view.view.rank + d].i;
  }
  Py_INCREF(PyArray_DESCR(a));
  PyObject* made = PyArray_NewFromDescr(&PyArray_Type, PyArray_DESCR(a), view.view.rank, shape, strides,
                                        reinterpret_cast<void*>(r[view.block].i), PyArray_FLAGS(a), nullptr);
  if (!made) return nullptr;
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(made), Py_NewRef(array)) < 0) Py_CLEAR(made);
  return made;
}

const Step* step_view(const Step* s, Reg* r, Machine& m) {
  if (!find_view(*s->what, r)) [[unlikely]]
    return refuse(m, s->exit);
  return go_on(s + 1, r, m);
}

// ---- products ----------------------------------------------------------------------------------------------------------------------

namespace {

// matmul's loop, whose last extents are one outer product, and (1, n) times (n, 1).
void by_matmul(const numpy::InnerLoop& loop, const Vector& x, const Vector& y, char* out, int size) {
  char* operands[] = {x.data, y.data, out};
  npy_intp extents[] = {1, 1, x.size, 1};
  npy_intp strides[] = {0, 0, 0, x.size * x.stride, x.stride, y.stride, y.size * y.stride, size, size};
  loop.function(operands, extents, strides, loop.data);
}

template <DType dtype>
bool product(typed::Callee callee, const Vector& x, const Vector& y, Reg* out) {
  using T = typename numpy::Element<dtype>::Type;
  T made{};
  const bool dots = callee == typed::Callee::kDot || callee == typed::Callee::kDotMethod;
  rt::clear_all_raised();
  if (dots) {
    if (!by_dot<T>(dtype, x, y, &made)) return false;
  } else {
    static const numpy::InnerLoop loop = numpy::matmul_loop(dtype);
    if (!loop.function) return false;
    by_matmul(loop, x, y, reinterpret_cast<char*>(&made), sizeof(T));
  }
  if (const int raised = rt::all_raised(); raised != 0 && std::is_floating_point_v<T> && !numpy::errstate_ignores(raised)) return false;
  part_of<T>(*out) = made;
  return true;
}

}  // namespace

const Step* step_product(const Step* s, Reg* r, Machine& m) {
  static constexpr auto kProducts = numpy::by_dtype([]<DType dtype>() { return product<dtype>; });
  const auto dtype = static_cast<DType>(s->n);
  Vector x, y;
  const bool known = vector_of(s->a < 0 ? nullptr : r[s->a].o, s->list[0], r, dtype, &x) &&
                     vector_of(s->b < 0 ? nullptr : r[s->b].o, s->list[1], r, dtype, &y) && x.size == y.size;
  Reg made{};
  if (!known || !kProducts[static_cast<size_t>(dtype)](static_cast<typed::Callee>(s->imm), x, y, &made)) [[unlikely]]
    return refuse(m, s->exit);
  r[s->dst] = made;
  return go_on(s + 1, r, m);
}

}  // namespace dalsegno::replay
