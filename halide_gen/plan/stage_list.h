// What an expression stage computes, as a list: every value once, after its operands. Expressions are trees whose nodes are shared; whoever
// gives each value a register wants numbers, and to know how long each one is needed.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "halide_gen/plan/stage_values.h"

namespace dalsegno::halide_gen {

struct Value {
  Node node = Node::kNumber;
  ValueType type, of;  // of the first operand
  std::array<int, 3> operands{-1, -1, -1};
  int source = -1;    // kVariable: of the stage
  uint64_t bits = 0;  // kNumber
  int last_use = -1;  // number of a value, or past the end: by a store
};

// The kernel and the plan outlive it. Does not change once it is made: any thread. The constructor throws std::runtime_error where there is
// no expression for an op.
class StageList final : StageValues {
 public:
  StageList(const KernelSpec& spec, const Stage& stage);

  size_t size() const { return values_.size(); }
  const Value& value(int v) const { return values_[static_cast<size_t>(v)]; }
  const std::vector<int>& stored() const { return stored_; }  // value that each write stores
  const ValueType& stored_type(size_t k) const { return stored_types_[k]; }

 private:
  Expr source(size_t k) override;
  Expr bind(int, const std::string&, const Expr& value) override { return value; }
  int number_of(const Expr& e);
  int make(const Expr& e);

  std::vector<Value> values_;
  std::vector<int> stored_;
  std::vector<ValueType> stored_types_;
  std::map<const Expr::Data*, int> numbers_;
  std::map<std::tuple<Node, int, int, int, int, std::array<int, 3>, int, uint64_t>, int> written_;
  std::vector<Expr> kept_;  // whose addresses are keys
};

}  // namespace dalsegno::halide_gen
