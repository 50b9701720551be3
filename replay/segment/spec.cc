#include "replay/segment/spec.h"

#include <algorithm>

namespace dalsegno::replay {
namespace {

bool is_truth(const SegmentSpec& spec, int operand) {
  if (operand >= 0) return spec.ops[static_cast<size_t>(operand)].result == DType::kBool;
  const SegmentInput& input = spec.inputs[static_cast<size_t>(~operand)];
  if (input.kind == InputKind::kArray || input.kind == InputKind::kScalar) return input.dtype == DType::kBool;
  return input.kind == InputKind::kWeakBool;
}

// Does the result have a dtype object that is its first operand's, if that is of its dtype? (where() and astype() are no ufuncs.)
bool hands_on(const SegmentSpec& spec, const SegmentOp& op) {
  const bool compares = op.fn >= ArrayFn::less && op.fn <= ArrayFn::not_equal;
  if (compares) return std::all_of(op.operands.begin(), op.operands.end(), [&](int operand) { return is_truth(spec, operand); });
  return op.fn != ArrayFn::where && op.fn != ArrayFn::astype && op.fn != ArrayFn::signbit && !op.operands.empty();
}

}  // namespace

int handed_from(const SegmentSpec& spec, int op) {
  const SegmentOp& o = spec.ops[static_cast<size_t>(op)];
  if (!hands_on(spec, o)) return -1;
  const int first = o.operands[0];
  if (first >= 0) return spec.ops[static_cast<size_t>(first)].result == o.result ? handed_from(spec, first) : -1;
  const SegmentInput& input = spec.inputs[static_cast<size_t>(~first)];
  return input.kind == InputKind::kArray && input.dtype == o.result ? ~first : -1;
}

bool elides_right(const SegmentSpec& spec) {
  return std::any_of(spec.ops.begin(), spec.ops.end(), [](const SegmentOp& op) { return (op.elidable & 2) != 0; });
}

}  // namespace dalsegno::replay
