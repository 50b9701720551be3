#include "replay/typed/operators.h"

namespace dalsegno::typed {
namespace {

constexpr const char* kRepNames[] = {
#define X(name, text) text,
    DALSEGNO_REPS(X)
#undef X
};

bool integral(Rep rep) { return rep == Rep::kInt || rep == Rep::kBool; }
bool bitwise(BinaryOp op) { return op == BinaryOp::and_ || op == BinaryOp::or_ || op == BinaryOp::xor_; }

Operator integer_operator(BinaryOp op, bool bools) {
  switch (op) {
    case BinaryOp::power:  // a negative exponent gives a float
    case BinaryOp::matmul:
      return {};
    case BinaryOp::true_divide:
      return {Rep::kInt, Rep::kFloat};
    default:
      return {Rep::kInt, bools && bitwise(op) ? Rep::kBool : Rep::kInt};
  }
}

Operator float_operator(BinaryOp op) {
  switch (op) {
    case BinaryOp::add:
    case BinaryOp::subtract:
    case BinaryOp::multiply:
    case BinaryOp::true_divide:
    case BinaryOp::floor_divide:
    case BinaryOp::remainder:
    case BinaryOp::power:
      return {Rep::kFloat, Rep::kFloat};
    default:
      return {};
  }
}

}  // namespace

const char* rep_name(Rep rep) { return rep < Rep::kCount ? kRepNames[static_cast<int>(rep)] : "?"; }

Operator binary_operator(BinaryOp op, Rep a, Rep b) {
  if (!is_python_number(a) || !is_python_number(b)) return {};
  if (integral(a) && integral(b)) return integer_operator(op, a == Rep::kBool && b == Rep::kBool);
  return float_operator(op);
}

// An int beside a float is compared as objects: beyond 2**53 a double does not tell. (A constant that is exact in a double counts as a
// float: infer() sees to that.)
Operator compare_operator(Rep a, Rep b) {
  if (integral(a) && integral(b)) return {Rep::kInt, Rep::kBool};
  if (a == Rep::kFloat && b == Rep::kFloat) return {Rep::kFloat, Rep::kBool};
  return {};
}

// `+x` is x itself, and ~True warns: those stay objects.
Operator unary_operator(UnaryOp op, Rep a) {
  if (op == UnaryOp::negative && a == Rep::kFloat) return {Rep::kFloat, Rep::kFloat};
  if (op == UnaryOp::negative && integral(a)) return {Rep::kInt, Rep::kInt};
  if (op == UnaryOp::invert && a == Rep::kInt) return {Rep::kInt, Rep::kInt};
  return {};
}

}  // namespace dalsegno::typed
