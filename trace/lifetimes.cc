#include "trace/lifetimes.h"

#include <algorithm>
#include <cstdint>
#include <set>

namespace dalsegno {
namespace {

constexpr int32_t kNever = INT32_MAX;
constexpr size_t kMaxWork = size_t{1} << 26;  // slots of frames built from the start; real traces need a small multiple of their size

class Lifetimes {
 public:
  explicit Lifetimes(const Trace& trace) : t_(trace), released_(trace.ops.size(), kNever) {}

  std::string run() {
    inputs() && frames() && snapshots();
    return fault_;
  }

 private:
  bool fail(size_t op, const char* what) {
    fault_ = "op " + std::to_string(op) + " " + op_name(t_.ops[op].kind) + ": " + what;
    return false;
  }

  bool inputs() {
    for (size_t i = 0; i < t_.ops.size(); i++) {
      const Op& op = t_.ops[i];
      const bool releases = op.kind == OpKind::release;
      for (int32_t k = 0; k < op.n_inputs; k++) {
        int32_t& released = released_[t_.inputs_of(op)[k]];
        if (released != kNever) return fail(i, releases ? "released twice" : "used after its release");
        if (releases) released = static_cast<int32_t>(i);
      }
    }
    return true;
  }

  // When the first of the values that a frame, or one around it, names is released. A frame is nearly always written as what differs from
  // the one looked at before it.
  bool frames() {
    const Snapshots& all = t_.snapshots;
    for (int32_t i = 0; i < static_cast<int32_t>(all.frames.size()); i++) {
      const FrameDelta& f = all.frames[i];
      if (f.base >= 0 && f.base == built_) {
        change(f);
      } else if (!build(i)) {
        return false;
      }
      built_ = i;
      int32_t first = std::min(released_[f.function], releases_.empty() ? kNever : *releases_.begin());
      if (f.outer >= 0) first = std::min(first, first_[f.outer]);
      first_.push_back(first);
    }
    return true;
  }

  bool build(int32_t index) {
    const SnapshotFrame whole = t_.snapshots.frame(index);
    work_ += whole.locals.size() + whole.stack.size();
    if (work_ > kMaxWork) return fault_ = "snapshots: too large", false;
    locals_ = whole.locals, stack_ = whole.stack;
    releases_.clear();
    for (const ValueId v : locals_) add(v);
    for (const ValueId v : stack_) add(v);
    return true;
  }

  void change(const FrameDelta& f) {
    const int32_t* slot = t_.snapshots.slots.data() + f.first;
    for (int32_t k = 0; k < f.changed; k++, slot += 2) {
      remove(locals_[slot[0]]);
      add(locals_[slot[0]] = slot[1]);
    }
    for (; stack_.size() > static_cast<size_t>(f.kept); stack_.pop_back()) remove(stack_.back());
    for (int32_t k = 0; k < f.pushed; k++) add(stack_.emplace_back(slot[k]));
  }

  void add(ValueId v) {
    if (v != kNull && released_[v] != kNever) releases_.insert(released_[v]);
  }
  void remove(ValueId v) {
    if (v != kNull && released_[v] != kNever) releases_.erase(releases_.find(released_[v]));
  }

  bool snapshots() {
    for (size_t i = 0; i < t_.ops.size(); i++) {
      for (const int32_t s : {t_.ops[i].snapshot, t_.ops[i].exit_snapshot}) {
        if (s >= 0 && first_[t_.snapshots.tops[s]] < static_cast<int32_t>(i))
          return fail(i, "its snapshot names a value that was released");
      }
    }
    return true;
  }

  const Trace& t_;
  std::vector<int32_t> released_;  // per value: the op that releases it
  std::vector<int32_t> first_;     // per frame
  // The frame looked at last.
  int32_t built_ = -1;
  std::vector<ValueId> locals_, stack_;
  std::multiset<int32_t> releases_;
  size_t work_ = 0;
  std::string fault_;
};

}  // namespace

std::string verify_lifetimes(const Trace& trace) { return Lifetimes(trace).run(); }

}  // namespace dalsegno
