// Expressions on elements, as plain data: what the table of expressions.h is written in, and what each compiler turns into its own. The
// operators are C++'s, and build nodes; nothing is simplified.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dalsegno::halide_gen {

struct ValueType {
  enum Kind : uint8_t { kBool, kInt, kUint, kFloat } kind = kFloat;
  uint8_t bits = 64;  // kBool: 1
  bool operator==(const ValueType&) const = default;
  bool is_bool() const { return kind == kBool; }
  bool is_int() const { return kind == kInt; }
  bool is_float() const { return kind == kFloat; }
  int bytes() const { return (bits + 7) / 8; }
};

enum class Node : uint8_t {
  kNumber,
  kVariable,
  kSelect,       // a bool, what is given where it is true, what is given elsewhere
  kConvert,      // C's rules; to bool: is it other than 0?
  kReinterpret,  // the same bits
  // Of one operand.
  kNot,
  kBitNot,
  kIsNan,
  kSqrt,
  kFloor,
  kCeil,
  kTrunc,
  kRound,  // halves to even
  // Of two operands of one type. Integers wrap. Comparisons give a bool; of a NaN they are false, but for kNe. Where one is a NaN machines'
  // < and <= raise "invalid", those that are quiet do not, as == and != do not.
  kAdd,
  kSub,
  kMul,
  kDiv,  // floats
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kQuietLt,  // floats
  kQuietLe,
  kAnd,  // bools
  kOr,
  kBitAnd,  // integers
  kBitOr,
  kBitXor,
  kShiftLeft,   // by an unsigned number below the width
  kShiftRight,  // the same; keeps the sign
};

// A reference to a node that does not change. Without one: no expression.
class Expr {
 public:
  struct Data;
  Expr() = default;
  explicit Expr(Data data);
  bool defined() const { return data_ != nullptr; }
  const Data& operator*() const { return *data_; }
  const Data* operator->() const { return data_.get(); }
  const ValueType& type() const;

 private:
  std::shared_ptr<const Data> data_;
};

struct Expr::Data {
  Node node = Node::kNumber;
  ValueType type;
  std::vector<Expr> operands;
  std::string name;   // kVariable
  int64_t whole = 0;  // kNumber: of integers and bools, its bits
  double real = 0;    // kNumber: of floats
};

inline Expr::Expr(Data data) : data_(std::make_shared<const Data>(std::move(data))) {}
inline const ValueType& Expr::type() const { return data_->type; }

Expr variable(const ValueType& type, const std::string& name);
Expr number(const ValueType& type, int64_t value);
Expr real_number(const ValueType& type, double value);  // of a float type
Expr select(const Expr& condition, const Expr& yes, const Expr& no);
Expr convert(const ValueType& to, const Expr& x);
Expr reinterpret(const ValueType& to, const Expr& x);
Expr is_nan(const Expr& x);
Expr quiet_less(const Expr& a, const Expr& b);
Expr quiet_less_equal(const Expr& a, const Expr& b);
Expr sqrt(const Expr& x);
Expr floor(const Expr& x);
Expr ceil(const Expr& x);
Expr trunc(const Expr& x);
Expr round(const Expr& x);
Expr operator!(const Expr& x);
Expr operator~(const Expr& x);
Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator/(const Expr& a, const Expr& b);
Expr operator==(const Expr& a, const Expr& b);
Expr operator!=(const Expr& a, const Expr& b);
Expr operator<(const Expr& a, const Expr& b);
Expr operator<=(const Expr& a, const Expr& b);
Expr operator>(const Expr& a, const Expr& b);
Expr operator>=(const Expr& a, const Expr& b);
Expr operator&&(const Expr& a, const Expr& b);
Expr operator||(const Expr& a, const Expr& b);
Expr operator&(const Expr& a, const Expr& b);
Expr operator|(const Expr& a, const Expr& b);
Expr operator^(const Expr& a, const Expr& b);
Expr operator<<(const Expr& a, const Expr& b);
Expr operator>>(const Expr& a, const Expr& b);

}  // namespace dalsegno::halide_gen
