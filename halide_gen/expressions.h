// The table function x dtype -> Halide expression: NumPy's bits under strict_float. Values of dtype bool are Halide Bools here.
#pragma once
#include <Halide.h>

#include <vector>

#include "trace/array_fn.h"

namespace dalsegno::halide_gen {

// The type of a dtype in memory (bool is a byte), and of a value in an expression.
Halide::Type memory_type(DType dtype);
Halide::Type value_type(DType dtype);

// From and to memory. Bytes other than 0 and 1 are true.
Halide::Expr load(const Halide::Expr& stored, DType dtype);
Halide::Expr store(const Halide::Expr& value, DType dtype);

// The op's value; undefined Expr if there is no rule. Operands have the loop's type (where: a Bool first).
Halide::Expr build(ArrayFn fn, DType loop, DType result, const std::vector<Halide::Expr>& operands);

}  // namespace dalsegno::halide_gen
