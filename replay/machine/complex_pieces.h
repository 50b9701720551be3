// Whether a loop of NumPy's over complex numbers may be called for pieces of arrays: asked of the loop itself, once, as NumPy's next
// version may add up products in another way at the end of a piece than within it.
#pragma once
#include "numpy/loops.h"
#include "trace/array_fn.h"

namespace dalsegno::replay {

// Are the results of some hundred numbers, dense or one for all, the same bits for pieces of several sizes? With the GIL. No flag is left.
bool same_in_pieces(ArrayFn fn, DType loop, DType result);

}  // namespace dalsegno::replay
