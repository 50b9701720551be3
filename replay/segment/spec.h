// What a segment computes, as plain data: array ops of one trace that one kernel may do together. Made by lowering.
#pragma once
#include <cstdint>
#include <vector>

#include "trace/array_fn.h"

namespace dalsegno::replay {

enum class InputKind : uint8_t {
  kArray,        // exact, aligned, native ndarray of `dtype` and `rank` >= 1 (guarded before; extents and strides are looked at on launch)
  kWeakInt,      // exact Python int (NEP 50: weak): converted to the op's dtype; out of range -> kMismatch
  kWeakFloat,    // exact Python float (weak)
  kWeakBool,     // exact Python bool
  kWeakComplex,  // exact Python complex (weak); never in a kernel
  kScalar,       // NumPy scalar of `dtype` (strong)
};
struct SegmentInput {
  InputKind kind = InputKind::kArray;
  DType dtype = DType::kFloat64;  // kArray, kScalar
  int rank = 0;                   // kArray
  int cut = 0;                    // kArray, if a view by slices: bit d: axis d may be shorter than it was; -1: by something else
  bool operator==(const SegmentInput&) const = default;
};
// roll: elements of this axis of the operand have moved so far towards its end, those at the end to its beginning.
struct Shift {
  int axis = 0;
  int64_t by = 0;
  bool operator==(const Shift&) const = default;
};
struct SegmentOp {
  ArrayFn fn = ArrayFn::none;
  std::vector<int> operands;       // i >= 0: result of ops[i]; i < 0: inputs[~i]
  DType result = DType::kFloat64;  // dtype eager gave; NEP 50 decides the dtype the loop computes in
  int rank = 1;
  bool output = false;             // must exist in memory after the segment
  std::vector<Shift> shifts = {};  // roll: of an input, or of what is rolled
  bool viewed = false;             // the result is a view of a new array
  int elidable = 0;  // operands that NumPy may compute the op into if they are large temporaries: bit 0 the first, bit 1 the second
  bool operator==(const SegmentOp&) const = default;
};
struct SegmentSpec {
  std::vector<SegmentInput> inputs;
  std::vector<SegmentOp> ops;  // in the order eager runs them
  bool operator==(const SegmentSpec&) const = default;
};

// The input whose dtype object the result of an op has: ufuncs hand on their first operand's, where it is of the result's dtype and the
// loop takes it as it is (a comparison of truth values with ints does not). -1: NumPy's.
int handed_from(const SegmentSpec& spec, int op);
// May NumPy compute an op into its second operand, whose dtype object it has then?
bool elides_right(const SegmentSpec& spec);

}  // namespace dalsegno::replay
