// What the ops of a plan's expression stage compute. Whoever compiles them says how what they read is found, and binds each op's value to a
// name: a shared subexpression written out at each use grows exponentially.
#pragma once
#include <map>
#include <string>

#include "halide_gen/plan/expr.h"
#include "halide_gen/plan/plan.h"

namespace dalsegno::halide_gen {

// An expression stage of a kernel: its sources by number, then what it stores. The kernel and the plan outlive it.
class StageShape {
 public:
  StageShape(const KernelSpec& spec, const Stage& stage) : spec_(spec), stage_(stage) {}

  size_t reads() const { return stage_.reads.size(); }
  size_t operands() const { return reads() + stage_.writes.size(); }
  DType dtype(size_t i) const { return static_cast<DType>((i < reads() ? stage_.reads[i] : stage_.writes[i - reads()]).dtype); }
  bool is_scalar(size_t i) const { return i < reads() && stage_.reads[i].scalar != 0; }
  // How an array moves along the innermost axis.
  Inner inner(size_t i) const { return i < reads() && stage_.sources[i] < 0 ? spec_.inputs[~stage_.sources[i]].inner : Inner::kDense; }
  // Elements in a vector: as many as fill it with the widest type that occurs. (Several narrower registers hide latency where a vector of
  // the processor's is shorter.)
  static constexpr int kVectorBytes = 64;
  int lanes(int vector_bytes = kVectorBytes) const;

 protected:
  const KernelSpec& spec_;
  const Stage& stage_;
};

class StageValues : protected StageShape {
 public:
  using StageShape::StageShape;
  virtual ~StageValues() = default;
  StageValues(const StageValues&) = delete;

 protected:
  // The stage's k-th source, an element as it lies in memory: a variable.
  virtual Expr source(size_t k) = 0;
  // A variable that stands for the value.
  virtual Expr bind(int op, const std::string& name, const Expr& value) = 0;

  void find_values();  // of all ops
  // An op's value as it is stored.
  Expr stored(int op) const;

 private:
  Expr byte(int v) const;
  Expr copied_byte(const KernelOp& op) const;

  std::map<int, Expr> values_;  // by op index, or ~input
  std::map<int, Expr> bytes_;   // the same, of bools that come from memory
};

}  // namespace dalsegno::halide_gen
