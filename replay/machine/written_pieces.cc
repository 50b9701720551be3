#include "replay/machine/written_pieces.h"

#include <algorithm>
#include <cstring>

#include "numpy/errstate.h"

namespace dalsegno::replay {
namespace {

constexpr npy_intp kLeastInPlace = 8 << 10;    // bytes that are written: less is sooner copied than asked about
constexpr npy_intp kLeastInPieces = 20 << 10;  // the same: less is sooner made aside and copied

// False: it has more axes than a span.
bool set_of_operand(const SegmentOperand& operand, Span* out) {
  if (operand.as == SegmentOperand::kObject) {
    auto* array = reinterpret_cast<PyArrayObject*>(operand.object);
    return PyArray_Check(operand.object) && PyArray_NDIM(array) <= Span::kMaxRank && (set_of_array(array, out), true);
  }
  out->data = operand.view.data, out->rank = operand.view.rank;
  std::copy_n(operand.view.shape, out->rank, out->shape);
  std::copy_n(operand.view.strides, out->rank, out->strides);
  return true;
}

}  // namespace

Writes writes_of(const LoopPlan& plan, const std::vector<LoopInput>& inputs, const SegmentOperand* operands, const Span& target,
                 npy_intp item) {
  const npy_intp bytes = target.size() * item;
  if (plan.sink.stored < 0 || bytes < kLeastInPlace) return Writes::kAside;
  bool reads = false;
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k].as.kind != InputKind::kArray) continue;
    Span read;
    if (!set_of_operand(operands[k], &read)) return Writes::kAside;
    const npy_intp read_item = dtype_size(inputs[k].as.dtype);
    if (!overlap(read, read_item, target, item)) continue;
    if (read_item != item || !same_elements(read, target)) return Writes::kAside;
    reads = true;
  }
  if ((reads && (!plan.in_pieces || bytes < kLeastInPieces)) || !lies_apart(target, item) || !numpy::warns_unseen()) return Writes::kAside;
  return reads ? Writes::kInPieces : Writes::kInPlace;
}

bool may_write_pieces(const LoopPlan& plan, size_t ops) {
  if (!plan.writes || !plan.by_loops || plan.forwards || plan.sink.stored < 0) return false;
  if (plan.ops[static_cast<size_t>(plan.sink.stored)].out >= 0 || plan.ops.size() != ops + (plan.sink.view ? 0 : 1)) return false;
  return std::all_of(plan.ops.begin(), plan.ops.end(), [](const LoopOp& op) { return array_fn_is_expr(op.fn); }) && may_be_blocks(plan);
}

rt::Over WrittenPieces::over(int watched) {
  watched_ = watched;
  const auto leave = [](void* self, int64_t first, int64_t end) {
    auto& pieces = *static_cast<WrittenPieces*>(self);
    const std::lock_guard<std::mutex> lock(pieces.mutex_);
    pieces.left()[pieces.n_left_++] = {first, end};
  };
  return {0, 0, watched, kMostLeft, leave, this};
}

// Of what has the target's shape, or is broadcast to it: elements of one of its rows.
Span WrittenPieces::part(const Span& of, const Run& run) const {
  Span made = of;
  made.rank = 0;
  int64_t at = run.first;
  for (int d = target_.rank - 1; d >= 0; at /= target_.shape[d--]) {
    const int own = d - (target_.rank - of.rank);
    if (own < 0 || of.shape[own] == 1) continue;
    made.data += at % target_.shape[d] * of.strides[own];
    if (d + 1 == target_.rank) made.rank = 1, made.shape[0] = run.end - run.first, made.strides[0] = of.strides[own];
  }
  return made;
}

void WrittenPieces::redo(const Run& run, int* raised) const {
  std::vector<Span> inputs(plan_.inputs.size()), results(plan_.ops.size());
  for (size_t k = 0; k < inputs.size(); ++k) inputs[k] = part(inputs_[k], run);
  Span shape = part(target_, run);
  if (shape.rank == 0) shape.rank = 1, shape.shape[0] = 1, shape.strides[0] = item_;
  for (size_t k = 0; k < results.size(); ++k) {
    results[k] = shape, results[k].data = nullptr;
    results[k].lay_out(dtype_size(plan_.ops[k].result));
  }
  results[static_cast<size_t>(plan_.sink.stored)].data = made();
  run_in_blocks(plan_, inputs.data(), shape, results.data(), memory_, raised);
  for (npy_intp i = 0; i < shape.shape[0]; ++i)
    std::memcpy(shape.data + i * shape.strides[0], made() + i * item_, static_cast<size_t>(item_));
}

std::vector<int> WrittenPieces::finish() {
  if (n_left_ == 0) return {};
  std::vector<int> raised(plan_.ops.size());
  const int64_t row = target_.shape[target_.rank - 1];
  for (const Run* run = left(); run < left() + n_left_; ++run) {
    for (int64_t at = run->first, end = 0; at < run->end; at = end) {
      end = std::min({run->end, at + kMostRun, at / row * row + row});
      redo({at, end}, raised.data());
    }
  }
  for (int& flags : raised) flags &= watched_;
  if (std::all_of(raised.begin(), raised.end(), [](int flags) { return flags == 0; })) raised.clear();
  return raised;
}

}  // namespace dalsegno::replay
