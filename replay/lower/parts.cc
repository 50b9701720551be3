// Cutting a group of array ops into parts, for arrays that are large (replay/machine/parts.cc says when it is done so).
//
// Eager drops what an instruction has done with before the next one makes its result. A kernel makes all its outputs first. An example:
//
//     step = (x * x - a) / (2.0 * x)        # the old step dies when the new one is bound to its name
//     x = x - step                          # the old x dies
//
// At most two arrays more than before exist at once in eager: `x * x - a`, `2.0 * x`. A kernel for all of it makes two, step and x, and
// they are more than eager has where the old ones would have died: had x been new in every turn, one. So lives are counted: eager's most is
// the limit, and each part is the longest that keeps to it. Of an op for which even a kernel of its own makes too much, as eager computes
// it into a dying operand (numpy/elide.h), NumPy does just that.
#include <algorithm>

#include "numpy/elide.h"
#include "replay/lower/lower.h"

namespace dalsegno::replay {
namespace {

constexpr size_t kMaxCutOps = 64;  // the search is cubic

// One array: made by op `born` (-1: it was there), gone once `dies` ops are done (kStays: not in this group).
struct Life {
  int64_t bytes;  // of an element; how many elements there are is the same for all, or nothing is known of it
  int born;
  int dies;
};
constexpr int kStays = INT32_MAX;

class Cutter {
 public:
  // into[k]: the life that eager computes op k into, or -1.
  Cutter(std::vector<Life> lives, std::vector<int> into)
      : lives_(std::move(lives)), into_(std::move(into)), n_(static_cast<int>(into_.size())) {}

  struct Part {
    int first, end;
    bool kernel;
  };

  // Empty: at once the ops make no more than eager.
  std::vector<Part> cut() {
    const int64_t limit = eager_most();
    std::vector<Part> parts;
    if (before(0) + made(0, n_) <= limit) return parts;
    for (int k = 0; k < n_;) {
      int end = -1;
      for (int e = k + 1; e <= n_; ++e)
        if (before(k) + made(k, e) <= limit) end = e;
      parts.push_back({k, std::max(end, k + 1), end > 0});
      if (end < 0 && into_[k] >= 0) lives_[into_[k]].dies = k;
      k = parts.back().end;
    }
    return parts;
  }

 private:
  // Alive before op k, of what the ops before it have made or was there.
  int64_t before(int k) const {
    int64_t sum = 0;
    for (const Life& life : lives_) sum += life.born < k && life.dies > k ? life.bytes : 0;
    return sum;
  }

  // Outputs of a kernel for ops [k, end).
  int64_t made(int k, int end) const {
    int64_t sum = 0, last = 0;
    for (const Life& life : lives_) {
      if (life.born == end - 1) last = life.bytes;
      sum += life.born >= k && life.born < end && life.dies > end ? life.bytes : 0;
    }
    return sum > 0 ? sum : last;
  }

  int64_t eager_most() const {
    std::vector<Life> lives = lives_;
    for (int k = 0; k < n_; ++k)
      if (into_[k] >= 0) lives[into_[k]].dies = k;
    int64_t most = 0;
    for (int k = 0; k < n_; ++k) {
      int64_t sum = 0;
      for (const Life& life : lives) sum += life.born <= k && life.dies > k ? life.bytes : 0;
      most = std::max(most, sum);
    }
    return most;
  }

  std::vector<Life> lives_;
  const std::vector<int> into_;
  const int n_;
};

}  // namespace

// Bytes of an element, where the value is or may be an array of this rank.
int64_t Lowering::item_bytes(ValueId v, int rank) const {
  const Value& value = values_[v];
  if (value.facts.rank >= 0) return value.facts.rank == rank ? dtype_size(value.facts.dtype) : 0;
  return value.type || value.rep != Rep::kNone ? 0 : dtype_size(DType::kFloat64);
}

// May it be an array whose memory goes with it? A view has none of its own, and a global's stays where it is.
bool Lowering::has_memory(ValueId v) const {
  const auto is_key = [](OpKind kind) { return kind == OpKind::build_slice || kind == OpKind::build_tuple || kind == OpKind::constant; };
  const Op& o = op(v);
  if (values_[v].view_by != kNull || o.kind == OpKind::load_global || is_key(o.kind)) return false;
  return o.kind != OpKind::get_item || !is_key(op(in(o)[1]).kind);
}

Group Lowering::make_part(const Group& group, size_t first, size_t end, bool kernel, ValueId because) {
  Group part;
  part.ops.assign(group.ops.begin() + static_cast<int64_t>(first), group.ops.begin() + static_cast<int64_t>(end));
  SegmentSpec spec = spec_of(part.ops, &part);
  const ValueId next = end < group.ops.size() ? group.ops[end] : because;
  for (size_t k = 0; k < part.ops.size(); ++k) {
    const ValueId v = part.ops[k];
    const bool needed = is_written(v) || (k + 1 == part.ops.size() && part.outputs.empty());
    const bool dead = values_[v].released != kNull && values_[v].released < next;
    if ((dead || (next == because && is_unread(v, because))) && !needed) continue;
    spec.ops[k].output = true;
    part.outputs.push_back(loc(v).obj);
  }
  part.dead_after.assign(group.dead_after.begin() + static_cast<int64_t>(first), group.dead_after.begin() + static_cast<int64_t>(end));
  if (auto runner = kernel ? SegmentRunner::make(spec) : nullptr) {
    part.runner = static_cast<int32_t>(p_->part_runners.size());
    p_->part_runners.push_back(std::move(runner));
  }
  return part;
}

void Lowering::find_parts(Group* group, const SegmentSpec& spec, const std::vector<ValueId>& released, ValueId because) {
  const auto& ops = group->ops;
  if (ops.size() > kMaxCutOps || spec.ops.empty()) return;
  int rank = 0;
  for (const SegmentOp& o : spec.ops) rank = std::max(rank, o.rank);
  const auto position = [&](ValueId release) { return static_cast<int>(std::lower_bound(ops.begin(), ops.end(), release) - ops.begin()); };
  std::vector<Life> lives;
  std::unordered_map<ValueId, int> number;
  for (size_t k = 0; k < ops.size(); ++k) {
    const ValueId v = ops[k], dies = is_written(v) ? kNull : values_[v].released;
    number[v] = static_cast<int>(lives.size());
    lives.push_back({item_bytes(v, rank), static_cast<int>(k),
                     dies == kNull ? is_unread(v, because) ? static_cast<int>(ops.size()) : kStays : position(dies)});
  }
  for (ValueId v : released) {
    if (outlives_group(v)) continue;
    if (!loc(v).owned || loc(v).obj < 0 || !number.try_emplace(v, static_cast<int>(lives.size())).second) continue;
    lives.push_back({has_memory(v) ? item_bytes(v, rank) : 0, -1, position(values_[v].released)});
  }
  for (const bool large : {false, true}) {
    std::vector<int> into(ops.size(), -1);
    for (size_t k = 0; k < ops.size() && large; ++k) {
      std::vector<ValueId> operands;
      array_operands(op(ops[k]), &operands);
      for (size_t i = 0; i < operands.size() && into[k] < 0; ++i) {
        const auto found = number.find(operands[i]);
        if (!(spec.ops[k].elidable >> i & 1) || found == number.end()) continue;
        if (lives[found->second].bytes == lives[k].bytes) into[k] = found->second;
      }
    }
    for (const auto& part : Cutter(lives, into).cut())
      group->parts[large].push_back(
          make_part(*group, static_cast<size_t>(part.first), static_cast<size_t>(part.end), part.kernel, because));
  }
}

}  // namespace dalsegno::replay
