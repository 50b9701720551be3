// What NumPy does with an op: the dtype its inner loop computes in (NEP 50), and how a kernel may do the same, to the bit.
#pragma once
#include <vector>

#include "trace/array_fn.h"

namespace dalsegno::halide_gen {

// An operand as promotion sees it.
enum class Weak : uint8_t { kNo, kInt, kFloat };  // kInt, kFloat: a Python int or float, which adapts to the other operands
struct OperandType {
  DType dtype = DType::kFloat64;  // not looked at when weak
  Weak weak = Weak::kNo;
};

struct LoopTypes {
  bool known = false;  // false: NumPy raises, or computes in a dtype kernels do not know
  DType loop = DType::kFloat64;
  DType result = DType::kFloat64;
};

// The dtype of the operands' common loop and of the result. `wanted` matters for astype only: the target.
LoopTypes resolve(ArrayFn fn, const std::vector<OperandType>& operands, DType wanted = DType::kFloat64);

// How an op is computed.
enum class Treatment : uint8_t {
  kNone,  // no exact rule
  kExpr,  // a Halide expression
  kLoop,  // NumPy's own inner loop, on tiles
};
Treatment treatment(ArrayFn fn, DType loop, DType result);

// Does computing it raise floating-point flags that eager would report? (Halide expressions only.)
bool raises_flags(ArrayFn fn, DType loop, DType result);
// Does operand k of the op reach the result in such a way that no compiler can drop or mask its computation?
bool anchors(ArrayFn fn, DType loop, DType result, int k);
// Does the op turn float into integer? Then "invalid" means that the values themselves are NumPy's secret.
bool float_to_int(ArrayFn fn, DType loop, DType result);
// Does the op hand bools on as the bytes they are, whatever these are? Others make 0 or 1 of them.
bool copies_bools(ArrayFn fn, DType loop, DType result);
// fmax, fmin: which of two zeros comes out depends on whether the element is in a vector or in the tail of the inner loop's run.
bool looks_at_position(ArrayFn fn, DType loop);
// power: NumPy looks at the exponent's stride.
bool looks_at_strides(ArrayFn fn);

}  // namespace dalsegno::halide_gen
