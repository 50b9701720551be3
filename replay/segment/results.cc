#include "replay/segment/results.h"

#include <algorithm>

#include "replay/arrays.h"

namespace dalsegno::replay {
namespace {

void set_strides(const Layout& layout, DType dtype, intptr_t* strides) {
  intptr_t stride = dtype_size(dtype);
  for (int k = 0; k < layout.rank; ++k) {
    const int axis = layout.c_order ? layout.rank - 1 - k : layout.order[k];
    strides[axis] = stride;
    stride *= layout.shape[axis];
  }
}

}  // namespace

bool place_result(const Layout& layout, DType dtype, SegmentResult* result, SegmentMemory* memory) {
  const size_t bytes = (static_cast<size_t>(layout.size) * static_cast<size_t>(dtype_size(dtype)) + 63) & ~size_t{63};
  if (bytes > memory->left) return false;
  result->data = memory->next, result->rank = layout.rank;
  std::copy_n(layout.shape, layout.rank, result->shape);
  set_strides(layout, dtype, result->strides);
  memory->next += bytes, memory->left -= bytes;
  return true;
}

PyObject* new_result(const Layout& layout, DType dtype, PyObject* descr) {
  npy_intp strides[kMaxLayoutRank];
  set_strides(layout, dtype, strides);
  PyArray_Descr* own = descr ? reinterpret_cast<PyArray_Descr*>(descr) : numpy::descriptor(dtype);
  return new_array(own, layout.rank, layout.shape, layout.c_order ? nullptr : strides);
}

}  // namespace dalsegno::replay
