// The greatest or the least element of each of many short rows: an inner loop costs more to be called than what it looks at.
#pragma once
#include "numpy/dtypes.h"
#include "numpy/loops.h"
#include "replay/machine/cut.h"
#include "trace/array_fn.h"

namespace dalsegno::replay {

// fn: maximum or minimum; loop: NumPy's for it. The result has one element for each row. False: nothing has been done, the loop has to be
// called. No GIL is needed.
bool extremes_of_few(ArrayFn fn, DType dtype, const numpy::InnerLoop& loop, const Cut& cut, const char* from, char* to);

}  // namespace dalsegno::replay
