// The arrays that a kernel writes. With the GIL.
#pragma once
#include "replay/segment/layout.h"
#include "replay/segment/runner.h"

namespace dalsegno::replay {

// In the caller's memory; false: there is not enough left.
bool place_result(const Layout& layout, DType dtype, SegmentResult* result, SegmentMemory* memory);
// A new array. `descr`: its dtype object, null: NumPy's own. Null, without an exception, where there is no memory.
PyObject* new_result(const Layout& layout, DType dtype, PyObject* descr);

}  // namespace dalsegno::replay
