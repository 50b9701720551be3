// Rows that people query: what a trace is made of. Never read back, so nothing depends on them.
#include <map>
#include <utility>

#include "store/store_impl.h"

namespace dalsegno::store {
namespace {

Value number(int32_t n) { return int64_t{n}; }

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

// ---- a trace's ops and objects as JSON, which views take apart (schema.cc) -----------------------------------------------------

void append_text(std::string* json, std::string_view text) {
  constexpr const char* kDigits = "0123456789abcdef";
  *json += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20) {
      *json += std::string("\\u00") + kDigits[byte >> 4] + kDigits[byte & 15];
    } else {
      if (c == '"' || c == '\\') *json += '\\';
      *json += c;
    }
  }
  *json += '"';
}

// The kinds that occur in a trace, numbered. Those that define a value end with "=".
class Kinds {
 public:
  size_t number(OpKind kind) {
    auto [it, fresh] = numbers_.try_emplace(kind, numbers_.size());
    if (fresh) append_text(&(json_ += json_.empty() ? "" : ","), std::string(op_name(kind)) + (op_has_result(kind) ? "=" : ""));
    return it->second;
  }
  std::string json() const { return "[" + json_ + "]"; }

 private:
  std::map<OpKind, size_t> numbers_;
  std::string json_;
};

// [kind, line, text after the kind, snapshot, depth, exit_snapshot, array_fn, facts], without what is missing at the end.
std::string op_json(const Trace& t, int32_t i, Kinds* kinds) {
  const Op& op = t.ops[i];
  const std::string text = print_op(t, i), name = op_name(op.kind);
  std::string json = "[" + std::to_string(kinds->number(op.kind)) + "," + std::to_string(op.line) + ",";
  append_text(&json, std::string_view(text).substr(text.find(name) + name.size()));
  std::string rest[5];
  if (op.snapshot >= 0) rest[0] = std::to_string(op.snapshot);
  if (op.depth != 0) rest[1] = std::to_string(op.depth);
  if (op.exit_snapshot >= 0) rest[2] = std::to_string(op.exit_snapshot);
  if (op.fn != ArrayFn::none) append_text(&rest[3], array_fn_name(op.fn));
  if (op.facts >= 0) append_text(&rest[4], facts_text(t.facts[op.facts]));
  std::string missing;
  for (const std::string& part : rest) {
    missing += part.empty() ? ",null" : "," + part;
    if (!part.empty()) json += std::exchange(missing, "");
  }
  return json + "]";
}

void describe_parts(Database& database, const std::string& key, const Trace& t) {
  Kinds kinds;
  std::string ops, objects;
  for (size_t i = 0; i < t.ops.size(); i++) (ops += i == 0 ? "[" : ",") += op_json(t, static_cast<int32_t>(i), &kinds);
  for (const ObjectRef& object : t.objects) append_text(&(objects += objects.empty() ? "[" : ","), object.source);
  Inserter(database, tables::listings).add({key, number(t.number), kinds.json(), ops + "]", objects + "]"});
}

}  // namespace

void describe_trace(Database& database, const std::string& key, const Trace& trace, int64_t bytes) {
  describe_whole(database, key, trace, bytes);
  describe_parts(database, key, trace);
}

}  // namespace dalsegno::store
