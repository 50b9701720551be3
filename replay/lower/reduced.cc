// Reductions of what a group of array ops gives, done as that is made (replay/machine/reduced.cc).
#include <algorithm>

#include "replay/lower/lower.h"
#include "replay/machine/reductions.h"
#include "replay/machine/scalars.h"
#include "replay/machine/whole_numbers.h"
#include "replay/settings.h"

namespace dalsegno::replay {

// Is it a sum, a mean or an extreme of a value that waits, along axes or of all elements?
bool Lowering::reduces_pending(const Op& o, ValueId i) const {
  if (o.kind != OpKind::call || o.n_inputs < 2 || !is_constant(in(o)[0]) || sink_ != kNull || !settings().kernels) return false;
  const auto [callee, at] = reduced_call(o);
  const ValueId v = in(o)[at];
  const DType dtype = values_[v].facts.dtype;
  if (!values_[v].pending) return false;
  if (form(i).mode == Mode::kReduction && !is_float(dtype)) return fold_of(callee) != Fold::kNone && dies_at(v, i);
  if (dtype != DType::kFloat64 && dtype != DType::kFloat32 && dtype != DType::kInt64) return false;
  const ArrayFn fn = reduction_of(callee);
  if (fn == ArrayFn::none || !has_reducing_loop(fn, dtype)) return false;
  if (is_mean(callee) && !is_float(dtype)) return false;
  if (form(i).mode == Mode::kReduction) return dies_at(v, i);
  return form(i).mode == Mode::kPython && array_step(o, i) == along_axis_step(callee, at);
}

// The step that tries it, before the one that does the group; null: nothing reduces it.
std::shared_ptr<ReducedGroup> Lowering::begin_reduced(ValueId because) {
  if (!reduces_pending(op(because), because)) return nullptr;
  auto made = std::make_shared<ReducedGroup>();
  made->done = new_reg();
  Step s;
  s.fn = step_reduced_group;
  s.imm = static_cast<int32_t>(p_->reduced_groups.size());
  s.n = static_cast<int32_t>(p_->groups.size());
  p_->reduced_groups.push_back(made);
  push(s);
  return made;
}

// `spec`, `inputs`: of the group.
void Lowering::reduce_group(ReducedGroup* made, Group* group, SegmentSpec spec, const std::vector<ValueId>& inputs, ValueId because) {
  const Op& o = op(because);
  const auto [callee, at] = reduced_call(o);
  const ValueId v = in(o)[at];
  for (size_t k = 0; k < group->ops.size(); ++k) {
    const bool reduced = group->ops[k] == v;
    if (!reduced && !spec.ops[k].output) continue;
    if (reduced) made->number = static_cast<int32_t>(made->outputs.size()), made->handed = handed_from(spec, static_cast<int>(k));
    spec.ops[k].output = true;
    made->outputs.push_back(reduced && dies_at(v, because) ? -1 : loc(group->ops[k]).obj);
  }
  made->dtype = values_[v].facts.dtype;
  made->callee = callee;
  if (form(because).mode == Mode::kReduction) {
    made->dst = loc(because).raw;
  } else {
    const AlongAxis along = along_axis(o).value();
    const auto constant_at = [&](int32_t k, int32_t* reg) { return *reg = loc(in(o)[k]).obj, *reg >= 0 && is_constant(in(o)[k]); };
    made->dst = loc(because).obj;
    if (!constant_at(along.axis, &made->axis) || (along.keep >= 0 && !constant_at(along.keep, &made->keep))) return;
  }
  if (!kernel_inputs(inputs, &made->inputs)) return;
  auto runner = SegmentRunner::make(spec);
  if (!runner) return;
  made->runner = runner.get();
  p_->part_runners.push_back(std::move(runner));
  group->reduced = static_cast<int32_t>(p_->reduced_groups.size()) - 1;
  reduced_ = made->done;
}

}  // namespace dalsegno::replay
