// The table function x dtype -> expression: NumPy's bits, computed strictly in the order in which it stands. Values of dtype bool are bools
// here, and bytes in memory.
#pragma once
#include <vector>

#include "halide_gen/plan/expr.h"
#include "trace/array_fn.h"

namespace dalsegno::halide_gen {

// The type of a dtype in memory (bool is a byte), and of a value in an expression.
ValueType memory_type(DType dtype);
ValueType value_type(DType dtype);

// From and to memory. Bytes other than 0 and 1 are true.
Expr load(const Expr& stored, DType dtype);
Expr store(const Expr& value, DType dtype);

// The op's value; no expression if there is no rule. Operands have the loop's type (where: a bool first).
Expr build(ArrayFn fn, DType loop, DType result, const std::vector<Expr>& operands);

}  // namespace dalsegno::halide_gen
