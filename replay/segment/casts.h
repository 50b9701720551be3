// A SegmentSpec with every cast written out: the ops of a kernel, before its layout is known. No NumPy here.
#pragma once
#include <cstdint>
#include <vector>

#include "halide_gen/plan/kernel.h"
#include "replay/segment/spec.h"

namespace dalsegno::replay {

// What a segment may hold. Inputs: two bits each in a variant's key.
inline constexpr size_t kMaxSegmentInputs = 24, kMaxSegmentOps = 400, kMaxSegmentOutputs = 32;

// An input of the kernel: an array as it is, or a scalar converted to `dtype`.
struct KernelSource {
  int input = 0;  // of the SegmentSpec
  bool scalar = false;
  DType dtype = DType::kFloat64;
  std::vector<Shift> shifts = {};  // of an array, one an axis of it
  bool operator==(const KernelSource&) const = default;
};

struct LoweredSegment {
  bool ok = false;                        // false: there is no exact rule for some op
  std::vector<KernelSource> sources;      // in order of the kernel's inputs
  std::vector<halide_gen::KernelOp> ops;  // the spec's ops and casts between them
  std::vector<DType> outputs;             // dtype of each output, in order
  std::vector<bool> viewed;               // per output: it is a view of a new array
  std::vector<uint64_t> reaches;          // distinct sets of array inputs (by bit) that the spec's ops depend on
  std::vector<int> unbroadcast;           // array inputs that must not be broadcast: NumPy looks at their strides
  std::vector<int> copied;                // array inputs whose layout astype or roll copies: see copies_in_order()
  bool rolls = false;                     // some source has shifts
  bool needs_several = false;             // with a single element NumPy would do something else
  bool needs_one_run = false;             // NumPy's inner loops must run over the same stretches of elements
  int weight = 0;                         // cost of an element, in simple operations
};

LoweredSegment lower_segment(const SegmentSpec& spec);
// Is there an exact rule for the function on such operands, giving this dtype? A look at the table of rules; one array at least.
bool has_rule(ArrayFn fn, const std::vector<SegmentInput>& operands, DType result);

}  // namespace dalsegno::replay
