#include "replay/machine/written_pieces.h"

#include <algorithm>

#include "numpy/errstate.h"
#include "replay/memory/strided_copy.h"

namespace dalsegno::replay {
namespace {

constexpr npy_intp kLeastInPlace = 8 << 10;     // bytes that are written: less is sooner copied than asked about
constexpr npy_intp kLeastInPieces = 256 << 10;  // the same: less fits the second cache, made aside
constexpr int64_t kPiece = 48 << 10;            // bytes, about

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

std::vector<int64_t> WrittenPieces::cut(int rank, const intptr_t* shape, int64_t unit, bool*) {
  if (rank != target_.rank || rank == 0 || !std::equal(shape, shape + rank, target_.shape)) return {};
  const int64_t elements = kPiece / item_;
  int64_t before = 1;
  row_ = target_.size();
  for (axis_ = 0;; before *= shape[axis_++]) {
    row_ /= shape[axis_];
    if (axis_ + 1 == rank || row_ <= elements / 2) break;
  }
  const int64_t extent = shape[axis_], together = unit > row_ ? unit / row_ : 1;  // rows that the kernel does at once
  if ((together * row_) % unit != 0 || together > extent || (before > 1 && extent % together != 0)) return {};
  if (together * row_ * item_ > kMostPiece) return {};
  const int64_t most = std::max<int64_t>(1, elements / (row_ * together)), all = (extent + together - 1) / together;
  const int64_t pieces = (all + most - 1) / most, rows = (all + pieces - 1) / pieces * together;
  begins_.clear();
  for (int64_t place = 0; place < before; ++place)
    for (int64_t at = 0; at < extent; at += rows) begins_.push_back((place * extent + at) * row_);
  left_.assign(begins_.size(), 0);
  begins_.push_back(before * extent * row_);
  return begins_;
}

WrittenPieces::Box WrittenPieces::box(size_t piece) const {
  Box box{};
  npy_intp first = begins_[piece] / row_;
  box.rows = (begins_[piece + 1] - begins_[piece]) / row_;
  for (int d = axis_; d >= 0; --d) box.at[d] = first % target_.shape[d], first /= target_.shape[d];
  return box;
}

// The box of what has the target's shape, or is broadcast to it: the axis that is cut is the first one left.
Span WrittenPieces::part(const Span& of, const Box& box) const {
  Span made = of;
  const int more = target_.rank - of.rank, gone = std::max(0, axis_ - more);
  for (int d = std::max(0, more); d <= axis_; ++d)
    if (of.shape[d - more] != 1) made.data += box.at[d] * of.strides[d - more];
  made.rank = of.rank - gone;
  std::copy_n(of.shape + gone, made.rank, made.shape);
  std::copy_n(of.strides + gone, made.rank, made.strides);
  if (axis_ >= more && made.rank > 0 && made.shape[0] != 1) made.shape[0] = box.rows;
  return made;
}

void WrittenPieces::put(const Box& box, const char* data) const {
  const Span to = part(target_, box);
  Span from = to;
  from.lay_out(item_);
  copy_strided(data, to.data, {to.rank, from.shape, from.strides, to.strides, static_cast<size_t>(item_)});
}

void WrittenPieces::take(int piece, const char* data, int64_t, int raised) {
  const auto i = static_cast<size_t>(piece);
  if (!data || (raised & watched_) != 0)
    left_[i] = 1;
  else
    put(box(i), data);
}

std::vector<int> WrittenPieces::finish(char* memory) {
  std::vector<int> raised;
  std::vector<Span> inputs(plan_.inputs.size()), results(plan_.ops.size());
  for (size_t i = 0; i < left_.size(); ++i) {
    if (left_[i] == 0) continue;
    raised.resize(plan_.ops.size());
    const Box at = box(i);
    const Span shape = part(target_, at);
    for (size_t k = 0; k < inputs.size(); ++k) inputs[k] = part(inputs_[k], at);
    for (size_t k = 0; k < results.size(); ++k) {
      results[k] = shape, results[k].data = nullptr;
      results[k].lay_out(dtype_size(plan_.ops[k].result));
    }
    char* made = results[static_cast<size_t>(plan_.sink.stored)].data = memory + kBlockMemory;
    run_in_blocks(plan_, inputs.data(), shape, results.data(), memory, raised.data());
    put(at, made);
  }
  for (int& flags : raised) flags &= watched_;
  if (std::all_of(raised.begin(), raised.end(), [](int flags) { return flags == 0; })) raised.clear();
  return raised;
}

}  // namespace dalsegno::replay
