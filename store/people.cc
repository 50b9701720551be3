// Rows that people query: what a trace is made of. Never read back, so nothing depends on them.
#include "store/store_impl.h"

namespace dalsegno::store {
namespace {

Value number(int32_t n) { return int64_t{n}; }
Value index(int32_t i) { return i < 0 ? Value() : Value(int64_t{i}); }

std::string list(const ValueId* values, size_t n) {
  std::string text;
  for (size_t i = 0; i < n; i++) text += (i == 0 ? "" : " ") + std::to_string(values[i]);
  return text;
}

std::string facts_text(const ArrayFacts& facts) { return std::string(dtype_name(facts.dtype)) + "[" + std::to_string(facts.rank) + "]"; }

int64_t count_guards(const Trace& trace) {
  int64_t n = 0;
  for (const Op& op : trace.ops) n += std::string_view(op_name(op.kind)).starts_with("guard_");
  return n;
}

void describe_whole(Database& database, const std::string& key, const Trace& t, int64_t bytes) {
  static constexpr const char* kAnchors[] = {"entry", "loop", "exit"};
  const bool side = t.anchor == AnchorKind::exit;
  Inserter(database, tables::traces)
      .add({key, number(t.number), std::string(kAnchors[static_cast<int>(t.anchor)]), side ? number(t.parent) : Value(),
            side ? number(t.parent_op) : Value(), side ? number(t.parent_exit) : Value(), number(t.n_params),
            static_cast<int64_t>(t.ops.size()), count_guards(t), std::string(reason_name(t.reason)), t.where, bytes, now()});
}

void describe_ops(Database& database, const std::string& key, const Trace& t) {
  Inserter inserter(database, tables::ops);
  for (size_t i = 0; i < t.ops.size(); i++) {
    const Op& op = t.ops[i];
    inserter.add({key, number(t.number), static_cast<int64_t>(i), std::string(op_name(op.kind)),
                  op.fn == ArrayFn::none ? Value() : Value(std::string(array_fn_name(op.fn))),
                  list(t.inputs_of(op), static_cast<size_t>(op.n_inputs)), number(op.imm), op.name < 0 ? Value() : Value(t.names[op.name]),
                  index(op.object), index(op.object2), op.facts < 0 ? Value() : Value(facts_text(t.facts[op.facts])), index(op.snapshot),
                  index(op.exit_snapshot), number(op.line), number(op.depth), print_op(t, static_cast<int32_t>(i))});
  }
}

void describe_snapshots(Database& database, const std::string& key, const Trace& t) {
  Inserter inserter(database, tables::snapshots);
  for (size_t i = 0; i < t.snapshots.size(); i++) {
    const Snapshot whole = t.snapshot(static_cast<int32_t>(i));
    for (size_t k = 0; k < whole.frames.size(); k++) {
      const SnapshotFrame& f = whole.frames[k];
      inserter.add({key, number(t.number), static_cast<int64_t>(i), static_cast<int64_t>(k), number(f.function), number(f.code),
                    number(f.offset), number(f.after), number(f.action), list(f.locals.data(), f.locals.size()),
                    list(f.stack.data(), f.stack.size())});
    }
  }
}

void describe_objects(Database& database, const std::string& key, const Trace& t) {
  Inserter inserter(database, tables::objects);
  for (size_t i = 0; i < t.objects.size(); i++)
    inserter.add({key, number(t.number), static_cast<int64_t>(i), t.objects[i].source, t.objects[i].fingerprint});
}

}  // namespace

void describe_trace(Database& database, const std::string& key, const Trace& trace, int64_t bytes) {
  describe_whole(database, key, trace, bytes);
  describe_ops(database, key, trace);
  describe_snapshots(database, key, trace);
  describe_objects(database, key, trace);
}

}  // namespace dalsegno::store
