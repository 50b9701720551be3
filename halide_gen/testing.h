// What tests of this folder have in common.
#pragma once
#include "halide_gen/plan/kernel.h"
#include "halide_gen/plan/rules.h"

namespace dalsegno::halide_gen {

// A kernel of one op, whose operands are as `like` is, but for their dtypes.
inline KernelSpec one_op(ArrayFn fn, DType loop, DType result, const KernelInput& like, int rank) {
  KernelSpec s;
  s.rank = rank;
  KernelOp op{fn, loop, result, {}, true};
  for (int k = 0; k < array_fn_inputs(fn); ++k) {
    KernelInput input = like;
    input.dtype = operand_dtype(op, k);
    s.inputs.push_back(input);
    op.operands.push_back(~k);
  }
  s.ops = {op};
  return s;
}

// look(fn, loop, result) of every rule that is an expression. How many there are.
template <class Look>
int each_expression(const Look& look) {
  int count = 0;
  for (int f = 1; f < static_cast<int>(ArrayFn::kCount); ++f) {
    for (int a = 0; a < static_cast<int>(DType::kCount); ++a) {
      for (int b = 0; b < static_cast<int>(DType::kCount); ++b) {
        const auto fn = static_cast<ArrayFn>(f);
        const auto loop = static_cast<DType>(a), result = static_cast<DType>(b);
        if (treatment(fn, loop, result) != Treatment::kExpr) continue;
        ++count;
        look(fn, loop, result);
      }
    }
  }
  return count;
}

}  // namespace dalsegno::halide_gen
