// Ops on arrays of complex numbers, which no kernel does: in which dtype NumPy's loop computes them, and how far its bits depend on how
// its operands lie in memory. No NumPy here.
#pragma once
#include <vector>

#include "halide_gen/plan/rules.h"
#include "replay/segment/spec.h"

namespace dalsegno::replay {

// The loop in which NumPy computes this op (NEP 50), where an operand is complex, the result is as given and the bits of the loop are
// known not to depend on where it is cut, nor on alignment or strides that are not negative. `known`: false, if it is anything else.
halide_gen::LoopTypes complex_loop(ArrayFn fn, const std::vector<SegmentInput>& operands, DType result);

// Has the loop other bits where a stride is negative? NumPy's vector code, which contracts a * b + c, takes no such operands.
bool looks_at_direction(ArrayFn fn);
// Has it where neither operand nor result is dense? Results of a group's ops are.
bool looks_at_gaps(ArrayFn fn);

}  // namespace dalsegno::replay
