#include "replay/segment/casts.h"

#include <algorithm>
#include <map>
#include <utility>

#include "halide_gen/plan/rules.h"
#include "trace/fault.h"

namespace dalsegno::replay {
namespace {

using halide_gen::KernelOp;
using halide_gen::LoopTypes;
using halide_gen::OperandType;
using halide_gen::Treatment;
using halide_gen::Weak;

// Cost of an element, measured: a vector addition in the cache is the unit (0.03 ns).
constexpr int kLoopWeight = 100;  // an elementary function
constexpr int kMemoryWeight = 4;  // an operand's way through memory

OperandType input_type(const SegmentInput& input) {
  switch (input.kind) {
    case InputKind::kWeakInt:
      return {DType::kInt64, Weak::kInt};
    case InputKind::kWeakFloat:
      return {DType::kFloat64, Weak::kFloat};
    case InputKind::kWeakBool:
      return {DType::kBool, Weak::kNo};  // Python's bool is NumPy's
    case InputKind::kWeakComplex:
      return {DType::kComplex128, Weak::kNo};  // (there is no rule for it)
    default:
      return {input.dtype, Weak::kNo};
  }
}

// The loop, where the result is the one NumPy gave and a kernel can compute it exactly.
LoopTypes rule_of(ArrayFn fn, const std::vector<OperandType>& operands, DType result) {
  const LoopTypes t = halide_gen::resolve(fn, operands, result);
  return t.known && t.result == result && halide_gen::treatment(fn, t.loop, t.result) != Treatment::kNone ? t : LoopTypes{};
}

class Lowering {
 public:
  explicit Lowering(const SegmentSpec& spec) : spec_(spec) {}

  LoweredSegment run() {
    for (const SegmentInput& input : spec_.inputs)
      if (!is_known(input_type(input).dtype)) return {};
    if (spec_.inputs.size() > kMaxSegmentInputs || spec_.ops.empty() || spec_.ops.size() > kMaxSegmentOps) return {};
    for (const SegmentOp& op : spec_.ops) {
      if (!add(op)) return {};
    }
    std::sort(out_.reaches.begin(), out_.reaches.end());
    out_.reaches.erase(std::unique(out_.reaches.begin(), out_.reaches.end()), out_.reaches.end());
    out_.weight += kMemoryWeight * static_cast<int>(out_.sources.size() + out_.outputs.size());
    out_.ok = !out_.outputs.empty();
    return std::move(out_);
  }

 private:
  bool is_array(int v) const { return v >= 0 || spec_.inputs[~v].kind == InputKind::kArray; }

  bool valid(int v) const { return v >= 0 ? v < static_cast<int>(values_.size()) : ~v < static_cast<int>(spec_.inputs.size()); }

  OperandType type_of(int v) const { return v >= 0 ? OperandType{spec_.ops[v].result, Weak::kNo} : input_type(spec_.inputs[~v]); }

  int source(int input, bool scalar, DType dtype) {
    for (size_t i = 0; i < out_.sources.size(); ++i) {
      const KernelSource& s = out_.sources[i];
      if (s.input == input && s.shifts.empty() && (!scalar || s.dtype == dtype)) return ~static_cast<int>(i);
    }
    out_.sources.push_back({input, scalar, dtype});
    return ~static_cast<int>(out_.sources.size() - 1);
  }

  // The value as a kernel operand of the dtype: scalars are converted by the runner, arrays by a cast.
  int operand(int v, DType dtype) {
    if (!is_array(v)) return source(~v, true, dtype);
    const DType have = type_of(v).dtype;
    const int value = v >= 0 ? values_[v] : source(~v, false, have);
    if (have == dtype) return value;
    const auto known = casts_.find({v, dtype});
    if (known != casts_.end()) return known->second;
    return casts_[{v, dtype}] = push({ArrayFn::astype, have, dtype, {value}, false});
  }

  // What is rolled is an input that is read elsewhere: a source of its own.
  bool add_roll(const SegmentOp& op) {
    const int v = op.operands.size() == 1 ? op.operands[0] : 0;
    if (op.operands.size() != 1 || !valid(v) || !is_array(v) || type_of(v).dtype != op.result) return false;
    const int of = v >= 0 ? values_[v] : source(~v, false, op.result);
    if (of >= 0) return false;
    KernelSource made = out_.sources[static_cast<size_t>(~of)];
    for (const Shift& shift : op.shifts) {
      const auto same = std::find_if(made.shifts.begin(), made.shifts.end(), [&](const Shift& s) { return s.axis == shift.axis; });
      if (same == made.shifts.end())
        made.shifts.push_back(shift);
      else
        same->by += shift.by;
    }
    const auto known = std::find(out_.sources.begin(), out_.sources.end(), made);
    int value = ~static_cast<int>(known - out_.sources.begin());
    if (known == out_.sources.end()) out_.sources.push_back(made);
    if (op.output) value = push({ArrayFn::astype, op.result, op.result, {value}, true}), add_output(op);
    values_.push_back(value);
    reach_.push_back(v >= 0 ? reach_[v] : uint64_t{1} << ~v);
    out_.reaches.push_back(reach_.back());
    out_.copied.push_back(made.input);
    return out_.rolls = true;
  }

  void add_output(const SegmentOp& op) {
    out_.outputs.push_back(op.result);
    out_.viewed.push_back(op.viewed);
  }

  int push(KernelOp op) {
    const bool loop = halide_gen::treatment(op.fn, op.loop, op.result) == Treatment::kLoop;
    out_.weight += loop ? kLoopWeight : 1;
    out_.ops.push_back(std::move(op));
    return static_cast<int>(out_.ops.size()) - 1;
  }

  bool add(const SegmentOp& op) {
    if (op.fn == ArrayFn::roll) return add_roll(op);
    std::vector<OperandType> types;
    uint64_t reach = 0;
    for (int v : op.operands) {
      if (!valid(v)) return false;
      types.push_back(type_of(v));
      if (is_array(v)) reach |= v >= 0 ? reach_[v] : uint64_t{1} << ~v;
    }
    if (reach == 0) return false;  // scalars only: NumPy would not make an array
    const LoopTypes t = rule_of(op.fn, types, op.result);
    if (!t.known) return false;
    KernelOp kernel_op{op.fn, t.loop, t.result, {}, op.output};
    if (planted(Fault::wrong_kernel_rule) && op.fn == ArrayFn::subtract) kernel_op.fn = ArrayFn::add;
    for (size_t k = 0; k < op.operands.size(); ++k) {
      kernel_op.operands.push_back(operand(op.operands[k], halide_gen::operand_dtype(kernel_op, static_cast<int>(k))));
    }
    note_layout_rules(op, t.loop);
    values_.push_back(push(std::move(kernel_op)));
    reach_.push_back(reach);
    out_.reaches.push_back(reach);
    if (op.output) add_output(op);
    return true;
  }

  void note_layout_rules(const SegmentOp& op, DType loop) {
    out_.needs_one_run |= halide_gen::looks_at_position(op.fn, loop);
    if (halide_gen::looks_at_strides(op.fn)) {
      out_.needs_several = true;
      if (op.operands[1] < 0 && is_array(op.operands[1])) out_.unbroadcast.push_back(~op.operands[1]);
    }
    if (op.fn == ArrayFn::astype && op.operands[0] < 0) out_.copied.push_back(~op.operands[0]);
  }

  const SegmentSpec& spec_;
  LoweredSegment out_;
  std::vector<int> values_;      // per spec op: its kernel op
  std::vector<uint64_t> reach_;  // per spec op
  std::map<std::pair<int, DType>, int> casts_;
};

}  // namespace

bool has_rule(ArrayFn fn, const std::vector<SegmentInput>& operands, DType result) {
  if (fn == ArrayFn::roll)
    return operands.size() == 1 && is_known(result) && operands[0].kind == InputKind::kArray && operands[0].dtype == result;
  std::vector<OperandType> types;
  bool array = false;
  for (const SegmentInput& input : operands) {
    types.push_back(input_type(input));
    array |= input.kind == InputKind::kArray;
  }
  return array && is_known(result) && rule_of(fn, types, result).known;
}

LoweredSegment lower_segment(const SegmentSpec& spec) { return Lowering(spec).run(); }

}  // namespace dalsegno::replay
