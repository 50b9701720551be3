// Which part of a value is wanted: its number, its object, or both.
#include "replay/typed/inference.h"
#include "replay/typed/modular.h"

namespace dalsegno::typed {

void Inference::mark_wants(ValueId i) {
  const Op& o = op(i);
  const ValueId* inputs = in(o);
  switch (o.kind) {
    case OpKind::enter:
    case OpKind::leave_frame:
    case OpKind::release:
    case OpKind::return_:
    case OpKind::guard_type:
      return;
    case OpKind::guard_true:
    case OpKind::guard_false:
      (value(inputs[0]).rep == Rep::kBool ? value(inputs[0]).wants_raw : value(inputs[0]).wants_obj) = true;
      return;
    default:
      break;
  }
  const Mode mode = form(i).mode;
  if (mode == Mode::kElement) return want_element(o);
  if (mode == Mode::kItem) return want_item(o);
  if (o.kind == OpKind::call && mode == Mode::kTyped) return want_call(o, i);
  if (mode == Mode::kVirtual) return want_parts(o);
  if (mode == Mode::kPart) return;
  if (mode == Mode::kText || mode == Mode::kByte) {
    for (int32_t k = 0; k < o.n_inputs; ++k)
      (k == 0 || o.kind == OpKind::compare || o.kind == OpKind::call ? value(inputs[k]).wants_obj : value(inputs[k]).wants_raw) = true;
    return;
  }
  if (mode == Mode::kAttribute) {
    value(inputs[0]).wants_obj = true;
    if (o.n_inputs > 1) (value(inputs[1]).passing ? value(inputs[1]).wants_raw : value(inputs[1]).wants_obj) = true;
    return;
  }
  if (mode == Mode::kView || mode == Mode::kPiece) return want_index(o);
  if (o.kind == OpKind::call_tree) return want_arguments(o, i);
  for (int32_t k = 0; k < o.n_inputs; ++k) {
    ValueForm& v = value(inputs[k]);
    const bool index = mode == Mode::kIndex && k == 1;
    const bool mask = is_masked(form(i)) && k != masked_by(t_, typed_.known, o)->operand;
    const bool number = mode == Mode::kDraw && k >= draw_of(form(i).callee).first_number(o.n_inputs);
    if (index || number || (mode == Mode::kTyped && !mask) || mode == Mode::kAlias) v.wants_raw = true;
    if (number) continue;
    if (mode == Mode::kPython || mode == Mode::kDelayed || mode == Mode::kIndex || mode == Mode::kRange || mode == Mode::kNext ||
        mode == Mode::kLength || mode == Mode::kDraw || mode == Mode::kLookup || mode == Mode::kHeap || mode == Mode::kProduct ||
        mode == Mode::kReduction || mode == Mode::kGather)
      v.wants_obj = true;
  }
  // An int's remainder may be the very object that was divided.
  if (is_int_remainder(o, form(i)) && !value(inputs[0]).passing) value(i).wants_obj = value(inputs[0]).wants_obj = true;
}

// A jitted function takes unboxed what only the call holds: nobody can tell which object it would have been.
void Inference::want_arguments(const Op& o, ValueId i) {
  value(in(o)[0]).wants_obj = true;
  for (int32_t k = 1; k < o.n_inputs; ++k)
    (hands_over(typed_, i, k) && has_raw(in(o)[k], i) ? value(in(o)[k]).wants_raw : value(in(o)[k]).wants_obj) = true;
}

// The container is an object, the rest is unboxed.
void Inference::want_element(const Op& o) {
  const std::optional<Element> e = element_of(typed_, o);
  value(e ? e->array : in(o)[0]).wants_obj = true;
  if (!e) return;
  for (int32_t k = 0; k < e->rank; ++k)
    if (e->at[k] != kNull) value(e->at[k]).wants_raw = true;
  if (e->stored != kNull) value(e->stored).wants_raw = true;
  if (e->tuple != kNull) value(e->tuple).wants_obj = true;
}

void Inference::want_item(const Op& o) {
  const Item item = item_of(typed_, o);
  value(item.container).wants_obj = true;
  if (item.index != kNull) value(item.index).wants_raw = true;
  if (item.stored != kNull) (value(item.stored).passing ? value(item.stored).wants_raw : value(item.stored).wants_obj) = true;
}

// Where the result is one of the arguments, both share their object, unless nobody ever sees the argument's.
void Inference::want_call(const Op& o, ValueId i) {
  for (int32_t k = 1; k < o.n_inputs; ++k) {
    ValueForm& v = value(in(o)[k]);
    v.wants_raw = true;
    if (v.passing || !gives_argument(form(i).callee, v.rep)) continue;
    v.wants_obj = value(i).wants_obj = true;
  }
}

// The view is made of numbers; NumPy, which may have to do it all the same, takes objects.
void Inference::want_index(const Op& o) {
  const std::vector<IndexPart> index = *view_index_of(typed_, o);
  for (const IndexPart& part : index)
    for (const ValueId v : part.at)
      if (v != kNull) value(v).wants_raw = true;
  for (int32_t k = 0; k < o.n_inputs; ++k) value(in(o)[k]).wants_obj = true;
}

void Inference::want_parts(const Op& o) {
  if (o.kind == OpKind::get_item) {
    value(in(o)[0]).wants_obj = value(in(o)[1]).wants_raw = true;
    return;
  }
  for (int32_t k = o.kind == OpKind::call ? 1 : 0; k < o.n_inputs; ++k) {
    ValueForm& v = value(in(o)[k]);
    v.wants_raw |= v.rep != Rep::kNone;
    if (!v.passing) v.wants_obj = true;
  }
}

}  // namespace dalsegno::typed
