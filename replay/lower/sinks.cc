// Writes into arrays that end a group of array ops: an operator in place, or an item set. And how NumPy's inner loops do a whole group.
#include <algorithm>
#include <numeric>
#include <span>
#include <unordered_map>

#include "replay/lower/lower.h"
#include "replay/machine/magnitudes.h"
#include "replay/machine/to_complex.h"
#include "replay/machine/written_pieces.h"
#include "replay/segment/casts.h"
#include "replay/segment/complex_loops.h"
#include "replay/settings.h"

namespace dalsegno::replay {
namespace {

// Is a number of this kind, in a loop of this dtype, what NumPy's promotion gives, if the result is as it was recorded?
bool suits(const SegmentInput& number, DType loop) {
  switch (number.kind) {
    case InputKind::kWeakFloat:
      return is_float(loop) || is_complex(loop);
    case InputKind::kWeakComplex:
      return is_complex(loop);
    case InputKind::kWeakInt:
      return loop != DType::kBool;
    case InputKind::kWeakBool:
      return true;
    case InputKind::kScalar:
      return number.dtype == loop || loop == DType::kFloat64 || (is_complex(loop) && casts_safely(number.dtype, loop));
    default:
      return false;
  }
}

}  // namespace

// An operand of a loop, from outside the group.
bool Lowering::loop_input(ValueId v, DType dtype, LoopInput* input) const {
  if (!input_of(v, &input->as)) return false;
  input->loc = loc(v);
  input->dtype = dtype;
  input->view = view_of(v);
  if (input->as.kind == InputKind::kArray) return input->as.dtype == dtype && input->as.rank <= typed::kMaxViewRank;
  return suits(input->as, dtype);
}

static bool is_cast(const SegmentInput& operand, DType dtype) {
  return operand.kind == InputKind::kArray && operand.rank <= typed::kMaxViewRank && loop_to_complex(operand.dtype, dtype).function;
}

// An array as operand of a loop of complex numbers: without a loop, where it is of that dtype.
LoopOp Lowering::cast_for(ValueId v, DType dtype) const {
  LoopOp made;
  made.result = dtype;
  if (is_complex(dtype) && values_[v].facts.rank > 0) made.loop = loop_to_complex(values_[v].facts.dtype, dtype);
  return made;
}

// Whatever is read and written is of one dtype, and NumPy has a loop for it.
bool Lowering::may_sink(const Op& o, ValueId i) const {
  const typed::Into into = typed::into_of(typed_, o);
  const bool operates = into.fn != ArrayFn::none, stores = o.kind == OpKind::set_item && form(i).mode == Mode::kView;
  if ((!operates && !stores) || !settings().kernels || !world_proven_ || o.snapshot < 0) return false;
  const ValueId array = operates ? into.target : in(o)[0];
  const ArrayFacts& facts = values_[array].facts;
  if (facts.rank < 1 || facts.rank > typed::kMaxViewRank || values_[array].pending) return false;
  if (stores && (is_virtual(array) || !(form(i).view.dtype == facts.dtype) || is_stored_in_place(o, i))) return false;
  if (operates && (!numpy::inner_loop(into.fn, facts.dtype, facts.dtype).function || (is_virtual(array) && !view_of(array)) ||
                   (view_of(array) && !typed::dies_behind(t(), array, i))))
    return false;
  const std::span<const ValueId> operands = operates ? std::span(into.operands, into.n) : std::span(in(o) + 2, 1);
  if (operates && is_complex(facts.dtype)) {
    const halide_gen::LoopTypes types = loop_of_complex(into.fn, operands, facts.dtype);
    if (!types.known || types.loop != facts.dtype || looks_at_gaps(into.fn)) return false;
  }
  bool arrays = stores || o.kind == OpKind::inplace;
  for (const ValueId v : operands) {
    LoopInput read;
    if (!loop_input(v, facts.dtype, &read) && !(operates && is_cast(read.as, facts.dtype))) return false;
    if (read.as.kind == InputKind::kArray && read.as.rank > (operates ? facts.rank : form(i).view.rank)) return false;
    arrays |= read.as.kind == InputKind::kArray;
  }
  return arrays;  // of numbers alone NumPy promotes in another way
}

void Lowering::sink(const Op& o, ValueId i) {
  put_off_step(o, i);
  sink_ = i;
  version_++;
}

// `a[i:j] += v` stores the view that it has computed into where it is: NumPy copies nothing then.
bool Lowering::is_stored_in_place(const Op& o, ValueId i) const {
  if (o.kind != OpKind::set_item || form(i).mode != Mode::kView || !view_of(in(o)[2])) return false;
  const Op& taken = op(values_[in(o)[2]].view_by);
  return in(taken)[0] == in(o)[0] && *typed::view_index_of(typed_, taken) == *typed::view_index_of(typed_, o);
}

bool Lowering::is_written(ValueId v) const {
  if (sink_ == kNull) return false;
  const Op& o = op(sink_);
  if (o.kind == OpKind::set_item) return v == in(o)[2];
  const typed::Into into = typed::into_of(typed_, o);
  return std::find(into.operands, into.operands + into.n, v) != into.operands + into.n;
}

// What the write gives, as the group is done.
void Lowering::end_sink() {
  if (sink_ == kNull) return;
  const ValueId i = sink_, array = typed::into_of(typed_, op(i)).target;
  sink_ = kNull;
  if (array == kNull) return;
  values_[i].facts = values_[array].facts;
  values_[i].type = values_[array].type;
  learned_.push_back(i);
  if (const Virtual* view = view_of(array)) {
    Virtual& same = p_->virtuals.emplace_back(*view);
    same.reg = loc(i).obj;
    values_[i].view_by = values_[array].view_by;
    is_not_built(i, &same);
  } else {
    defined(i);
  }
}

template <class Operand>
bool Lowering::plan_sink(ValueId i, const Operand& operand, LoopPlan* plan) {
  const Op& o = op(i);
  const typed::Into into = typed::into_of(typed_, o);
  const ValueId target = into.target == kNull ? in(o)[0] : into.target;
  const DType dtype = values_[target].facts.dtype;
  plan->writes = true;
  LoopSink& sink = plan->sink;
  LoopOp made;
  if (o.kind == OpKind::set_item) {
    Virtual& view = p_->virtuals.emplace_back();
    set_index(o, i, &view);
    sink.view = &view;
    if (!operand(in(o)[2], dtype, &made)) return false;
    sink.stored = made.operands[0];
    return true;
  }
  if (!loop_input(target, dtype, &sink.target)) return false;
  sink.result = loc(i).obj;
  made.result = dtype;
  made.fn = into.fn;
  made.loop = numpy::inner_loop(into.fn, dtype, dtype);
  plan->forwards |= is_complex(dtype) && looks_at_direction(into.fn);
  for (int32_t k = 0; k < into.n; ++k)
    if (!operand(into.operands[k], dtype, &made)) return false;
  sink.stored = static_cast<int32_t>(plan->ops.size());
  plan->ops.push_back(std::move(made));
  return true;
}

// False: the op is not done by a loop over its operands as they are.
template <class Operand>
bool Lowering::plan_loop(ValueId i, const Operand& operand, LoopOp* made, LoopPlan* plan) {
  const Op& o = op(i);
  std::vector<ValueId> operands;
  array_operands(o, &operands);
  DType dtype = made->result;
  if (o.fn == ArrayFn::roll) {
    made->shifts = roll_of(o), made->viewed = o.n_inputs == 3;
    return operand(operands[0], dtype, made);
  }
  for (ValueId v : operands)  // what tells is compared in its own dtype
    if (made->result == DType::kBool && values_[v].facts.rank > 0) dtype = values_[v].facts.dtype;
  const halide_gen::LoopTypes complex = loop_of_complex(o.fn, operands, made->result);
  if (complex.known) dtype = complex.loop, plan->forwards |= looks_at_direction(o.fn);
  made->fn = o.fn;
  made->exact = complex.known || array_fn_is_expr(o.fn);
  made->loop = numpy::inner_loop(o.fn, dtype, made->result);
  return made->loop.function && std::all_of(operands.begin(), operands.end(), [&](ValueId v) { return operand(v, dtype, made); });
}

// abs(z) < r, where nothing else takes abs(z), is one op.
static void compare_magnitudes_at_once(LoopPlan* plan) {
  const auto takes = [](const LoopOp& op, int32_t v) { return std::count(op.operands.begin(), op.operands.end(), v); };
  for (size_t k = 0; k < plan->ops.size(); ++k) {
    const LoopOp& compared = plan->ops[k];
    if (compared.result != DType::kBool || compared.operands.size() != 2 || compared.operands[0] < 0 || compared.operands[1] >= 0) continue;
    const int32_t at = compared.operands[0];
    const LoopOp& absolute = plan->ops[static_cast<size_t>(at)];
    const LoopInput& bound = plan->inputs[static_cast<size_t>(~compared.operands[1])];
    const bool of_complex = absolute.loop.function == numpy::inner_loop(ArrayFn::absolute, DType::kComplex128, DType::kFloat64).function;
    const auto taken =
        std::accumulate(plan->ops.begin(), plan->ops.end(), 0L, [&](long all, const LoopOp& op) { return all + takes(op, at); });
    const bool stored = plan->writes && plan->sink.stored == at;
    if (absolute.fn != ArrayFn::absolute || !of_complex || absolute.out >= 0 || taken != 1 || stored || bound.as.kind == InputKind::kArray)
      continue;
    const numpy::InnerLoop loop = magnitude_loop(compared.fn);
    if (!loop.function) continue;
    plan->ops[k].loop = loop, plan->ops[k].operands[0] = absolute.operands[0];
    plan->ops.erase(plan->ops.begin() + at);
    for (LoopOp& op : plan->ops)
      for (int32_t& v : op.operands) v -= v > at;
    plan->sink.stored -= plan->sink.stored > at;
    --k;
  }
}

// Null: what ends it is not written so.
std::shared_ptr<LoopPlan> Lowering::plan_loops(const Group& group, const SegmentSpec& spec, const std::vector<ValueId>& inputs) {
  auto plan = std::make_shared<LoopPlan>();
  plan->elides_right = elides_right(spec);
  std::unordered_map<ValueId, int32_t> known;
  const auto operand = [&](ValueId v, DType dtype, LoopOp* into) {
    const auto found = known.find(v);
    if (const LoopOp cast = cast_for(v, dtype); cast.loop.function) {
      LoopOp& made = plan->ops.emplace_back(cast);
      into->operands.push_back(static_cast<int32_t>(plan->ops.size() - 1));
      if (found != known.end()) return made.operands.push_back(found->second), true;
      LoopInput& input = plan->inputs.emplace_back();
      made.operands.push_back(~static_cast<int32_t>(plan->inputs.size() - 1));
      return loop_input(v, values_[v].facts.dtype, &input);
    }
    if (found != known.end()) {
      into->operands.push_back(found->second);
      return plan->ops[static_cast<size_t>(found->second)].result == dtype;
    }
    LoopInput& input = plan->inputs.emplace_back();  // (a number may be needed in more than one dtype)
    into->operands.push_back(~static_cast<int32_t>(plan->inputs.size() - 1));
    return loop_input(v, dtype, &input);
  };
  for (size_t k = 0; k < group.ops.size(); ++k) {
    LoopOp made;
    made.result = spec.ops[k].result;
    made.handed = handed_from(spec, static_cast<int>(k));
    if (spec.ops[k].output && (values_[group.ops[k]].released == kNull)) made.out = loc(group.ops[k]).obj;
    if (plan->by_loops) plan->by_loops = plan_loop(group.ops[k], operand, &made, plan.get());
    known[group.ops[k]] = static_cast<int32_t>(plan->ops.size());
    plan->ops.push_back(std::move(made));
  }
  if (!plan->by_loops) plan->inputs.clear();
  if (group.sink != kNull && !plan_sink(group.sink, operand, plan.get())) return nullptr;
  if (plan->by_loops) compare_magnitudes_at_once(plan.get());
  plan->in_pieces = may_write_pieces(*plan, group.ops.size());
  return kernel_inputs(inputs, &plan->of_kernel) ? plan : nullptr;
}

bool Lowering::kernel_inputs(const std::vector<ValueId>& values, std::vector<LoopInput>* inputs) const {
  for (const ValueId v : values) {
    LoopInput& input = inputs->emplace_back();
    if (!input_of(v, &input.as)) return false;
    input.loc = loc(v), input.view = view_of(v);
    if (input.as.kind == InputKind::kArray && is_virtual(v) && !input.view) return false;
  }
  return true;
}

// One kernel for all of it. What only the operator takes is no output then.
void Lowering::fuse_sink(Group* group, SegmentSpec spec, std::vector<ValueId> inputs, LoopPlan* plan) {
  const typed::Into into = group->sink == kNull ? typed::Into{} : typed::into_of(typed_, op(group->sink));
  if (into.target == kNull || group->ops.empty() || group->ops.size() >= kMaxSegmentOps) return;  // (alone NumPy does it best)
  if (plan->ops.size() != spec.ops.size() + 1) return;                                            // (no kernel knows complex numbers)
  const ArrayFacts& facts = values_[into.target].facts;
  SegmentOp last{.fn = into.fn, .result = facts.dtype, .rank = facts.rank, .output = true};
  for (int32_t k = 0; k < into.n; ++k) {
    const ValueId v = into.operands[k];
    const auto made = std::find(group->ops.begin(), group->ops.end(), v);
    auto known = std::find(inputs.begin(), inputs.end(), v);
    if (made != group->ops.end()) {
      last.operands.push_back(static_cast<int>(made - group->ops.begin()));
      continue;
    }
    if (known == inputs.end()) {
      SegmentInput input;
      if (inputs.size() >= kMaxSegmentInputs || !input_of(v, &input)) return;
      spec.inputs.push_back(input);
      known = inputs.insert(inputs.end(), v);
    }
    last.operands.push_back(~static_cast<int>(known - inputs.begin()));
  }
  for (size_t k = 0; k < spec.ops.size(); ++k) spec.ops[k].output &= plan->ops[k].out >= 0;
  spec.ops.push_back(std::move(last));
  if (!kernel_inputs(inputs, &plan->of_fused)) return;
  if (auto runner = SegmentRunner::make(spec)) {
    group->fused = static_cast<int32_t>(p_->part_runners.size());
    p_->part_runners.push_back(std::move(runner));
  }
}

}  // namespace dalsegno::replay
