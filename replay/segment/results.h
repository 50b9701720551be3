// The arrays that a kernel writes. With the GIL.
#pragma once
#include "halide_gen/runtime/launch.h"
#include "replay/segment/casts.h"
#include "replay/segment/layout.h"
#include "replay/segment/runner.h"

namespace dalsegno::replay {

// In the caller's memory; false: there is not enough left.
bool place_result(const Layout& layout, DType dtype, SegmentResult* result, SegmentMemory* memory);
// Is it asked for where its elements follow one another along the iteration's axes? `strides`: along these, in elements.
bool lies_in_place(const Layout& layout, DType dtype, const SegmentResult& result, int64_t* strides);
// Where one of the results is to be, if it is asked for in place, in `room`; else null.
const ArrayView* asked_place(const LoweredSegment& lowered, const SegmentResult* outputs, ArrayView* room);
// Of the result in place that operands may be read from, if there is one, in `room`: with its number, and how many there are. Where no op
// raises flags it watches none.
const rt::Over* over_of(const LoweredSegment& lowered, const SegmentResult* outputs, rt::Over* room);
// A new array. `descr`: its dtype object, null: NumPy's own. Null, without an exception, where there is no memory.
PyObject* new_result(const Layout& layout, DType dtype, PyObject* descr);

}  // namespace dalsegno::replay
