#include "trace/samples.h"

#include <algorithm>
#include <utility>

#include "trace/op_rules.h"
#include "trace/walk.h"

namespace dalsegno::testing {
namespace {

class Generator {
 public:
  Generator(std::mt19937_64& random, int ops) : random_(random), n_ops_(ops) {}

  Trace run() {
    tables();
    Trace& t = b_.trace;
    t.n_params = pick(1, 4);
    for (int32_t i = 0; i < t.n_params; i++) values_.push_back(b_.add(OpKind::param, {}, i));
    anchor();
    for (int i = 0; i < n_ops_; i++) op(static_cast<OpKind>(pick(1, static_cast<int>(OpKind::leave_frame) + 1)));
    static constexpr OpKind kEnds[] = {OpKind::return_, OpKind::jump, OpKind::leave};
    op(kEnds[pick(0, 2)]);
    t.reason = static_cast<Reason>(pick(0, static_cast<int>(Reason::kCount) - 1));
    t.where = text();
    return t;
  }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool chance(int percent) { return pick(1, 100) <= percent; }
  ValueId value() { return values_[pick(0, static_cast<int>(values_.size()) - 1)]; }
  // One that nothing names from now on.
  ValueId released() {
    const auto at = values_.begin() + pick(1, static_cast<int>(values_.size()) - 1);
    const ValueId v = *at;
    values_.erase(at);
    return v;
  }
  ValueId slot() { return chance(20) ? kNull : value(); }

  std::string text() {
    std::string s;
    for (int n = pick(0, 12); n > 0; n--) s.push_back(static_cast<char>(pick(0, 255)));  // zero bytes, quotes, broken UTF-8
    return s;
  }

  void tables() {
    Trace& t = b_.trace;
    t.number = pick(0, 9);
    t.objects.push_back({"self", "function:" + text()});
    for (int n = pick(1, 6); n > 0; n--) t.objects.push_back({text(), text()});
    t.names.push_back("101");  // slots of generators
    for (int n = pick(1, 6); n > 0; n--) t.names.push_back(text());
    for (int n = pick(1, 3); n > 0; n--) t.facts.push_back({static_cast<DType>(pick(0, 4)), pick(0, 8)});
    for (int n = pick(0, 3); n > 0; n--) t.folded.push_back({object(), name(), chance(20) ? -1 : object()});
  }
  int32_t object() { return pick(0, static_cast<int>(b_.trace.objects.size()) - 1); }
  int32_t name() { return pick(0, static_cast<int>(b_.trace.names.size()) - 1); }
  int32_t facts() { return pick(0, static_cast<int>(b_.trace.facts.size()) - 1); }

  Snapshot snapshot() {
    Snapshot s;
    for (int n = pick(1, 3); n > 0; n--) {
      SnapshotFrame f;
      f.function = value();
      f.code = object();
      f.offset = pick(0, 5000);
      f.after = pick(0, 5000);
      f.action = pick(0, kReturnActions - 1);
      for (int k = pick(0, 5); k > 0; k--) f.locals.push_back(slot());
      for (int k = pick(0, 3); k > 0; k--) f.stack.push_back(slot());
      s.frames.push_back(std::move(f));
    }
    return s;
  }

  // What a few instructions might make of it.
  Snapshot changed(Snapshot s) {
    SnapshotFrame& f = s.frames.back();
    f.offset = pick(0, 5000);
    for (ValueId& v : f.locals)
      if (chance(30)) v = slot();
    if (!f.stack.empty() && chance(50)) f.stack.pop_back();
    if (chance(50)) f.stack.push_back(slot());
    if (s.frames.size() > 1 && chance(20)) s.frames.pop_back();
    return s;
  }

  void anchor() {
    Trace& t = b_.trace;
    t.anchor = static_cast<AnchorKind>(pick(0, 2));
    if (t.anchor == AnchorKind::entry) return;
    t.entry = snapshot();  // only parameters exist yet
    if (t.anchor != AnchorKind::exit) return;
    t.parent = t.number + 1;
    t.parent_op = pick(0, 50);
    t.parent_exit = pick(0, 1);
  }

  int n_inputs(const OpRule& rule) {
    const int fixed = op_inputs(rule.kind);
    return fixed >= 0 ? fixed : pick(rule.min_inputs, std::min(rule.max_inputs, rule.min_inputs + 4));
  }
  int32_t imm(const OpRule& rule) {
    if (rule.kind == OpKind::iter_next)
      return with_walk(pick(0, 1), chance(50) ? Walk{} : Walk{Holder::kZip, {Walked::kList, Walked::kAscii}, {}});
    if (rule.imm_low == INT32_MIN) return chance(50) ? 0 : pick(INT32_MIN, INT32_MAX);
    return pick(rule.imm_low, std::min(rule.imm_high, rule.imm_low + 20));
  }

  void op(OpKind kind) {
    if (kind == OpKind::waiting_slot || kind == OpKind::begin_to_run) return;  // only behind their guard
    const OpRule& rule = op_rule(kind);
    int n = kind == OpKind::wait_at ? 3 : n_inputs(rule);
    int32_t i = imm(rule);
    if (kind == OpKind::call || kind == OpKind::call_tree) i = n - 1;
    if (kind == OpKind::build_map) n &= ~1;
    if (kind == OpKind::make_function) i = (1 << (n - 1)) - 1;
    if (kind == OpKind::set_function_attribute) i = 1 << pick(0, 3);
    if (kind == OpKind::guard_function) i = object();
    if (kind == OpKind::tuple_item) i = 0;
    if (kind == OpKind::return_) i = pick(0, static_cast<int>(b_.trace.snapshots.size()));
    std::vector<ValueId> inputs;
    const bool releases = kind == OpKind::release;
    for (; n > 0 && (!releases || values_.size() > 1); n--) inputs.push_back(releases ? released() : value());
    if (releases) last_ = -1;
    if (kind == OpKind::tuple_item) inputs[0] = 0;  // a parameter: of unknown length
    const bool goes_on = last_ >= 0 && chance(60);
    const Snapshot before = goes_on ? changed(b_.trace.snapshot(last_)) : snapshot();
    const int32_t index = b_.add(kind, inputs, i);
    immediates(rule);
    if ((rule.needs & kSnapshot) || op_effects(kind) != kNoEffect || chance(30)) {
      if (goes_on) b_.like = last_;
      b_.last().snapshot = last_ = b_.snapshot(before);
    }
    if (rule.needs & kExitSnapshot) exit(index);
    if (op_has_result(kind) && !(kind == OpKind::iter_next && !expects_item(i))) values_.push_back(index);
  }

  void immediates(const OpRule& rule) {
    Op& op = b_.last();
    if ((rule.needs & kObject) || (rule.kind != OpKind::call && chance(20))) op.object = object();
    if ((rule.needs & kObject2) || chance(20)) op.object2 = object();
    if ((rule.needs & kName) || chance(20)) op.name = name();
    if (rule.kind == OpKind::guard_waiting || rule.kind == OpKind::wait_at) op.name = 0;
    if ((rule.needs & kFacts) || chance(20)) op.facts = facts();
    op.effects = op_effects(op.kind) & static_cast<uint32_t>(pick(0, 127));
    op.at = pick(-1, 100);
    op.line = pick(0, 10000);
    op.depth = pick(0, 3);
    if (!op_has_result(op.kind) || op.facts < 0) return;
    const auto fn = static_cast<ArrayFn>(pick(0, static_cast<int>(ArrayFn::kCount) - 1));
    if (array_fn_inputs(fn) <= op.n_inputs) op.fn = fn;
  }

  void exit(int32_t index) {
    Snapshot s = snapshot();
    if (!expects_item(b_.last().imm)) s.frames.back().stack.push_back(index);
    b_.last().exit_snapshot = b_.snapshot(s);
  }

  std::mt19937_64& random_;
  const int n_ops_;
  TraceBuilder b_;
  std::vector<ValueId> values_;
  int32_t last_ = -1;  // snapshot of an op
};

}  // namespace

Trace random_trace(std::mt19937_64& random, int ops) { return Generator(random, ops).run(); }

Trace small_trace() {
  TraceBuilder b;
  Trace& t = b.trace;
  t.objects = {{"self", "function:00"}, {"const:i:1", "const:i:1"}, {"module:numpy", "module:numpy"}, {"self.code", "code:00"}};
  t.names = {"sum"};
  t.facts = {{DType::kFloat64, 2}};
  t.n_params = 2;
  b.add(OpKind::param, {}, 0);
  b.add(OpKind::param, {}, 1);
  b.add(OpKind::constant);  // v2: the function
  b.last().object = 0;
  b.snapshot(Snapshot{{SnapshotFrame{2, 3, 4, 0, {0, 1}, {}, 0}}});
  b.snapshot(Snapshot{{SnapshotFrame{2, 3, 9, 0, {0, 1}, {6}, 0}}});
  auto leaves = [&](int32_t snapshot, int32_t line) {
    b.last().snapshot = snapshot;
    b.last().line = line;
  };
  b.add(OpKind::guard_array, {0});
  b.last().facts = 0;
  leaves(0, 2);
  b.add(OpKind::binary, {0, 1}, static_cast<int32_t>(BinaryOp::multiply));  // v4
  b.last().fn = ArrayFn::multiply;
  b.last().facts = 0;
  b.last().effects = kArrayEffects;
  leaves(0, 2);
  b.add(OpKind::constant);  // v5
  b.last().object = 1;
  b.add(OpKind::binary, {4, 5}, static_cast<int32_t>(BinaryOp::add));  // v6
  leaves(0, 2);
  b.add(OpKind::get_attr, {6});
  b.last().name = 0;
  leaves(1, 3);
  b.add(OpKind::call, {7}, 0);
  leaves(1, 3);
  b.add(OpKind::truth, {8});
  leaves(1, 3);
  b.add(OpKind::guard_true, {9});
  leaves(1, 3);
  b.add(OpKind::release, {7, 8, 9});
  b.add(OpKind::return_, {6});
  return t;
}

}  // namespace dalsegno::testing
