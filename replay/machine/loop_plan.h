// A group of array ops without objects for what it works on: as NumPy's own inner loops do it, where it is small, one loop an op, over
// scratch memory; or its kernel. Made by the lowering.
#pragma once
#include <array>
#include <vector>

#include "numpy/loops.h"
#include "replay/machine/program.h"
#include "replay/segment/runner.h"

namespace dalsegno::replay {

// An operand from outside: an array, a view that is not built, or a number, which becomes an element of `dtype`.
struct LoopInput {
  Loc loc;  // array or number
  const Virtual* view = nullptr;
  SegmentInput as;  // what it is
  DType dtype = DType::kFloat64;
};

struct LoopOp {
  numpy::InnerLoop loop;
  std::vector<int32_t> operands;  // i >= 0: the result of ops[i]; i < 0: inputs[~i]
  DType result = DType::kFloat64;
  int32_t out = -1;                // object register of the result, where a slot holds it; -1: it stays in scratch
  std::vector<Shift> shifts = {};  // roll, which has no loop
  bool viewed = false;             // the result is a view of a new array
  int32_t handed = -1;             // handed_from() of the group's SegmentSpec
  ArrayFn fn = ArrayFn::none;      // none: a cast
  bool exact = true;               // the same bits whatever the strides, and wherever the loop is cut in pieces
};

// The write that ends it. An operator in place is the last of the ops.
struct LoopSink {
  LoopInput target;         // an operator's left operand
  Virtual* view = nullptr;  // set_item: what is written through, found as it is written
  int32_t stored = 0;       // operand, as LoopOp has them
  int32_t result = -1;      // object register of an operator's result, which is its left operand
};

struct LoopPlan {
  bool by_loops = true;       // else only a kernel can do it
  bool elides_right = false;  // see elides_right()
  bool forwards = false;      // some loop has other bits where a stride is negative, or memory is read near what is written
  std::vector<LoopInput> inputs;
  std::vector<LoopInput> of_kernel;  // the inputs of the group's SegmentSpec
  std::vector<LoopInput> of_fused;   // of the one with the operator in place that ends it, if there is one
  std::vector<LoopOp> ops;
  bool writes = false;
  bool in_pieces = false;  // may_write_pieces()
  LoopSink sink;
};

// A reduction of what a group gives: done while that is made, piece by piece (reduced.cc).
struct ReducedGroup {
  SegmentRunner* runner = nullptr;  // null: it is not done so
  std::vector<LoopInput> inputs;    // of its SegmentSpec
  std::vector<int32_t> outputs;     // object registers; -1: the one that is reduced, and that nobody holds
  int32_t number = 0;               // of the output that is reduced
  int32_t handed = -1;              // handed_from() of its op
  DType dtype = DType::kFloat64;    // its own
  typed::Callee callee = typed::Callee::kNone;
  int32_t axis = -1, keep = -1;  // object registers; axis -1: one number is made of all elements
  int32_t dst = -1;
  int32_t done = -1;  // register: it has been done
  int refusals = 0;   // calls in which it is not tried
};

// The array that an input is, or is a view of.
PyArrayObject* array_behind(const LoopInput& in, const Reg* r);

// The operands of a kernel, from registers. spans[k]: room for the extents of a view.
struct ViewRoom {
  npy_intp shape[typed::kMaxViewRank], strides[typed::kMaxViewRank];
};
bool kernel_operands(const std::vector<LoopInput>& inputs, const Reg* r, SegmentOperand* operands, ViewRoom* room);

}  // namespace dalsegno::replay
