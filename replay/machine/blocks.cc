// Large groups of array ops by NumPy's own inner loops, while their kernel is being compiled: all ops for a block of elements, then for the
// next one. What nobody sees stays in the first cache, where eager writes arrays and reads them again. (Vectorised interpretation: Boncz,
// Zukowski, Nes, MonetDB/X100: Hyper-pipelining query execution, CIDR 2005.)
#include <array>

#include "halide_gen/runtime/flags.h"
#include "replay/machine/span.h"
#include "trace/fault.h"

namespace dalsegno::replay {
namespace {

constexpr npy_intp kShortestRow = 8;  // below, calls of loops are most of the time
constexpr size_t kMostOperands = 3;   // of an op

// A block is a part of a row, or several rows. An op whose operands' elements follow one another from row to row does all of it by one call
// of its loop, others row by row.
class Blocks {
 public:
  Blocks(const LoopPlan& plan, const Span* inputs, const Span& shape, const Span* results, char* memory)
      : shape_(shape), row_(shape.shape[shape.rank - 1]) {
    std::vector<int> slots;
    find_slots(plan, &slots);
    const auto result = [&](size_t k) {
      const npy_intp item = dtype_size(plan.ops[k].result);
      if (results[k].data) return Operand{results[k].data, item, Operand::kElement};
      return Operand{memory + slots[k] * kBlockBytes, item, Operand::kInBlock};
    };
    npy_intp widest = 1;
    bool rows = false;
    for (size_t k = 0; k < plan.ops.size(); ++k) {
      const LoopOp& op = plan.ops[k];
      Op& made = ops_.emplace_back(Op{&op.loop});
      for (const int32_t v : op.operands)
        made.operands[made.n++] = v >= 0 ? result(static_cast<size_t>(v)) : input(inputs[~v], dtype_size(plan.inputs[~v].dtype));
      made.by_rows =
          std::any_of(made.operands.begin(), made.operands.begin() + made.n, [](const Operand& o) { return o.from == Operand::kRow; });
      made.operands[made.n++] = result(k);
      widest = std::max(widest, made.operands[made.n - 1].stride);
      rows |= made.by_rows;
    }
    block_ = kBlockBytes / widest;
    if (!rows) row_ = shape.size();
  }

  int run(int* raised) {
    const npy_intp size = shape_.size(), rows = std::max<npy_intp>(1, block_ / row_);
    Place at;
    for (; at.element < size; advance(&at, rows)) {
      const npy_intp together = std::min(rows, (size - at.element) / row_);
      for (npy_intp begin = 0; begin < row_; begin += block_) {
        const npy_intp length = std::min(block_, row_ - begin);
        for (size_t k = 0; k < ops_.size(); ++k) {
          const Op& op = ops_[k];
          op.by_rows ? each_row(op, at, begin, length, together) : call(op, at, begin, 0, length * together);
          const int came = rt::all_raised();  // (comparisons clear flags)
          raised_ |= came;
          if (raised && came != 0) raised[k] |= came, rt::clear_all_raised();
        }
      }
    }
    return raised_;
  }

  static bool find_slots(const LoopPlan& plan, std::vector<int>* slots);

 private:
  struct Operand {
    char* data = nullptr;
    npy_intp stride = 0;                       // from element to element
    enum { kElement, kInBlock, kRow } from{};  // what it is counted from
    npy_intp rows[Span::kMaxRank] = {};        // kRow: strides of the axes before the last one
  };
  struct Op {
    const numpy::InnerLoop* loop;
    std::array<Operand, kMostOperands + 1> operands{};  // the last one is the result
    int n = 0;
    bool by_rows = false;
  };
  // Where a row begins.
  struct Place {
    npy_intp element = 0;
    npy_intp axes[Span::kMaxRank] = {};
  };

  Operand input(const Span& in, npy_intp item) const {
    const int shift = shape_.rank - in.rank;
    const auto along = [&](int d) { return d < shift || in.shape[d - shift] == 1 ? 0 : in.strides[d - shift]; };
    Operand made{in.data, along(shape_.rank - 1)};
    if (in.rank == 0 || shape_.rank == 1 || (same_shape(in, shape_) && is_contiguous(in, item))) return made;
    made.from = Operand::kRow;
    for (int d = 0; d + 1 < shape_.rank; ++d) made.rows[d] = along(d);
    return made;
  }

  void advance(Place* at, npy_intp rows) const {
    at->element += rows * row_;
    for (int d = shape_.rank - 2; d >= 0 && rows > 0; --d) {
      at->axes[d] += rows;
      if (at->axes[d] < shape_.shape[d]) return;
      rows = at->axes[d] / shape_.shape[d];
      at->axes[d] %= shape_.shape[d];
    }
  }

  void each_row(const Op& op, Place at, npy_intp begin, npy_intp length, npy_intp rows) const {
    for (npy_intp i = 0; i < rows; ++i, advance(&at, 1)) call(op, at, begin, i * length, length);
  }

  // `behind`: elements of the block that come before.
  void call(const Op& op, const Place& at, npy_intp begin, npy_intp behind, npy_intp count) const {
    char* data[kMostOperands + 1];
    npy_intp strides[kMostOperands + 1];
    for (int i = 0; i < op.n; ++i) {
      const Operand& operand = op.operands[static_cast<size_t>(i)];
      const bool fault = planted(Fault::first_block) && i + 1 < op.n;
      const npy_intp element =
          operand.from == Operand::kInBlock ? behind : begin + (operand.from == Operand::kRow || fault ? 0 : at.element);
      data[i] = operand.data + element * operand.stride;
      strides[i] = operand.stride;
      for (int d = 0; operand.from == Operand::kRow && !fault && d + 1 < shape_.rank; ++d) data[i] += at.axes[d] * operand.rows[d];
    }
    op.loop->function(data, &count, strides, op.loop->data);
  }

  const Span& shape_;
  std::vector<Op> ops_;
  npy_intp row_, block_ = 0;  // elements
  int raised_ = 0;
};

// A slot is free again behind the op that reads it last. False: there are too few.
bool Blocks::find_slots(const LoopPlan& plan, std::vector<int>* slots) {
  std::vector<size_t> last(plan.ops.size());
  for (size_t k = 0; k < plan.ops.size(); ++k) {
    last[k] = k;
    for (const int32_t v : plan.ops[k].operands)
      if (v >= 0) last[static_cast<size_t>(v)] = k;
  }
  std::array<size_t, kMostBlockSlots> taken{};  // until behind which op, counted from 1
  slots->clear();
  for (size_t k = 0; k < plan.ops.size(); ++k) {
    const auto free = std::find_if(taken.begin(), taken.end(), [&](size_t until) { return until <= k; });
    if (free == taken.end()) return false;
    *free = last[k] + 1;
    slots->push_back(static_cast<int>(free - taken.begin()));
  }
  return true;
}

bool may_be_block(const LoopOp& op) { return op.exact && op.shifts.empty() && !op.viewed && op.operands.size() <= kMostOperands; }

}  // namespace

bool may_be_blocks(const LoopPlan& plan) {
  std::vector<int> slots;
  return std::all_of(plan.ops.begin(), plan.ops.end(), may_be_block) && Blocks::find_slots(plan, &slots);
}

bool suits_blocks(const LoopPlan& plan, const Span* inputs, Span* shape) {
  shape->rank = 0;
  std::vector<Span> results(plan.ops.size());
  for (size_t k = 0; k < plan.ops.size(); ++k) {
    const LoopOp& op = plan.ops[k];
    if (!may_be_block(op)) return false;
    results[k].rank = 0;
    for (const int32_t v : op.operands) {
      const Span& in = v >= 0 ? results[static_cast<size_t>(v)] : inputs[~v];
      if (!broadcast(in, &results[k]) || !is_c_like(in)) return false;
    }
    if (k > 0 && !same_shape(results[k], results[0])) return false;
    results[k].lay_out(dtype_size(op.result));
  }
  if (results.empty() || results[0].rank == 0) return false;
  *shape = results[0];
  std::vector<int> slots;
  return shape->size() > 0 && shape->shape[shape->rank - 1] >= kShortestRow && Blocks::find_slots(plan, &slots);
}

int run_in_blocks(const LoopPlan& plan, const Span* inputs, const Span& shape, const Span* results, char* memory, int* raised) {
  rt::clear_all_raised();
  return Blocks(plan, inputs, shape, results, memory).run(raised);
}

}  // namespace dalsegno::replay
