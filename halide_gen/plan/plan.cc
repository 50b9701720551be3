#include "halide_gen/plan/plan.h"

#include <algorithm>

#include "halide_gen/plan/rules.h"

namespace dalsegno::halide_gen {
namespace {

constexpr int kScratchBytes = 24 * 1024;  // scratch of all live tiles together: stays in the first-level cache
constexpr int kMinTile = 256, kMaxTile = 1024;

class Planner {
 public:
  explicit Planner(const KernelSpec& spec) : spec_(spec), n_(static_cast<int>(spec.ops.size())) {}

  Plan run() {
    find_depths();
    find_stored();
    for (int d = 0; d <= max_depth_; ++d) {
      for (int i = 0; i < n_; ++i) {
        if (is_loop(i) && depth_[i] == d) add_stage({i}, i);
      }
      std::vector<int> expressions;
      for (int i = 0; i < n_; ++i) {
        if (!is_loop(i) && depth_[i] == d) expressions.push_back(i);
      }
      if (!expressions.empty()) add_stage(expressions, -1);
    }
    assign_places();
    for (int i = 0; i < n_; ++i) plan_.guards_invalid |= float_to_int(op(i).fn, op(i).loop, op(i).result);
    return plan_;
  }

 private:
  const KernelOp& op(int i) const { return spec_.ops[i]; }
  bool is_loop(int i) const { return treatment(op(i).fn, op(i).loop, op(i).result) == Treatment::kLoop; }

  // Loops of depth d run after the expressions of depth d - 1 and before those of depth d.
  void find_depths() {
    depth_.assign(n_, 0);
    find_foldable();
    for (int i = 0; i < n_; ++i) {
      const bool apart = is_loop(i) || (foldable_[i] && raises_flags(op(i).fn, op(i).loop, op(i).result));
      for (int v : op(i).operands) {
        if (v >= 0) depth_[i] = std::max(depth_[i], depth_[v] + (apart ? 1 : 0));
      }
      max_depth_ = std::max(max_depth_, depth_[i]);
    }
  }

  // What a compiler may know: (i == i), (i - i), and what follows from such values and from bools, of which there are two. It would
  // compute with them by itself, and raise no flags. An op that raises some reads them from memory, as an op of another depth.
  void find_foldable() {
    const auto known = [&](int v) { return v >= 0 && foldable_[v]; };
    for (int i = 0; i < n_; ++i) {
      const auto& v = op(i).operands;
      bool foldable = std::all_of(v.begin(), v.end(), known);
      if (!is_float(op(i).result)) foldable = true;
      if (op(i).fn == ArrayFn::astype && op(i).loop == DType::kBool) foldable = true;
      if (op(i).fn == ArrayFn::where) foldable |= known(v[1]) || known(v[2]);
      foldable_.push_back(foldable && !is_loop(i));
    }
  }

  // An op is stored if another stage reads it, if it leaves the kernel, or if nothing else makes sure that all its lanes are
  // computed: LLVM drops dead operations and masks those that are only selected from, and their flags would be missed.
  void find_stored() {
    stored_.assign(n_, false);
    std::vector<bool> anchored(n_, false);
    for (int i = n_ - 1; i >= 0; --i) {
      if (op(i).output || is_loop(i)) stored_[i] = true;
      if (!stored_[i] && !anchored[i] && raises_flags(op(i).fn, op(i).loop, op(i).result)) stored_[i] = true;
      const bool alive = stored_[i] || anchored[i];
      for (size_t k = 0; k < op(i).operands.size(); ++k) {
        const int v = op(i).operands[k];
        if (v < 0) continue;
        if (is_loop(i) || depth_[v] != depth_[i]) {
          stored_[v] = true;
        } else if (alive && anchors(op(i).fn, op(i).loop, op(i).result, static_cast<int>(k))) {
          anchored[v] = true;
        }
      }
    }
  }

  void add_stage(const std::vector<int>& ops, int loop_op) {
    Stage stage;
    stage.loop_op = loop_op;
    if (loop_op < 0) stage.ops = ops;
    const auto here = [&](int v) { return std::find(ops.begin(), ops.end(), v) != ops.end(); };
    for (int i : ops) {
      for (int v : op(i).operands) {
        const bool seen = std::find(stage.sources.begin(), stage.sources.end(), v) != stage.sources.end();
        if (loop_op >= 0 || (!seen && (v < 0 || !here(v)))) stage.sources.push_back(v);
      }
      if (stored_[i]) stage.results.push_back(i);
    }
    if (!stage.results.empty()) plan_.stages.push_back(stage);
  }

  Ref ref(Ref::Kind kind, DType dtype, int index, bool scalar) const {
    return {kind, static_cast<uint8_t>(dtype), static_cast<uint8_t>(dtype_size(dtype)), static_cast<uint8_t>(scalar), index};
  }

  int last_reader(int v) const {
    int last = -1;
    for (size_t s = 0; s < plan_.stages.size(); ++s) {
      const auto& sources = plan_.stages[s].sources;
      if (std::find(sources.begin(), sources.end(), v) != sources.end()) last = static_cast<int>(s);
    }
    return last;
  }

  // Outputs lie in the results' own memory, other stored values in scratch slots, which are used again when nobody reads them.
  void assign_places() {
    std::vector<Ref> place(n_);
    std::vector<int> busy_until;  // per slot
    int outputs = 0;
    std::vector<int> output_index(n_, -1);
    for (int i = 0; i < n_; ++i) {
      if (op(i).output) output_index[i] = outputs++;
    }
    for (size_t s = 0; s < plan_.stages.size(); ++s) {
      Stage& stage = plan_.stages[s];
      plan_.loops |= stage.loop_op >= 0;
      for (int v : stage.sources) {
        stage.reads.push_back(v >= 0 ? place[v] : ref(Ref::kInput, spec_.inputs[~v].dtype, ~v, spec_.inputs[~v].scalar));
      }
      for (int r : stage.results) {
        place[r] = output_index[r] >= 0
                       ? ref(Ref::kOutput, op(r).result, output_index[r], false)
                       : ref(Ref::kScratch, op(r).result, take_slot(busy_until, static_cast<int>(s), last_reader(r)), false);
        stage.writes.push_back(place[r]);
      }
    }
    plan_.scratch_slots = static_cast<int>(busy_until.size());
    if (plan_.stages.size() > 1 || plan_.loops || plan_.scratch_slots > 0) {
      const int fit = plan_.scratch_slots > 0 ? kScratchBytes / (8 * plan_.scratch_slots) : kMaxTile;
      plan_.tile = std::clamp(fit / 64 * 64, kMinTile, kMaxTile);
    }
  }

  static int take_slot(std::vector<int>& busy_until, int now, int last) {
    size_t slot = 0;
    while (slot < busy_until.size() && busy_until[slot] >= now) ++slot;
    if (slot == busy_until.size()) busy_until.push_back(0);
    busy_until[slot] = std::max(last, now);
    return static_cast<int>(slot);
  }

  const KernelSpec& spec_;
  const int n_;
  int max_depth_ = 0;
  std::vector<int> depth_;
  std::vector<bool> foldable_;
  std::vector<bool> stored_;
  Plan plan_;
};

}  // namespace

Plan make_plan(const KernelSpec& spec) { return Planner(spec).run(); }

}  // namespace dalsegno::halide_gen
