// Which operators exist on unboxed operands, and in what representation they compute and give their result. No Python.h here.
// The rules are the language's (int / int is a float) and NumPy 2's (NEP 50).
#pragma once
#include "replay/typed/rep.h"
#include "trace/trace.h"

namespace dalsegno::typed {

// Which operand of an operator on complex numbers the interpreter takes as the real number that it is: no zero is added to it.
enum class Real : uint8_t { kNeither, kLeft, kRight, kCount };

struct Operator {
  Rep operand = Rep::kNone;  // what the operands are converted to first; kNone: there is no such typed operator
  Rep result = Rep::kNone;
  Real real = Real::kNeither;
  explicit operator bool() const { return operand != Rep::kNone; }
  bool operator==(const Operator&) const = default;
};
Operator binary_operator(BinaryOp op, Rep a, Rep b);
// Does the interpreter make a complex number of the other operand first? Since 3.14 it has ways of its own for complex numbers with others,
// but for powers. Set once, before anything is inferred.
extern bool g_converts_to_complex;
Operator compare_operator(Rep a, Rep b, bool equality);  // == or !=?
Operator unary_operator(UnaryOp op, Rep a);

// May a value be stored in an array of this dtype as NumPy would, without a warning, but for those that do not fit?
bool stores(DType dtype, Rep value);
// Does a value turn into this representation by its bits alone, with nothing to be done or checked?
constexpr bool same_bits(Rep from, Rep to) {
  if (from == to) return true;
  if (bits_of(from) != bits_of(to)) return false;
  if (bits_of(from) != Bits::kInt64) return true;
  const int more = size_of_integer(to) - size_of_integer(from);
  if (is_unsigned(from)) return is_unsigned(to) ? more >= 0 : more > 0;
  return !is_unsigned(to) && more >= 0;
}

// Are all ints up to this one exact in a double?
constexpr int64_t kExactInDouble = int64_t{1} << 53;
constexpr bool exact_in_double(int64_t v) { return v >= -kExactInDouble && v <= kExactInDouble; }

}  // namespace dalsegno::typed
