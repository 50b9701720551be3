#include "halide_gen/plan/stage_values.h"

#include <algorithm>
#include <stdexcept>

#include "halide_gen/plan/expressions.h"
#include "halide_gen/plan/rules.h"

namespace dalsegno::halide_gen {

int StageShape::lanes(int vector_bytes) const {
  int widest = 1;
  for (int i : stage_.ops) widest = std::max({widest, dtype_size(spec_.ops[i].loop), dtype_size(spec_.ops[i].result)});
  return vector_bytes / widest;
}

void StageValues::find_values() {
  values_.clear();
  bytes_.clear();
  for (size_t k = 0; k < stage_.sources.size(); ++k) {
    const Expr in_memory = source(k);
    values_[stage_.sources[k]] = load(in_memory, dtype(k));
    if (dtype(k) == DType::kBool && !is_scalar(k)) bytes_[stage_.sources[k]] = in_memory;
  }
  for (int i : stage_.ops) {
    const KernelOp& op = spec_.ops[i];
    const std::string number = std::to_string(i);
    Expr value = copied_byte(op);
    if (value.defined()) {
      bytes_[i] = bind(i, "byte_" + number, value);
      value = load(bytes_[i], op.result);
    } else {
      std::vector<Expr> operands;
      for (int v : op.operands) operands.push_back(values_.at(v));
      value = build(op.fn, op.loop, op.result, operands);
    }
    if (!value.defined()) throw std::runtime_error(std::string("no expression for ") + array_fn_name(op.fn));
    values_[i] = bind(i, "value_" + number, value);
  }
}

Expr StageValues::stored(int op) const { return spec_.ops[op].result == DType::kBool ? byte(op) : values_.at(op); }

// A bool as it is stored. Bytes other than 0 and 1 count as true, and stay what they are where they are only copied.
Expr StageValues::byte(int v) const {
  const auto known = bytes_.find(v);
  return known != bytes_.end() ? known->second : store(values_.at(v), DType::kBool);
}

// The byte that the op copies, undefined if it copies none.
Expr StageValues::copied_byte(const KernelOp& op) const {
  if (!copies_bools(op.fn, op.loop, op.result)) return Expr();
  const std::vector<int>& v = op.operands;
  const bool plain = std::none_of(v.begin(), v.end(), [&](int k) { return bytes_.contains(k); });
  if (plain) return Expr();
  return op.fn == ArrayFn::where ? select(values_.at(v[0]), byte(v[1]), byte(v[2])) : byte(v[0]);
}

}  // namespace dalsegno::halide_gen
