// Is a trace well formed? After verify() said so, every index in it may be used unchecked, and every value an op or a snapshot names
// has been defined before. What objects turn out to *be* at run time (an exact tuple? long enough?) is for the machine to check.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "trace/lifetimes.h"
#include "trace/op_rules.h"
#include "trace/trace.h"
#include "trace/walk.h"

namespace dalsegno {
namespace {

constexpr int32_t kMaxRank = 64;       // NumPy's NPY_MAXDIMS
constexpr size_t kMaxCount = 1 << 28;  // so that every index fits in int32_t with room to add

bool in_range(int64_t i, size_t size) { return i >= 0 && static_cast<uint64_t>(i) < size; }
bool absent_or_in_range(int64_t i, size_t size) { return i == -1 || in_range(i, size); }

class Verifier {
 public:
  explicit Verifier(const Trace& trace) : t_(trace) {}

  std::string run() {
    header() && tables() && params() && all_snapshots() && all_ops() && entry();
    return fault_;
  }

 private:
  bool fail(const std::string& what) {
    if (fault_.empty()) fault_ = what;
    return false;
  }
  bool fail_op(int32_t i, const std::string& what) { return fail("op " + std::to_string(i) + " " + op_name(t_.ops[i].kind) + ": " + what); }

  bool header() {
    if (t_.ops.size() > kMaxCount || t_.inputs.size() > kMaxCount || t_.snapshots.size() > kMaxCount ||
        t_.snapshots.frames.size() > kMaxCount || t_.snapshots.slots.size() > kMaxCount || t_.objects.size() > kMaxCount)
      return fail("too large");
    if (t_.number < 0) return fail("negative trace number");
    if (t_.anchor > AnchorKind::exit) return fail("unknown anchor");
    if (t_.reason >= Reason::kCount) return fail("unknown reason");
    const bool side = t_.anchor == AnchorKind::exit;
    if (side && (t_.parent < 0 || t_.parent == t_.number || t_.parent_op < 0)) return fail("side trace without parent");
    if (t_.parent_exit < 0 || t_.parent_exit > 1) return fail("parent_exit is neither 0 nor 1");
    if (t_.objects.empty()) return fail("objects[0], the jitted function, is missing");
    return true;
  }

  bool tables() {
    for (const ArrayFacts& f : t_.facts) {
      if (f.dtype >= DType::kCount || f.rank < 0 || f.rank > kMaxRank) return fail("facts out of range");
    }
    for (const Folded& f : t_.folded) {
      if (!in_range(f.dict, t_.objects.size()) || !in_range(f.name, t_.names.size()) || !absent_or_in_range(f.value, t_.objects.size()))
        return fail("folded global out of range");
    }
    return true;
  }

  bool params() {
    if (t_.ops.empty()) return fail("no ops");
    if (t_.n_params < 0 || static_cast<size_t>(t_.n_params) > t_.ops.size()) return fail("n_params out of range");
    for (size_t i = 0; i < t_.ops.size(); i++) {
      const Op& op = t_.ops[i];
      if (op.kind >= OpKind::kCount) return fail("op " + std::to_string(i) + ": unknown kind");
      const bool is_param = op.kind == OpKind::param;
      if (is_param != (i < static_cast<size_t>(t_.n_params))) return fail("the parameters are not exactly the first n_params ops");
      if (is_param && op.imm != static_cast<int32_t>(i)) return fail("parameter " + std::to_string(i) + " has another number");
    }
    return true;
  }

  // A value may be named after the op that defines it, never one that expects exhaustion (that one holds a value only on its exit).
  bool is_value(ValueId v) const { return in_range(v, t_.ops.size()) && op_has_result(t_.ops[v].kind); }
  bool only_at_exit(ValueId v) const { return t_.ops[v].kind == OpKind::iter_next && !expects_item(t_.ops[v].imm); }

  // What must hold of a snapshot wherever it is used; and the last value it names, and the value only an exit can have.
  struct SnapshotUse {
    ValueId last = -1;
    ValueId at_exit = -1;
  };

  bool slot(ValueId v, SnapshotUse* use) {
    if (v == kNull) return true;
    if (!is_value(v)) return false;
    if (only_at_exit(v)) {
      if (use->at_exit != -1 && use->at_exit != v) return false;
      use->at_exit = v;
    }
    if (v > use->last) use->last = v;
    return true;
  }

  bool frame(const SnapshotFrame& f, SnapshotUse* use) {
    if (f.function == kNull || !slot(f.function, use)) return fail("snapshot: a frame without function");
    if (!in_range(f.code, t_.objects.size())) return fail("snapshot: a frame without code");
    if (f.offset < 0 || f.after < 0) return fail("snapshot: negative offset");
    if (!is_return_action(f.action)) return fail("snapshot: unknown return action");
    for (ValueId v : f.locals) {
      if (!slot(v, use)) return fail("snapshot: no such value");
    }
    for (ValueId v : f.stack) {
      if (!slot(v, use)) return fail("snapshot: no such value");
    }
    return true;
  }

  bool snapshot(const Snapshot& s, SnapshotUse* use) {
    if (s.frames.empty()) return fail("snapshot without frames");
    for (const SnapshotFrame& f : s.frames) {
      if (!frame(f, use)) return false;
    }
    return true;
  }

  // The same of a frame as delta, without building it: linear in the slots that are written down. A value that has been overwritten
  // counts as well, so what a frame names is defined before the ops that use a snapshot of a later state of it.
  bool delta(const FrameDelta& f, SnapshotUse* use) {
    if (f.function == kNull || !slot(f.function, use)) return fail("snapshot: a frame without function");
    if (!in_range(f.code, t_.objects.size())) return fail("snapshot: a frame without code");
    if (f.offset < 0 || f.after < 0) return fail("snapshot: negative offset");
    if (!is_return_action(f.action)) return fail("snapshot: unknown return action");
    const int32_t* slots = t_.snapshots.slots.data() + f.first;
    for (int32_t k = 0; k < f.changed; k++) {
      if (!slot(slots[2 * k + 1], use)) return fail("snapshot: no such value");
    }
    for (int32_t k = 0; k < f.pushed; k++) {
      if (!slot(slots[2 * f.changed + k], use)) return fail("snapshot: no such value");
    }
    return takes_over(f.base, use) && takes_over(f.outer, use);
  }

  // What only an exit has is named by a frame that nothing builds on.
  bool takes_over(int32_t frame, SnapshotUse* use) {
    if (frame < 0) return true;
    if (frames_[frame].at_exit != -1) return fail("snapshot: a frame builds on one of an exit");
    use->last = std::max(use->last, frames_[frame].last);
    return true;
  }

  bool all_snapshots() {
    if (const char* fault = t_.snapshots.fault()) return fail(std::string("snapshot: ") + fault);
    for (const FrameDelta& f : t_.snapshots.frames) {
      SnapshotUse use;
      if (!delta(f, &use)) return fail("frame " + std::to_string(frames_.size()));
      frames_.push_back(use);
    }
    for (int32_t top : t_.snapshots.tops) uses_.push_back(frames_[top]);
    return true;
  }

  bool all_ops() {
    const auto n = static_cast<int32_t>(t_.ops.size());
    for (int32_t i = 0; i < n; i++) {
      const OpKind kind = t_.ops[i].kind;
      const bool end = kind == OpKind::return_ || kind == OpKind::jump || kind == OpKind::leave;
      if (end != (i == n - 1)) return fail_op(i, end ? "an end before the end" : "the last op is not an end");
      if (!indices(i) || !immediates(i) || !inputs(i) || !particular(i) || !array(i) || !leaves(i)) return false;
    }
    return true;
  }

  bool indices(int32_t i) {
    const Op& op = t_.ops[i];
    const bool ok = absent_or_in_range(op.object, t_.objects.size()) && absent_or_in_range(op.object2, t_.objects.size()) &&
                    absent_or_in_range(op.name, t_.names.size()) && absent_or_in_range(op.facts, t_.facts.size()) &&
                    absent_or_in_range(op.snapshot, t_.snapshots.size()) && absent_or_in_range(op.exit_snapshot, t_.snapshots.size());
    if (!ok) return fail_op(i, "index out of range");
    if ((op.effects & ~op_effects(op.kind)) != 0) return fail_op(i, "effects that no op of its kind has");
    if (needs_snapshot(op.effects) && op.snapshot < 0) return fail_op(i, "no snapshot though it may run code");
    if (op.depth < 0) return fail_op(i, "negative depth");
    if (op.at < -1) return fail_op(i, "negative place");
    return true;
  }

  // Frames are shown as they are in the snapshot, and it is left by it.
  static bool needs_snapshot(uint32_t effects) { return shows_frames(effects) || (effects & kDropsReferences) != 0; }

  bool immediates(int32_t i) {
    const Op& op = t_.ops[i];
    const OpRule& rule = op_rule(op.kind);
    auto lacks = [&](Needs need, int32_t index) { return (rule.needs & need) && index < 0; };
    if (lacks(kObject, op.object)) return fail_op(i, "no object");
    if (lacks(kObject2, op.object2)) return fail_op(i, "no object2");
    if (lacks(kName, op.name)) return fail_op(i, "no name");
    if (lacks(kFacts, op.facts)) return fail_op(i, "no facts");
    if (lacks(kSnapshot, op.snapshot)) return fail_op(i, "no snapshot");
    if (((rule.needs & kExitSnapshot) != 0) != (op.exit_snapshot >= 0)) return fail_op(i, "exit_snapshot missing, or out of place");
    if (op.imm < rule.imm_low || op.imm > rule.imm_high) return fail_op(i, "immediate out of range");
    if ((rule.needs & kImmObject) && !in_range(op.imm, t_.objects.size())) return fail_op(i, "immediate is no object");
    return true;
  }

  bool inputs(int32_t i) {
    const Op& op = t_.ops[i];
    const OpRule& rule = op_rule(op.kind);
    if (op.n_inputs < 0 || op.first_input < 0 || int64_t{op.first_input} + op.n_inputs > static_cast<int64_t>(t_.inputs.size()))
      return fail_op(i, "inputs out of range");
    const int fixed = op_inputs(op.kind);
    const bool count_ok = fixed >= 0 ? op.n_inputs == fixed : op.n_inputs >= rule.min_inputs && op.n_inputs <= rule.max_inputs;
    if (!count_ok) return fail_op(i, "wrong number of inputs");
    for (int32_t k = 0; k < op.n_inputs; k++) {
      const ValueId v = t_.inputs_of(op)[k];
      if (!is_value(v) || v >= i || only_at_exit(v)) return fail_op(i, "input " + std::to_string(k) + " is not defined before it");
    }
    return true;
  }

  // What the table cannot say.
  bool particular(int32_t i) {
    const Op& op = t_.ops[i];
    switch (op.kind) {
      case OpKind::call_tree:
        return op.imm == op.n_inputs - 1 || fail_op(i, "wrong number of arguments");
      case OpKind::call:
        if (op.imm > op.n_inputs - 1 || (op.object < 0 && op.imm != op.n_inputs - 1)) return fail_op(i, "wrong number of arguments");
        return true;
      case OpKind::build_map:
        return op.n_inputs % 2 == 0 || fail_op(i, "a key without value");
      case OpKind::make_function:
        return op.n_inputs == 1 + std::popcount(static_cast<uint32_t>(op.imm)) || fail_op(i, "inputs do not fit its flags");
      case OpKind::set_function_attribute:
        return std::has_single_bit(static_cast<uint32_t>(op.imm)) || fail_op(i, "unknown attribute");
      case OpKind::tuple_item:
        return item_exists(t_.ops[t_.inputs_of(op)[0]], op.imm) || fail_op(i, "no such item");
      case OpKind::return_:
        return op.imm <= static_cast<int32_t>(t_.snapshots.size()) || fail_op(i, "no such snapshot");
      case OpKind::iter_next:
        return is_walk(walk_of(op.imm)) || fail_op(i, "goes through what?");
      case OpKind::guard_waiting:
        return bound_slots(op) >= 0 || fail_op(i, "which slots are bound?");
      case OpKind::wait_at:
        return bound_slots(op) == op.n_inputs - 1 || fail_op(i, "inputs do not fit its slots");
      case OpKind::waiting_slot:
      case OpKind::begin_to_run:
        return is_guarded(i) || fail_op(i, "a generator of which nothing is known");
      default:
        return true;
    }
  }

  // How many of a generator's slots are bound, as the name's digits say; -1: they are none.
  int bound_slots(const Op& op) const {
    const std::string& digits = t_.names[op.name];
    if (digits.find_first_not_of("01") != std::string::npos) return -1;
    return static_cast<int>(std::count(digits.begin(), digits.end(), '1'));
  }

  // Right behind the guard that says what a generator has in its slots they are taken.
  bool is_guarded(int32_t i) const {
    const Op& op = t_.ops[i];
    int32_t at = i - 1;
    const auto same = [&] { return t_.ops[at].n_inputs == 1 && t_.inputs_of(t_.ops[at])[0] == t_.inputs_of(op)[0]; };
    while (at >= 0 && t_.ops[at].kind == OpKind::waiting_slot && same()) --at;
    if (at < 0 || t_.ops[at].kind != OpKind::guard_waiting || !same()) return false;
    const std::string& digits = t_.names[t_.ops[at].name];
    return op.kind != OpKind::waiting_slot || op.imm < 0 || (op.imm < static_cast<int32_t>(digits.size()) && digits[op.imm] == '1');
  }

  // Where the tuple was made in the trace, its length is known.
  static bool item_exists(const Op& tuple, int32_t item) {
    if (tuple.kind == OpKind::unpack) return item < tuple.imm;
    if (tuple.kind == OpKind::unpack_ex) return item < (tuple.imm & 255) + 1 + (tuple.imm >> 8);
    if (tuple.kind == OpKind::build_tuple) return item < tuple.n_inputs;
    return true;
  }

  bool array(int32_t i) {
    const Op& op = t_.ops[i];
    if (op.fn >= ArrayFn::kCount) return fail_op(i, "unknown array function");
    if (op.fn == ArrayFn::none) return true;
    if (!op_has_result(op.kind) || op.facts < 0) return fail_op(i, "an array op without facts");
    if (op.n_inputs < array_fn_inputs(op.fn)) return fail_op(i, "an array op with too few inputs");
    return true;
  }

  bool leaves(int32_t i) {
    const Op& op = t_.ops[i];
    if (op.snapshot >= 0) {
      const SnapshotUse& use = uses_[op.snapshot];
      if (use.last >= i || use.at_exit != -1) return fail_op(i, "its snapshot names a value that is not defined before it");
    }
    if (op.exit_snapshot >= 0) {
      const SnapshotUse& use = uses_[op.exit_snapshot];
      const bool own = use.at_exit == i && !expects_item(op.imm);  // the item that came though exhaustion was expected
      if (use.last >= i + (own ? 1 : 0) || (use.at_exit != -1 && !own))
        return fail_op(i, "its exit_snapshot names a value that is not defined before it");
    }
    return true;
  }

  // At the anchor only parameters exist; constants can be had at any time.
  bool entry() {
    if (t_.entry.frames.empty()) return t_.anchor == AnchorKind::entry || fail("no entry snapshot");
    SnapshotUse use;
    if (!snapshot(t_.entry, &use)) return fail("entry snapshot");
    for (const SnapshotFrame& f : t_.entry.frames) {
      if (!known_at_entry(f.function)) return fail("entry snapshot: the function is neither parameter nor constant");
      for (ValueId v : f.locals) {
        if (!known_at_entry(v)) return fail("entry snapshot: a local is neither parameter nor constant");
      }
      for (ValueId v : f.stack) {
        if (!known_at_entry(v)) return fail("entry snapshot: a stack slot is neither parameter nor constant");
      }
    }
    return true;
  }
  bool known_at_entry(ValueId v) const { return v == kNull || t_.ops[v].kind == OpKind::param || t_.ops[v].kind == OpKind::constant; }

  const Trace& t_;
  std::vector<SnapshotUse> frames_;
  std::vector<SnapshotUse> uses_;  // of snapshots
  std::string fault_;
};

bool same_nulls(const std::vector<ValueId>& a, const std::vector<ValueId>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](ValueId x, ValueId y) { return (x == kNull) == (y == kNull); });
}

// The same place in the same code, with the same slots bound: what was recorded from one may go on from the other. Code objects are
// compared by fingerprint, as each trace has objects of its own.
bool same_frame(const Trace& t, const SnapshotFrame& a, const Trace& u, const SnapshotFrame& b) {
  return a.offset == b.offset && a.after == b.after && a.action == b.action &&
         t.objects[a.code].fingerprint == u.objects[b.code].fingerprint && same_nulls(a.locals, b.locals) && same_nulls(a.stack, b.stack);
}

bool same_place(const Trace& t, const Snapshot& a, const Trace& u, const Snapshot& b) {
  return std::equal(a.frames.begin(), a.frames.end(), b.frames.begin(), b.frames.end(),
                    [&](const SnapshotFrame& x, const SnapshotFrame& y) { return same_frame(t, x, u, y); });
}

// The snapshot a side trace starts from, or -1.
int32_t exit_of(const Trace& parent, const Trace& side) {
  if (!in_range(side.parent_op, parent.ops.size())) return -1;
  const Op& op = parent.ops[side.parent_op];
  return side.parent_exit == 0 ? op.snapshot : op.exit_snapshot;
}

const Trace* by_number(const std::vector<Trace>& traces, int32_t number) {
  auto found = std::find_if(traces.begin(), traces.end(), [&](const Trace& t) { return t.number == number; });
  return found == traces.end() ? nullptr : &*found;
}

std::string verify_jump(const Trace& trace, const std::vector<Trace>& traces) {
  const Op& end = trace.ops.back();
  const Trace* target = by_number(traces, end.imm);
  if (target == nullptr) return "jumps to a trace that is not there";
  if (!same_place(trace, trace.snapshot(end.snapshot), *target, target->entry)) return "jumps to a trace of another place";
  return "";
}

std::string verify_parents(const Trace& trace, const std::vector<Trace>& traces) {
  const Trace* parent = by_number(traces, trace.parent);
  if (parent == nullptr) return "its parent is not there";
  const int32_t left = exit_of(*parent, trace);
  if (left < 0) return "its parent does not leave there";
  if (!same_place(trace, trace.entry, *parent, parent->snapshot(left))) return "its parent leaves at another place";
  // Not a cycle: following parents ends within as many steps as there are traces.
  const Trace* up = parent;
  for (size_t steps = 0; up != nullptr && up->anchor == AnchorKind::exit; steps++) {
    if (steps > traces.size()) return "its parents are a cycle";
    up = by_number(traces, up->parent);
  }
  return up == nullptr ? "a parent of its parent is not there" : "";
}

}  // namespace

std::string verify(const Trace& trace) {
  std::string fault = Verifier(trace).run();
  return fault.empty() ? verify_lifetimes(trace) : fault;
}

std::string verify_links(const Trace& trace, const std::vector<Trace>& traces) {
  if (trace.ops.back().kind == OpKind::jump) {
    std::string fault = verify_jump(trace, traces);
    if (!fault.empty()) return fault;
  }
  return trace.anchor == AnchorKind::exit ? verify_parents(trace, traces) : "";
}

}  // namespace dalsegno
