#include "halide_gen/plan/expr.h"

namespace dalsegno::halide_gen {
namespace {

constexpr ValueType kBoolType{ValueType::kBool, 1};

Expr make(Node node, const ValueType& type, std::vector<Expr> operands) {
  return Expr({.node = node, .type = type, .operands = std::move(operands)});
}
Expr same(Node node, const Expr& a, const Expr& b) { return make(node, a.type(), {a, b}); }
Expr test(Node node, const Expr& a, const Expr& b) { return make(node, kBoolType, {a, b}); }

}  // namespace

Expr variable(const ValueType& type, const std::string& name) { return Expr({.node = Node::kVariable, .type = type, .name = name}); }
Expr number(const ValueType& type, int64_t value) {
  return Expr({.node = Node::kNumber, .type = type, .whole = value, .real = static_cast<double>(value)});
}
Expr real_number(const ValueType& type, double value) { return Expr({.node = Node::kNumber, .type = type, .real = value}); }
Expr select(const Expr& condition, const Expr& yes, const Expr& no) { return make(Node::kSelect, yes.type(), {condition, yes, no}); }
Expr convert(const ValueType& to, const Expr& x) { return make(Node::kConvert, to, {x}); }
Expr reinterpret(const ValueType& to, const Expr& x) { return make(Node::kReinterpret, to, {x}); }
Expr is_nan(const Expr& x) { return make(Node::kIsNan, kBoolType, {x}); }
Expr quiet_less(const Expr& a, const Expr& b) { return test(Node::kQuietLt, a, b); }
Expr quiet_less_equal(const Expr& a, const Expr& b) { return test(Node::kQuietLe, a, b); }
Expr sqrt(const Expr& x) { return make(Node::kSqrt, x.type(), {x}); }
Expr floor(const Expr& x) { return make(Node::kFloor, x.type(), {x}); }
Expr ceil(const Expr& x) { return make(Node::kCeil, x.type(), {x}); }
Expr trunc(const Expr& x) { return make(Node::kTrunc, x.type(), {x}); }
Expr round(const Expr& x) { return make(Node::kRound, x.type(), {x}); }
Expr operator!(const Expr& x) { return make(Node::kNot, x.type(), {x}); }
Expr operator~(const Expr& x) {
  if (x->node != Node::kNumber || x.type().is_bool() || x.type().is_float()) return make(Node::kBitNot, x.type(), {x});
  const int unused = 64 - x.type().bits;
  const uint64_t bits = ~static_cast<uint64_t>(x->whole) << unused;
  return number(x.type(), x.type().is_int() ? static_cast<int64_t>(bits) >> unused : static_cast<int64_t>(bits >> unused));
}
Expr operator+(const Expr& a, const Expr& b) { return same(Node::kAdd, a, b); }
Expr operator-(const Expr& a, const Expr& b) { return same(Node::kSub, a, b); }
Expr operator*(const Expr& a, const Expr& b) { return same(Node::kMul, a, b); }
Expr operator/(const Expr& a, const Expr& b) { return same(Node::kDiv, a, b); }
Expr operator==(const Expr& a, const Expr& b) { return test(Node::kEq, a, b); }
Expr operator!=(const Expr& a, const Expr& b) { return test(Node::kNe, a, b); }
Expr operator<(const Expr& a, const Expr& b) { return test(Node::kLt, a, b); }
Expr operator<=(const Expr& a, const Expr& b) { return test(Node::kLe, a, b); }
Expr operator>(const Expr& a, const Expr& b) { return test(Node::kGt, a, b); }
Expr operator>=(const Expr& a, const Expr& b) { return test(Node::kGe, a, b); }
Expr operator&&(const Expr& a, const Expr& b) { return same(Node::kAnd, a, b); }
Expr operator||(const Expr& a, const Expr& b) { return same(Node::kOr, a, b); }
Expr operator&(const Expr& a, const Expr& b) { return same(Node::kBitAnd, a, b); }
Expr operator|(const Expr& a, const Expr& b) { return same(Node::kBitOr, a, b); }
Expr operator^(const Expr& a, const Expr& b) { return same(Node::kBitXor, a, b); }
Expr operator<<(const Expr& a, const Expr& b) { return same(Node::kShiftLeft, a, b); }
Expr operator>>(const Expr& a, const Expr& b) { return same(Node::kShiftRight, a, b); }

}  // namespace dalsegno::halide_gen
