// Real numbers as complex ones, as NumPy casts operands of its loops: an inner loop.
#pragma once
#include "numpy/loops.h"

namespace dalsegno::replay {

// Null: NumPy does not cast one to the other without loss, or they are the same.
numpy::InnerLoop loop_to_complex(DType from, DType to);

}  // namespace dalsegno::replay
