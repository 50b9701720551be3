// Copies a stretch of a strided, broadcast operand into consecutive elements.
#pragma once
#include "halide_gen/runtime/launch.h"

namespace dalsegno::rt {

// Elements [start, start + n) of the operand, in the order of the packing's axes (innermost first), to `out`. `size` is 1, 4 or 8.
void pack(const LaunchOperand& operand, const Packing& packing, int size, int64_t start, int64_t n, char* out);

}  // namespace dalsegno::rt
