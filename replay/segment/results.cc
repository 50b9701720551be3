#include "replay/segment/results.h"

#include <algorithm>
#include <limits>

#include "halide_gen/plan/rules.h"
#include "replay/arrays.h"

namespace dalsegno::replay {
namespace {

// The k-th from the innermost.
int axis_at(const Layout& layout, int k) { return layout.c_order ? layout.rank - 1 - k : layout.order[k]; }

void set_strides(const Layout& layout, DType dtype, intptr_t* strides) {
  intptr_t stride = dtype_size(dtype);
  for (int k = 0; k < layout.rank; ++k) {
    const int axis = axis_at(layout, k);
    strides[axis] = stride;
    stride *= layout.shape[axis];
  }
}

// Null: none. (It is one at most.)
const SegmentResult* in_place(const LoweredSegment& lowered, const SegmentResult* outputs) {
  const SegmentResult* end = outputs + lowered.outputs.size();
  const SegmentResult* found = std::find_if(outputs, end, [](const SegmentResult& result) { return result.in_place; });
  return found == end ? nullptr : found;
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

bool lies_in_place(const Layout& layout, DType dtype, const SegmentResult& result, int64_t* strides) {
  if (result.rank != layout.rank || !std::equal(layout.shape, layout.shape + layout.rank, result.shape)) return false;
  const intptr_t item = dtype_size(dtype);
  int64_t left = 1, next = 0, furthest = 0;  // of the axis of the iteration: elements, and the stride that goes on with it
  int d = -1;
  strides[0] = 1;
  for (int k = 0; k < layout.rank; ++k) {
    const int axis = axis_at(layout, k);
    const int64_t extent = layout.shape[axis], stride = result.strides[axis] / item;
    if (extent == 1) continue;
    if (result.strides[axis] % item != 0 || stride <= 0) return false;
    if (left == 1)
      strides[++d] = stride, left = layout.extents[d];
    else if (stride != next)
      return false;
    left /= extent, next = stride * extent, furthest += stride * (extent - 1);
  }
  return strides[0] == 1 && furthest <= std::numeric_limits<int32_t>::max();
}

const ArrayView* asked_place(const LoweredSegment& lowered, const SegmentResult* outputs, ArrayView* room) {
  const SegmentResult* asked = in_place(lowered, outputs);
  if (!asked) return nullptr;
  const int item = dtype_size(lowered.outputs[static_cast<size_t>(asked - outputs)]);
  *room = {asked->data, asked->rank, item, asked->shape, asked->strides, false, nullptr};
  return room;
}

const rt::Over* over_of(const LoweredSegment& lowered, const SegmentResult* outputs, rt::Over* room) {
  const SegmentResult* found = in_place(lowered, outputs);
  if (!found || !found->over) return nullptr;
  *room = *found->over;
  room->output = static_cast<int32_t>(found - outputs), room->outputs = static_cast<int32_t>(lowered.outputs.size());
  const auto is_quiet = [](const halide_gen::KernelOp& op) {
    return halide_gen::treatment(op.fn, op.loop, op.result) == halide_gen::Treatment::kExpr &&
           !halide_gen::raises_flags(op.fn, op.loop, op.result);
  };
  if (std::all_of(lowered.ops.begin(), lowered.ops.end(), is_quiet)) room->watched = 0;
  return room;
}

PyObject* new_result(const Layout& layout, DType dtype, PyObject* descr) {
  npy_intp strides[kMaxLayoutRank];
  set_strides(layout, dtype, strides);
  PyArray_Descr* own = descr ? reinterpret_cast<PyArray_Descr*>(descr) : numpy::descriptor(dtype);
  return new_array(own, layout.rank, layout.shape, layout.c_order ? nullptr : strides);
}

}  // namespace dalsegno::replay
