// What becomes of a frame's result, as frames around it have it in traces (SnapshotFrame::action): a hook::ReturnAction, and in the bits
// above how many operands are dropped.
#pragma once
#include "hook/hook.h"
#include "trace/snapshots.h"

namespace dalsegno {

constexpr int32_t packed_action(hook::ReturnAction what, int operands) {
  return static_cast<int32_t>(what) | operands << kReturnActionBits;
}
constexpr hook::ReturnAction what_of(int32_t action) { return static_cast<hook::ReturnAction>(action & ((1 << kReturnActionBits) - 1)); }
constexpr int operands_of(int32_t action) { return action >> kReturnActionBits; }

// Where the frame inside `outer` is a generator's: that generator, as it lies on outer's stack; null: it is no generator's.
template <class Outer>
const ValueId* generator_inside(const Outer& outer) {
  const int below = hook::generator_below(what_of(outer.action), operands_of(outer.action));
  return below < 0 || below >= static_cast<int>(outer.stack.size()) ? nullptr : &outer.stack[outer.stack.size() - 1 - below];
}

}  // namespace dalsegno
