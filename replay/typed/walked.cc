#include "replay/typed/walked.h"

#include <algorithm>

#include "trace/walk.h"

namespace dalsegno::typed {

std::vector<ValueId> walked_by(const Trace& t, ValueId i) {
  const Walk walk = walk_of(t.ops[i].imm);
  if (walk.holder == Holder::kNone) return walk.n() == 1 ? std::vector<ValueId>{i} : std::vector<ValueId>();
  std::vector<ValueId> items(static_cast<size_t>(walk.n()), kNull);
  ValueId unpacked = kNull;
  for (auto k = static_cast<size_t>(i) + 1; k < t.ops.size(); ++k) {
    const Op& op = t.ops[k];
    if (op.kind == OpKind::guard_type || op.kind == OpKind::release) continue;
    if (takes(t, op, i)) {
      if (op.kind != OpKind::unpack || unpacked != kNull || op.imm != walk.n()) return {};
      unpacked = static_cast<ValueId>(k);
    } else if (unpacked != kNull && takes(t, op, unpacked)) {
      if (op.kind != OpKind::tuple_item || items[static_cast<size_t>(op.imm)] != kNull) return {};
      items[static_cast<size_t>(op.imm)] = static_cast<ValueId>(k);
    }
  }
  if (std::find(items.begin(), items.end(), kNull) != items.end()) return {};
  return items;
}

namespace {

bool is_text(Walked over) { return over == Walked::kAscii || over == Walked::kText; }
bool is_sequence(Walked over) { return over == Walked::kList || over == Walked::kTuple; }

bool has_such_items(const TypedTrace& typed, const Walk& walk, size_t k, Rep expected) {
  const Walked over = walk.over[k];
  if (is_text(over) || over == Walked::kArray) return true;
  return is_sequence(over) ? expected != Rep::kNone || walk.holder != Holder::kNone : !typed.known.box_ints;
}

void form_walked(TypedTrace& typed, const Walk& walk, size_t k, ValueId item, Rep expected) {
  ValueForm& value = typed.values[item];
  const Walked over = walk.over[k];
  if (is_text(over)) return;
  value.rep = over == Walked::kArray ? rep_of_dtype(walk.dtypes[k]) : is_sequence(over) ? expected : Rep::kInt;
  value.born_raw = !is_sequence(over);
}

}  // namespace

bool form_walk(TypedTrace& typed, ValueId i, const std::vector<Rep>& expected) {
  const Trace& t = *typed.trace;
  const Walk walk = walk_of(t.ops[i].imm);
  if (!expects_item(t.ops[i].imm) || walk.n() == 0) return false;
  const std::vector<ValueId> items = walked_by(t, i);
  if (items.empty()) return false;
  for (size_t k = 0; k < items.size(); ++k)
    if (!has_such_items(typed, walk, k, expected[items[k]])) return false;
  for (size_t k = 0; k < items.size(); ++k) form_walked(typed, walk, k, items[k], expected[items[k]]);
  typed.ops[i].mode = Mode::kNext;
  if (walk.holder == Holder::kNone) return true;
  for (const ValueId item : items) typed.ops[item].mode = typed.ops[t.inputs_of(t.ops[item])[0]].mode = Mode::kPart;
  return true;
}

}  // namespace dalsegno::typed
