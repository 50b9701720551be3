#include "halide_gen/plan/stage_list.h"

#include <cstring>

#include "halide_gen/plan/expressions.h"

namespace dalsegno::halide_gen {
namespace {

uint64_t number_bits(const Expr::Data& e) {
  if (!e.type.is_float()) return static_cast<uint64_t>(e.whole);
  uint64_t bits = 0;
  if (e.type.bits == 64) {
    std::memcpy(&bits, &e.real, sizeof e.real);
  } else {
    const auto narrow = static_cast<float>(e.real);
    std::memcpy(&bits, &narrow, sizeof narrow);
  }
  return bits;
}

bool is_alias(const ValueType& from, const ValueType& to) {
  return from == to || (!from.is_float() && !to.is_float() && !from.is_bool() && !to.is_bool() && from.bits == to.bits);
}

}  // namespace

StageList::StageList(const KernelSpec& spec, const Stage& stage) : StageValues(spec, stage) {
  find_values();
  for (const int result : stage.results) {
    const Expr value = StageValues::stored(result);
    stored_.push_back(number_of(value));
    stored_types_.push_back(value.type());
  }
  const int end = static_cast<int>(values_.size());
  for (int i = 0; i < end; ++i)
    for (const int x : value(i).operands)
      if (x >= 0) values_[static_cast<size_t>(x)].last_use = i;
  for (const int i : stored_) values_[static_cast<size_t>(i)].last_use = end;
}

Expr StageList::source(size_t k) { return variable(memory_type(dtype(k)), std::to_string(k)); }

int StageList::number_of(const Expr& e) {
  const auto known = numbers_.find(&*e);
  if (known != numbers_.end()) return known->second;
  kept_.push_back(e);
  return numbers_[&*e] = make(e);
}

int StageList::make(const Expr& e) {
  const bool same_bits = e->node == Node::kReinterpret || (e->node == Node::kConvert && is_alias(e->operands[0].type(), e.type()));
  if (same_bits) return number_of(e->operands[0]);
  Value v{.node = e->node, .type = e.type()};
  for (size_t k = 0; k < e->operands.size(); ++k) v.operands[k] = number_of(e->operands[k]);
  if (!e->operands.empty()) v.of = e->operands[0].type();
  if (e->node == Node::kSelect) v.of = v.type;
  if (e->node == Node::kVariable) v.source = std::stoi(e->name);
  if (e->node == Node::kNumber) v.bits = number_bits(*e);
  // What differs in sign only, or is a float or an integer of the same bits, is no other number.
  const auto key = std::tuple(v.node, static_cast<int>(v.type.kind), static_cast<int>(v.type.bits), static_cast<int>(v.of.kind),
                              static_cast<int>(v.of.bits), v.operands, v.source, v.bits);
  const auto [found, fresh] = written_.try_emplace(key, static_cast<int>(values_.size()));
  if (fresh) values_.push_back(v);
  return found->second;
}

}  // namespace dalsegno::halide_gen
