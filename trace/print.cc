// A trace as text, one op a line; also of traces that verify() refuses, for tests and bug reports.
#include <string>

#include "trace/op_rules.h"
#include "trace/trace.h"
#include "trace/walk.h"

namespace dalsegno {
namespace {

constexpr const char* kBinary[] = {"+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^"};
constexpr const char* kUnary[] = {"-", "+", "~", "rint"};
constexpr const char* kCompare[] = {"<", "<=", "==", "!=", ">", ">="};
constexpr const char* kConvert[] = {"?", "str", "repr", "ascii"};
constexpr const char* kIn[] = {"in", "not in"};
constexpr const char* kIs[] = {"is", "is not"};
constexpr const char* kNext[] = {"expects exhaustion", "expects an item"};

template <size_t N>
std::string word(const char* const (&words)[N], int32_t i) {
  return i >= 0 && static_cast<size_t>(i) < N ? words[i] : "?" + std::to_string(i);
}

template <class T>
const T* at(const std::vector<T>& items, int32_t i) {
  return i >= 0 && static_cast<size_t>(i) < items.size() ? &items[i] : nullptr;
}

std::string value(ValueId v) { return v == kNull ? "null" : "v" + std::to_string(v); }

std::string values(const std::vector<ValueId>& slots) {
  std::string text;
  for (ValueId v : slots) text += (text.empty() ? "" : " ") + value(v);
  return text;
}

std::string facts_text(const ArrayFacts& facts) { return std::string(dtype_name(facts.dtype)) + "[" + std::to_string(facts.rank) + "]"; }

// An object by its source, else by what is known about it.
std::string object_text(const Trace& t, int32_t i) {
  const ObjectRef* ref = at(t.objects, i);
  if (ref == nullptr) return "object " + std::to_string(i) + "?";
  if (!ref->source.empty()) return "{" + ref->source + "}";
  return "{object " + std::to_string(i) + (ref->fingerprint.empty() ? "" : " " + ref->fingerprint) + "}";
}

// The immediate, where the kind has one.
std::string imm_text(const Trace& t, const Op& op) {
  switch (op.kind) {
    case OpKind::binary:
      return word(kBinary, op.imm);
    case OpKind::inplace:
      return word(kBinary, op.imm) + "=";
    case OpKind::unary:
      return word(kUnary, op.imm);
    case OpKind::compare:
      return word(kCompare, op.imm);
    case OpKind::contains:
      return word(kIn, op.imm);
    case OpKind::is_:
      return word(kIs, op.imm);
    case OpKind::convert:
      return word(kConvert, op.imm);
    case OpKind::iter_next: {
      const std::string walk = walk_text(walk_of(op.imm));
      return word(kNext, op.imm & 1) + (walk.empty() ? "" : ", of " + walk);
    }
    case OpKind::guard_function:
      return "globals " + object_text(t, op.imm);
    case OpKind::jump:
      return "trace " + std::to_string(op.imm);
    case OpKind::return_:
      return op.imm == 0 ? "" : "drops as snapshot " + std::to_string(op.imm - 1);
    default:
      return op.kind < OpKind::kCount && op_rule(op.kind).imm_low != INT32_MIN ? std::to_string(op.imm) : "";
  }
}

void add(std::string* line, const std::string& word) {
  if (!word.empty()) *line += " " + word;
}

std::string inputs_text(const Trace& t, const Op& op) {
  std::string text;
  for (int32_t k = 0; k < op.n_inputs; k++) {
    const ValueId* v = at(t.inputs, op.first_input + k);
    if (v == nullptr) return text + " ?";  // a damaged trace: however many follow
    add(&text, value(*v));
  }
  return text;
}

std::string effects_text(uint32_t effects) {
  static constexpr std::pair<Effect, const char*> kWords[] = {
      {kRunsCode, "runs code"},  {kWarns, "warns"},   {kStoresNames, "stores names"}, {kDropsReferences, "drops"}, {kReadsMemory, "reads"},
      {kWritesMemory, "writes"}, {kRaises, "raises"},
  };
  if (effects == kAnyEffect) return " anything";
  std::string text;
  for (const auto& [effect, word] : kWords)
    if (effects & effect) add(&text, word);
  return text;
}

// One op without what is only for the machine.
std::string op_text(const Trace& t, int32_t i) {
  const Op& op = t.ops[i];
  std::string line = op_has_result(op.kind) ? value(i) + " = " : "";
  line += op_name(op.kind);
  if (op.fn != ArrayFn::none) line += std::string(":") + array_fn_name(op.fn);
  line += inputs_text(t, op);
  add(&line, imm_text(t, op));
  if (const std::string* name = at(t.names, op.name)) add(&line, *name);
  if (op.object != -1) add(&line, object_text(t, op.object));
  if (op.object2 != -1) add(&line, object_text(t, op.object2));
  if (const ArrayFacts* facts = at(t.facts, op.facts)) add(&line, facts_text(*facts));
  return line;
}

void pad(std::string* line, size_t width) {
  if (line->size() < width) line->append(width - line->size(), ' ');
}

std::string op_line(const Trace& t, int32_t i) {
  const Op& op = t.ops[i];
  std::string line(2 + 2 * static_cast<size_t>(op.depth > 0 && op.depth < 32 ? op.depth : 0), ' ');
  line += op_text(t, i);
  pad(&line, 64);
  line += " |";
  if (op.line != 0) add(&line, std::to_string(op.line));
  if (op.snapshot != -1) add(&line, "-> s" + std::to_string(op.snapshot));
  if (op.exit_snapshot != -1) add(&line, "exit -> s" + std::to_string(op.exit_snapshot));
  if (op.at != -1) add(&line, "at " + std::to_string(op.at));
  line += effects_text(op.effects);
  return line + "\n";
}

std::string frames_text(const Snapshot& snapshot) {
  std::string text;
  for (const SnapshotFrame& f : snapshot.frames) {
    text += (text.empty() ? "" : " > ") + value(f.function) + "+" + std::to_string(f.offset);
    if (f.after != 0) text += ".." + std::to_string(f.after);
    if (f.action != 0) text += " action " + std::to_string(f.action);
    text += " [" + values(f.locals) + " | " + values(f.stack) + "]";
  }
  return text;
}

std::string title(const Trace& t) {
  static constexpr const char* kAnchors[] = {"entry", "loop", "exit"};
  std::string text = "trace " + std::to_string(t.number) + " " + word(kAnchors, static_cast<int32_t>(t.anchor));
  if (t.anchor == AnchorKind::exit)
    text += " of trace " + std::to_string(t.parent) + " op " + std::to_string(t.parent_op) + (t.parent_exit != 0 ? " exit" : "");
  if (!t.entry.frames.empty()) text += " at " + frames_text(t.entry);
  return text + "\n";
}

}  // namespace

std::string print_op(const Trace& trace, int32_t op) { return op_text(trace, op); }

std::string print(const Trace& trace) {
  std::string text = title(trace);
  for (int32_t i = 0; i < static_cast<int32_t>(trace.ops.size()); i++) text += op_line(trace, i);
  const char* fault = trace.snapshots.fault();
  if (fault) text += std::string("  snapshots: ") + fault + "\n";
  for (size_t i = 0; i < trace.snapshots.size() && !fault; i++)
    text += "  s" + std::to_string(i) + ": " + frames_text(trace.snapshot(static_cast<int32_t>(i))) + "\n";
  for (const Folded& f : trace.folded) {
    const std::string* name = at(trace.names, f.name);
    text += "  folded " + object_text(trace, f.dict) + "[" + (name ? *name : "?") +
            "] = " + (f.value < 0 ? "absent" : object_text(trace, f.value)) + "\n";
  }
  if (trace.reason != Reason::none)
    text += std::string("  ended: ") + reason_name(trace.reason) + (trace.where.empty() ? "" : " at " + trace.where) + "\n";
  return text;
}

}  // namespace dalsegno
