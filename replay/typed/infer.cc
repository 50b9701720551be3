// infer(): the passes in order, and those that look at parameters, at what is handed on and at effects.
#include <algorithm>

#include "replay/typed/borrow.h"
#include "replay/typed/inference.h"
#include "replay/typed/virtual.h"

namespace dalsegno::typed {

bool Inference::run(std::vector<bool>* refused) {
  const std::vector<Rep>& params = typed_.known.params;
  for (size_t v = 0; v < params.size(); ++v) value(static_cast<ValueId>(v)).rep = params[v];
  const bool loop = t_.anchor == AnchorKind::loop;
  if (loop) find_natural_params();
  if (loop) hoist();
  const auto n = static_cast<ValueId>(t_.ops.size());
  count_uses();
  find_chains(*refused);
  find_expected();
  for (ValueId i = 0; i < n; ++i) form_of(i);
  if (refuse(refused)) return false;
  find_passing();
  find_virtual(typed_);
  for (ValueId i = 0; i < n; ++i) mark_wants(i);
  if (loop) unbox_carried();
  for (ValueId i = 0; i < n; ++i) form(i).effects = effects_of(i);
  find_borrowed(typed_);
  return true;
}

// The types in the table are final, so a guard_type on a loop's parameter holds wherever it stands: it is done where the value comes
// in, at the jump, and the parameter stays unboxed around the back edge.
void Inference::hoist() {
  for (const Op& o : t_.ops) {
    if (o.kind != OpKind::guard_type) continue;
    const ValueId v = in(o)[0];
    if (v >= t_.n_params || value(v).rep != Rep::kNone) continue;
    value(v).rep = rep_named(o);
    if (value(v).rep == Rep::kInt && natural_[v]) value(v).rep = Rep::kNatural;
    // The object it came in as is kept beside it while the value is the same: its identity can be seen.
    value(v).hoisted = value(v).wants_obj = value(v).rep != Rep::kNone;
  }
}

// A loop parameter that nothing in the loop looks at comes in as it goes out at the back edge: unboxed, if it is computed so.
void Inference::unbox_carried() {
  const Op& end = t_.ops.back();
  if (end.kind != OpKind::jump || end.imm != t_.number) return;
  const std::vector<ValueId> in = slots_of(t_.entry), out = slots_of(t_.snapshot(end.snapshot));
  for (size_t k = 0; k < in.size() && k < out.size(); ++k) {
    if (in[k] == kNull || out[k] == kNull || in[k] >= t_.n_params || out[k] < t_.n_params) continue;
    ValueForm& param = value(in[k]);
    const ValueForm& source = value(out[k]);
    const bool unboxed = source.rep != Rep::kNone && !is_constant(out[k]) && (source.born_raw || source.wants_raw);
    if (!unboxed || param.rep != Rep::kNone || param.wants_obj) continue;
    param.rep = source.rep;
    param.hoisted = param.wants_raw = param.wants_obj = true;
  }
}

// The representations that guards behind ask for.
void Inference::find_expected() {
  expected_.assign(t_.ops.size(), Rep::kNone);
  for (const Op& o : t_.ops)
    if (o.kind == OpKind::guard_type && expected_[in(o)[0]] == Rep::kNone) expected_[in(o)[0]] = rep_named(o);
}

void Inference::count_uses() {
  uses_.assign(t_.ops.size(), 0);
  for (const Op& o : t_.ops) {
    if (o.kind == OpKind::guard_type || o.kind == OpKind::release) continue;
    for (int32_t k = 0; k < o.n_inputs; ++k) uses_[in(o)[k]]++;
  }
}

// The values that op i was the last to take.
const Op* Inference::released_behind(ValueId i) const {
  const auto end = static_cast<ValueId>(t_.ops.size());
  ValueId behind = i + 1;
  while (behind < end && (op(behind).kind == OpKind::guard_world || op(behind).kind == OpKind::guard_type)) ++behind;
  return behind < end && op(behind).kind == OpKind::release ? &op(behind) : nullptr;
}

void Inference::find_passing() {
  const auto n = static_cast<ValueId>(t_.ops.size());
  for (ValueId i = 0; i < n; ++i) {
    const Op& o = op(i);
    const bool attribute = o.kind == OpKind::set_own_attr && form(i).mode == Mode::kAttribute;
    const bool stores = attribute || (form(i).mode == Mode::kItem && item_of(typed_, o).stored != kNull);
    const bool calls = o.kind == OpKind::call && (form(i).mode == Mode::kTyped || form(i).mode == Mode::kVirtual);
    const bool index = o.kind == OpKind::build_tuple || o.kind == OpKind::build_slice;
    if (!index && !stores && !calls && !is_int_remainder(o, form(i))) continue;
    const Op* release = released_behind(i);
    if (release == nullptr) continue;
    for (int32_t k = 0; k < o.n_inputs; ++k) {
      const ValueId v = in(o)[k];
      value(v).passing = takes(t_, *release, v) && value(v).born_raw && uses_[v] == 1 && op(v).kind != OpKind::param && is_new(v);
    }
  }
}

// Not one of its operands, the very object, but for those that nobody ever sees.
bool Inference::is_new(ValueId v) {
  const Op& o = op(v);
  if (is_int_remainder(o, form(v))) return value(in(o)[0]).passing;
  if (o.kind != OpKind::call || form(v).mode != Mode::kTyped) return true;
  return std::all_of(in(o) + 1, in(o) + o.n_inputs,
                     [&](ValueId a) { return value(a).passing || !gives_argument(form(v).callee, value(a).rep); });
}

uint32_t Inference::effects_of(ValueId i) const {
  const Op& o = t_.ops[i];
  switch (typed_.ops[i].mode) {
    case Mode::kTyped:
    case Mode::kAlias:
    case Mode::kFixed:
    case Mode::kText:
    case Mode::kPart:
    case Mode::kIterator:
    case Mode::kVirtual:
    case Mode::kDelayed:
      return kNoEffect;
    case Mode::kProduct:
    case Mode::kReduction:
    case Mode::kGather:
      return kReadsMemory;
    case Mode::kPiece:
      return o.kind == OpKind::get_item ? kReadsMemory : kWritesMemory;
    case Mode::kView:
      return o.kind == OpKind::get_item ? kNoEffect : o.effects;
    case Mode::kByte:
    case Mode::kElement:
      return o.kind == OpKind::get_item || o.kind == OpKind::call ? kReadsMemory : kWritesMemory;
    case Mode::kItem:
      return o.kind == OpKind::set_item ? kReplaces : o.kind == OpKind::get_item ? kReadsMemory : kWritesMemory;
    case Mode::kRange:
    case Mode::kNext:
    case Mode::kHeap:
    case Mode::kDraw:
      return kWritesMemory;
    case Mode::kLength:
      return kReadsMemory | kRaises;
    case Mode::kPython:
    case Mode::kIndex:
    case Mode::kLookup:
    case Mode::kAttribute:
      break;
  }
  return o.effects;
}

bool Inference::is_int_remainder(const Op& o, const OpForm& form) {
  const bool operation = o.kind == OpKind::binary || o.kind == OpKind::inplace;
  return form.mode == Mode::kTyped && operation && static_cast<BinaryOp>(o.imm) == BinaryOp::remainder && form.typed.operand == Rep::kInt;
}

TypedTrace infer(const Trace& trace, const Knowledge& known) {
  std::vector<bool> refused(trace.ops.size());
  for (;;) {
    Inference inference(trace, known);
    if (inference.run(&refused)) return inference.take();
  }
}

}  // namespace dalsegno::typed
