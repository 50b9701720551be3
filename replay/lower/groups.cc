// Array ops wait to be done together, until something needs a value of theirs or could change what they read.
#include <algorithm>
#include <unordered_set>

#include "numpy/dtypes.h"
#include "replay/lower/lower.h"
#include "replay/machine/complex_pieces.h"
#include "replay/machine/rep_types.h"
#include "replay/segment/casts.h"
#include "replay/segment/complex_loops.h"
#include "replay/settings.h"
#include "trace/fault.h"

namespace dalsegno::replay {
// a.astype(t), a.astype(t, copy=c), t and c constants: the dtype stands in the op's facts. Without a copy, an array that has the dtype
// already is its own result.
bool Lowering::astype_operand(const Op& o, std::vector<ValueId>* operands) const {
  const bool names_copy = o.object >= 0;
  if (o.kind != OpKind::call || o.imm != 2 || o.n_inputs != (names_copy ? 4 : 3) || !is_constant(in(o)[2])) return false;
  const ValueId array = in(o)[1];
  if (names_copy) {
    PyObject* names = object(o.object);
    if (!is_constant(in(o)[3]) || PyTuple_GET_SIZE(names) != 1) return false;
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "copy") != 0) return false;
    PyObject* copy = object(op(in(o)[3]).object);
    const ArrayFacts& facts = values_[array].facts;
    const bool same = facts.rank < 0 || facts.dtype == t().facts[o.facts].dtype;
    if (copy != Py_True && (copy != Py_False || same)) return false;
  }
  operands->assign(1, array);
  return true;
}

// np.roll(a, shift, axis), np.roll(a, shift, axis=...): constants, numbers or tuples of them; of a vector without an axis, too. Empty: it
// is anything else.
std::vector<Shift> Lowering::roll_of(const Op& o) const {
  const int rank = values_[in(o)[1]].facts.rank >= 0 ? values_[in(o)[1]].facts.rank : o.facts >= 0 ? t().facts[o.facts].rank : 0;
  PyObject* names = o.object >= 0 ? object(o.object) : nullptr;
  if (o.kind != OpKind::call || o.n_inputs < 3 || o.n_inputs > 4 || !is_constant(in(o)[2])) return {};
  if (names && (PyTuple_GET_SIZE(names) != 1 || o.n_inputs != 4)) return {};
  if (names && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "axis") != 0) return {};
  if (o.n_inputs == 4 && !is_constant(in(o)[3])) return {};
  const auto numbers = [](PyObject* given, std::vector<int64_t>* out) {
    const bool several = PyTuple_CheckExact(given);
    const Py_ssize_t n = several ? PyTuple_GET_SIZE(given) : 1;
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* one = several ? PyTuple_GET_ITEM(given, i) : given;
      int overflow = 0;
      if (!PyLong_CheckExact(one)) return false;
      out->push_back(PyLong_AsLongLongAndOverflow(one, &overflow));
      if (overflow != 0 || out->back() > INT32_MAX || out->back() < INT32_MIN) return false;
    }
    return n > 0;
  };
  std::vector<int64_t> by, axes;
  if (!numbers(object(op(in(o)[2]).object), &by)) return {};
  if (o.n_inputs == 3 ? rank != 1 : !numbers(object(op(in(o)[3]).object), &axes)) return {};
  if (o.n_inputs == 3) axes = {0};
  const size_t n = std::max(by.size(), axes.size());
  if ((by.size() != 1 && by.size() != n) || (axes.size() != 1 && axes.size() != n)) return {};
  std::vector<Shift> shifts;
  for (size_t i = 0; i < n; ++i) {
    const int64_t axis = axes[axes.size() == 1 ? 0 : i];
    if (axis < -rank || axis >= rank) return {};
    shifts.push_back({static_cast<int>(axis < 0 ? axis + rank : axis), by[by.size() == 1 ? 0 : i]});
  }
  return shifts;
}

// What the function works on: a call's arguments, an operator's operands (square has a second one, its exponent).
bool Lowering::array_operands(const Op& o, std::vector<ValueId>* operands) const {
  if (o.fn == ArrayFn::astype) return astype_operand(o, operands);
  if (o.fn == ArrayFn::roll) return operands->assign(1, in(o)[1]), !roll_of(o).empty();
  int n = array_fn_inputs(o.fn);
  if (o.kind == OpKind::call) {
    if (o.object >= 0 || o.imm != n || o.n_inputs != n + 1) return false;
    operands->assign(in(o) + 1, in(o) + 1 + n);
    return true;
  }
  if (o.kind != OpKind::binary && o.kind != OpKind::unary && o.kind != OpKind::compare) return false;
  if (o.n_inputs < n) return false;
  operands->assign(in(o), in(o) + n);
  return true;
}

// SegmentInput's `cut`.
static int cut_of(const std::vector<IndexPart>& index) {
  int cut = 0, axis = 0;
  for (const IndexPart& part : index) {
    const bool slice = part.kind == typed::IndexPart::kSlice && part.regs[2] < 0;
    if (!slice && (part.kind != typed::IndexPart::kPosition || axis > 0)) return -1;
    if (slice && (part.regs[0] >= 0 || part.regs[1] >= 0)) cut |= 1 << axis;
    axis += slice;
  }
  return cut;
}

bool Lowering::input_of(ValueId v, SegmentInput* input) const {
  const Value& value = values_[v];
  if (value.facts.rank >= 0) {
    *input = {InputKind::kArray, value.facts.dtype, value.facts.rank};
    if (const Virtual* view = view_of(v)) input->cut = cut_of(view->index);
    return value.facts.rank >= 1;
  }
  input->rank = 0;
  const Rep rep = value.born_raw ? value.rep : value.type ? rep_of(reinterpret_cast<PyTypeObject*>(value.type)) : Rep::kNone;
  if (typed::is_numpy_scalar(rep)) {
    *input = {InputKind::kScalar, typed::dtype_of_rep(rep), 0};
    return true;
  }
  if (rep == Rep::kFloat) return input->kind = InputKind::kWeakFloat, true;
  if (rep == Rep::kComplex) return input->kind = InputKind::kWeakComplex, true;
  if (!value.born_raw && value.type && numpy::complex_dtype(reinterpret_cast<PyTypeObject*>(value.type), &input->dtype))
    return input->kind = InputKind::kScalar, true;
  if (rep == Rep::kBool) return input->kind = InputKind::kWeakBool, true;
  return input->kind = InputKind::kWeakInt, rep == Rep::kInt;
}

// Can this op be done with others at all? Asked of it alone, so that one that cannot does not spoil its neighbours.
bool Lowering::supported(const Op& o, const std::vector<ValueId>& operands) const {
  const DType result = t().facts[o.facts].dtype;
  const std::vector<SegmentInput> inputs = inputs_of(operands);
  return !inputs.empty() && (has_rule(o.fn, inputs, result) || loop_of_complex(o.fn, operands, result).known);
}

// Empty: one is no operand of an array op.
std::vector<SegmentInput> Lowering::inputs_of(std::span<const ValueId> operands) const {
  std::vector<SegmentInput> inputs(operands.size());
  for (size_t k = 0; k < operands.size(); ++k)
    if (!input_of(operands[k], &inputs[k])) return {};
  return inputs;
}

// The loop of NumPy's by which an op on complex numbers is done: kernels know none.
halide_gen::LoopTypes Lowering::loop_of_complex(ArrayFn fn, std::span<const ValueId> operands, DType result) const {
  const halide_gen::LoopTypes types = complex_loop(fn, inputs_of(operands), result);
  return types.known && same_in_pieces(fn, types.loop, result) ? types : halide_gen::LoopTypes{};
}

// One op on complex numbers leaves a group without a kernel. A comparison of what such an op gives makes a mask: it stays with it.
bool Lowering::goes_with_waiting(const Op& o, const std::vector<ValueId>& operands, bool complex) const {
  if (waiting_.empty() || complex == waiting_complex_) return true;
  const auto pending = [&](ValueId v) { return values_[v].pending; };
  return waiting_complex_ && t().facts[o.facts].dtype == DType::kBool && std::any_of(operands.begin(), operands.end(), pending);
}

// An array op that has run as a step: the facts of its result follow from those of its operands, as they do for the recorder. An operator
// in place gives back the array it has changed.
void Lowering::learn_array(const Op& o, ValueId i) {
  ArrayFacts facts = o.fn != ArrayFn::none ? t().facts[o.facts] : kNoFacts;
  SegmentInput ignored;
  if (o.kind == OpKind::inplace && input_of(in(o)[1], &ignored)) facts = values_[in(o)[0]].facts;
  if (facts.rank < 0) return;
  values_[i].facts = facts;
  learned_.push_back(i);
}

// Has the segment that waits room for one op more? What is held by some slot will leave it.
bool Lowering::fits(const std::vector<ValueId>& operands) const {
  size_t inputs = outside_.size();
  for (ValueId v : operands) inputs += !values_[v].pending && !outside_.contains(v);
  if (inputs > kMaxSegmentInputs || waiting_.size() >= kMaxSegmentOps) return false;
  if (waiting_.size() < kMaxSegmentOutputs) return true;
  return waiting_.size() - dead_waiting_ < kMaxSegmentOutputs;
}

bool Lowering::may_wait(const Op& o, std::vector<ValueId>* operands) const {
  if (o.fn == ArrayFn::none || (o.effects & kWritesMemory) || o.facts < 0 || o.snapshot < 0 || t().facts[o.facts].rank < 1) return false;
  return settings().kernels && array_operands(o, operands) && supported(o, *operands);
}

void Lowering::wait(const Op& o, ValueId i, const std::vector<ValueId>& operands) {
  // (What has been computed is in no memory yet from where it could be read in another order.)
  const bool rolls = o.fn == ArrayFn::roll && values_[operands[0]].pending && op(operands[0]).fn != ArrayFn::roll;
  const bool complex = loop_of_complex(o.fn, operands, t().facts[o.facts].dtype).known;
  if (rolls || !fits(operands) || !goes_with_waiting(o, operands, complex)) flush(i);
  if (waiting_.empty()) waiting_complex_ = complex;
  for (ValueId v : operands)
    if (!values_[v].pending) outside_.insert(v);
  put_off_step(o, i);
  values_[i].pending = true;
  values_[i].facts = t().facts[o.facts];
  learned_.push_back(i);
  waiting_.push_back(i);
  version_++;
}

// The op as NumPy does it, should it come to that. Operands get their objects then.
void Lowering::put_off_step(const Op& o, ValueId i) {
  std::vector<Lacking>& lacks = p_->array_lacks.emplace_back();
  for (int32_t k = 0; k < o.n_inputs; ++k) {
    const ValueId v = in(o)[k];
    if (const Virtual* what = virtual_of(v)) {
      lacks.push_back({what, {}});
    } else if (lacks_object(v)) {
      lacks.push_back({nullptr, loc(v)});
    }
  }
  const size_t before = p_->steps.size();
  Step s = python_step(o, i);
  p_->steps.resize(before);  // (boxes are made late)
  s.link = o.snapshot;
  p_->array_step.resize(t().ops.size(), -1);
  p_->array_step[i] = static_cast<int32_t>(p_->array_steps.size());
  p_->array_steps.push_back(s);
}

bool Lowering::must_flush(const Op& o, ValueId i) const {
  if (waiting_.empty() && sink_ == kNull) return false;
  switch (o.kind) {
    case OpKind::param:
    case OpKind::constant:
    case OpKind::enter:
    case OpKind::leave_frame:
    case OpKind::release:
      return false;
    case OpKind::guard_world:
      if (sink_ != kNull) return false;
      break;
    case OpKind::return_:
    case OpKind::jump:
    case OpKind::leave:
      return true;
    default:
      break;
  }
  if (sink_ != kNull) return true;
  for (int32_t k = 0; k < o.n_inputs; ++k)
    if (values_[in(o)[k]].pending) return o.kind != OpKind::guard_array || !(values_[in(o)[k]].facts == t().facts[o.facts]);
  if (op_inputs(o.kind) >= 0 && !op_has_result(o.kind) && is_pure(o.effects)) return false;  // guards
  if (is_pure(form(i).effects)) return false;
  return !planted(Fault::missed_alias);
}

SegmentSpec Lowering::spec_of(const std::vector<ValueId>& ops, Group* group, std::vector<ValueId>* inputs) {
  SegmentSpec spec;
  std::unordered_map<ValueId, int> known;
  for (size_t k = 0; k < ops.size(); ++k) {
    const Op& o = op(ops[k]);
    std::vector<ValueId> operands;
    array_operands(o, &operands);
    SegmentOp made;
    made.fn = o.fn;
    made.result = t().facts[o.facts].dtype;
    made.rank = t().facts[o.facts].rank;
    for (ValueId v : operands) {
      auto [it, fresh] = known.try_emplace(v, ~static_cast<int>(spec.inputs.size()));
      if (fresh) {
        SegmentInput input;
        input_of(v, &input);
        spec.inputs.push_back(input);
        if (inputs) inputs->push_back(v);
        group->inputs.push_back(loc(v).obj);
        group->facts.push_back(input.kind == InputKind::kArray && !is_virtual(v) ? ArrayFacts{input.dtype, input.rank} : kNoFacts);
      }
      made.operands.push_back(it->second);
    }
    made.elidable = elidable(o, ops[k]);
    if (o.fn == ArrayFn::roll) made.shifts = roll_of(o), made.viewed = o.n_inputs == 3;  // (without an axis it is shaped anew)
    known[ops[k]] = static_cast<int>(k);
    spec.ops.push_back(std::move(made));
  }
  return spec;
}

// When the ops run one by one, what was released while they waited dies after the last op before its release, unless it is an output.
// From there on no snapshot names it.
void Lowering::find_dead(Group* group, const std::vector<ValueId>& released) const {
  group->dead_after.resize(group->ops.size());
  for (ValueId v : released) {
    const int32_t reg = loc(v).obj;
    if (!loc(v).owned || reg < 0 || outlives_group(v)) continue;
    if (std::find(group->outputs.begin(), group->outputs.end(), reg) != group->outputs.end()) continue;
    const auto behind = std::lower_bound(group->ops.begin(), group->ops.end(), values_[v].released);
    if (behind != group->ops.begin()) group->dead_after[behind - group->ops.begin() - 1].push_back(reg);
  }
}

// Where the function returns next, what only its variables hold is not made: nobody reads it.
bool Lowering::is_unread(ValueId v, ValueId because) const {
  return op(because).kind == OpKind::return_ && v != in(op(because))[0] && values_[v].released == kNull;
}

// Outputs are what some slot still holds. If there is none the last op keeps the shape checks alive.
void Lowering::find_outputs(Group* group, SegmentSpec* spec, ValueId because) {
  for (size_t k = 0; k < group->ops.size(); ++k) {
    const ValueId v = group->ops[k];
    const bool needed = is_written(v) || (k + 1 == group->ops.size() && group->outputs.empty());
    const bool unread = is_unread(v, because);
    if (!needed && values_[v].released != kNull) continue;
    defined(v);  // (in run_one_by_one, what is unread too)
    group->unread |= unread && !needed;
    if (unread && !needed) continue;
    spec->ops[k].output = true;
    group->outputs.push_back(loc(v).obj);
  }
}

void Lowering::flush(ValueId because) {
  Group group;
  group.ops.assign(waiting_.begin(), waiting_.end());
  group.sink = sink_;
  waiting_.clear();
  outside_.clear();
  std::vector<ValueId> inputs;
  SegmentSpec spec = spec_of(group.ops, &group, &inputs);
  version_++;
  const ValueId first = group.ops.empty() ? sink_ : group.ops[0];
  const std::shared_ptr<ReducedGroup> reduced = begin_reduced(because);
  Step s;
  s.fn = step_segment;
  s.link = op(first).snapshot;
  s.exit = plan(first, 0);
  s.imm = static_cast<int32_t>(p_->groups.size());
  push(s);
  for (ValueId v : group.ops) values_[v].pending = false;
  find_outputs(&group, &spec, because);
  std::vector<ValueId> released;
  std::swap(released, deferred_);
  dead_waiting_ = 0;
  find_dead(&group, released);
  find_parts(&group, spec, released, because);
  const std::shared_ptr<LoopPlan> plan_of_all = plan_loops(group, spec, inputs);
  if (plan_of_all) fuse_sink(&group, spec, inputs, plan_of_all.get());
  group.loops = plan_of_all;
  if (reduced) reduce_group(reduced.get(), &group, spec, inputs, because);
  if (auto runner = group.ops.empty() ? nullptr : SegmentRunner::make(spec)) {
    group.runner = static_cast<int32_t>(p_->runners.size());
    p_->runners.push_back(std::move(runner));
  }
  if (!leads_elsewhere(op(because).kind)) group.after = plan(because, 0);
  p_->groups.push_back(std::move(group));
  end_sink();
  lend_virtuals();  // where NumPy did it
  find_released(&released, op(because));
  release(released, because);
}

}  // namespace dalsegno::replay
