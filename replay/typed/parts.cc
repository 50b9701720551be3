// What ops of typed traces take apart: elements, items, slots.
#include <algorithm>

#include "replay/typed/typed_trace.h"

namespace dalsegno::typed {

constexpr int kModular = 2;  // representations of an int that no type stands for
static_assert(static_cast<int>(Type::kNpBool) + kModular == static_cast<int>(Rep::kNpBool) &&
                  static_cast<int>(Type::kRangeIterator) + kModular == static_cast<int>(Rep::kCount),
              "first the representations, in their order");

Rep rep_of_type(Type type) {
  if (type >= Type::kRangeIterator) return Rep::kNone;
  return static_cast<Rep>(static_cast<int>(type) + (type < Type::kNpBool ? 0 : kModular));
}

Type type_of_rep(Rep rep) {
  if (is_modular(rep)) return Type::kInt;
  return static_cast<Type>(static_cast<int>(rep) - (rep < Rep::kNpBool ? 0 : kModular));
}

namespace {

// An element of a row that is not built is one of the array. False: it has too many indices.
bool add_rows(const TypedTrace& typed, Element* e) {
  const Trace& t = *typed.trace;
  while (t.ops[e->array].kind == OpKind::get_item && typed.ops[e->array].mode == Mode::kVirtual) {
    if (e->rank == kMaxElementRank) return false;
    std::copy_backward(e->at.begin(), e->at.end() - 1, e->at.end());
    std::copy_backward(e->constant.begin(), e->constant.end() - 1, e->constant.end());
    const ValueId* row = t.inputs_of(t.ops[e->array]);
    e->facts = typed.ops[e->array].facts;
    e->at[0] = row[1];
    e->array = row[0];
    e->rank++;
  }
  return true;
}

// As the op has it.
std::optional<Element> own_element_of(const TypedTrace& typed, const Op& op) {
  const Trace& t = *typed.trace;
  const bool item = op.kind == OpKind::call && op.n_inputs == 3;
  if (!(item || op.kind == OpKind::get_item || op.kind == OpKind::set_item) || op.facts < 0 || op.fn != ArrayFn::none) return {};
  const ValueId* inputs = t.inputs_of(op) + (item ? 1 : 0);
  Element e;
  e.array = inputs[0];
  e.facts = op.facts;
  e.rank = t.facts[op.facts].rank;
  if (op.kind == OpKind::set_item) e.stored = inputs[2];
  if (e.rank < 1 || e.rank > kMaxElementRank || (item && e.rank != 1)) return {};
  const ValueId index = e.at[0] = inputs[1];
  const Op& made = t.ops[index];
  if (made.kind == OpKind::constant) {
    const std::vector<int64_t>& positions = typed.known.objects[made.object].positions;
    if (static_cast<int32_t>(positions.size()) == e.rank) {
      e.at.fill(kNull);
      std::copy(positions.begin(), positions.end(), e.constant.begin());
      return e;
    }
  }
  if (e.rank == 1) return e;
  if (made.kind != OpKind::build_tuple || made.n_inputs != e.rank) return {};
  std::copy_n(t.inputs_of(made), e.rank, e.at.begin());
  e.tuple = index;
  return e;
}

}  // namespace

std::optional<Element> element_of(const TypedTrace& typed, const Op& op) {
  std::optional<Element> e = own_element_of(typed, op);
  return e && add_rows(typed, &*e) ? e : std::nullopt;
}

Item item_of(const TypedTrace& typed, const Op& op) {
  const ValueId* inputs = typed.inputs_of(op);
  switch (op.kind) {
    case OpKind::get_item:
      return {inputs[0], inputs[1], kNull};
    case OpKind::set_item:
      return {inputs[0], inputs[1], inputs[2]};
    case OpKind::list_append:
      return {inputs[0], kNull, inputs[1]};
    case OpKind::call:
      return {inputs[1], kNull, op.n_inputs > 2 ? inputs[2] : kNull};
    case OpKind::iter_next:
      return {inputs[0], kNull, kNull};
    default:
      return {};
  }
}

bool takes(const Trace& t, const Op& op, ValueId v) {
  const ValueId* inputs = t.inputs_of(op);
  return std::find(inputs, inputs + op.n_inputs, v) != inputs + op.n_inputs;
}

bool is_number(const TypedTrace& typed, ValueId v) {
  return typed.values[v].rep != Rep::kNone || typed.trace->ops[v].kind == OpKind::constant;
}

bool dies_behind(const Trace& t, ValueId v, ValueId i) {
  size_t behind = static_cast<size_t>(i) + 1;
  if (behind < t.ops.size() && t.ops[behind].kind == OpKind::guard_world) ++behind;
  return behind < t.ops.size() && t.ops[behind].kind == OpKind::release && takes(t, t.ops[behind], v);
}

bool hands_over(const TypedTrace& typed, ValueId i, int32_t k) {
  const Trace& t = *typed.trace;
  const ValueId* inputs = t.inputs_of(t.ops[i]);
  return std::count(inputs, inputs + t.ops[i].n_inputs, inputs[k]) == 1 && dies_behind(t, inputs[k], i);
}

bool may_lack_object(const TypedTrace& typed, ValueId v) {
  const Trace& t = *typed.trace;
  const ValueForm& form = typed.values[v];
  if (form.rep == Rep::kNone || form.born_raw || form.since < 0) return false;
  return t.ops[v].kind == OpKind::call_tree || (t.ops[v].kind == OpKind::param && t.anchor == AnchorKind::entry);
}

std::vector<ValueId> slots_of(const Snapshot& s) {
  std::vector<ValueId> slots;
  for (const SnapshotFrame& f : s.frames) {
    slots.push_back(f.function);
    slots.insert(slots.end(), f.locals.begin(), f.locals.end());
    slots.insert(slots.end(), f.stack.begin(), f.stack.end());
  }
  return slots;
}

}  // namespace dalsegno::typed
