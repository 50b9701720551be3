// From the operands' shapes and strides to the iteration: broadcasting, the layout NumPy gives results (K order), coalescing.
// Plain numbers, no Python objects.
#pragma once
#include <cstdint>
#include <vector>

#include "replay/segment/spec.h"

namespace dalsegno::replay {

inline constexpr int kMaxLayoutRank = 8;

// An array input as it comes.
struct ArrayView {
  char* data;
  int rank;
  int itemsize;
  const intptr_t* shape;
  const intptr_t* strides;  // bytes
  bool temporary;           // see is_temporary()
  PyObject* descr;          // its dtype object, borrowed
};

bool is_c_contiguous(const ArrayView& view);
// What NumPy computes into a large temporary has its strides, those of axes of one element too.
bool usual_strides(const ArrayView& view);

struct Axes {
  int64_t at[kMaxLayoutRank];
};

// The iteration, and the results' shape.
struct Layout {
  int rank;  // of the results
  intptr_t shape[kMaxLayoutRank];
  bool c_order;  // results are C-contiguous; else `order` lists their axes, innermost first
  int order[kMaxLayoutRank];
  int64_t size;
  int loop_rank;  // axes of the iteration after coalescing, innermost first
  int64_t extents[kMaxLayoutRank];
  Axes inputs[64];  // strides in elements, per array input, along the iteration's axes
  Axes dense;       // of the results
};

enum class LayoutResult : uint8_t {
  kOk,
  kMixed,    // ops of different shapes: split the segment by shape
  kRefused,  // NumPy must do it: empty arrays, odd strides, or negative ones, results of different layouts,
             // extents or strides past 32 bits
};

// `arrays[i]` is the view of spec.inputs[i] where that is an array; `reaches` see LoweredSegment.
// `rolls`: C order only, and each axis stays one of its own (those of one element are none). `backwards`: strides may be negative, in C
// order: there are no inner loops, some of which have other bits there. `written`: where a result is to be, if that is known; the iteration
// goes through it, too, if that is of the results' shape.
LayoutResult make_layout(const SegmentSpec& spec, const std::vector<uint64_t>& reaches, const ArrayView* arrays, Layout* layout,
                         bool rolls = false, bool backwards = false, const ArrayView* written = nullptr);

// Per op of the spec the number of its shape: a smaller shape has a smaller number, so that ops depend only on ops of the same or
// of a smaller number. Empty: some op's operands do not broadcast.
std::vector<int> shape_numbers(const SegmentSpec& spec, const ArrayView* arrays);

}  // namespace dalsegno::replay
