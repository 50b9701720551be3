// The form of each op: how it is done, and what its result is.
#include <algorithm>
#include <array>

#include "replay/typed/inference.h"
#include "replay/typed/walked.h"
#include "trace/walk.h"

namespace dalsegno::typed {

// Kinds whose typed form may refuse its operands.
bool Inference::is_refusing(OpKind kind) {
  return kind == OpKind::binary || kind == OpKind::inplace || kind == OpKind::compare || kind == OpKind::unary ||
         kind == OpKind::get_item || kind == OpKind::set_item || kind == OpKind::iter_next || kind == OpKind::call;
}

void Inference::born(ValueId i, Rep rep) {
  value(i).rep = rep;
  value(i).born_raw = true;
}

// Belongs op i to the instruction the trace begins with?
bool Inference::is_first(const Op& o) const {
  if (o.snapshot < 0 || t_.entry.frames.empty()) return false;
  if (t_.snapshots.top(o.snapshot).offset != t_.entry.frames.back().offset) return false;
  size_t depth = 0;
  for (int32_t f = t_.snapshots.tops[o.snapshot]; f >= 0; f = t_.snapshots.frames[f].outer) ++depth;
  return depth == t_.entry.frames.size();
}

void Inference::form_of(ValueId i) {
  const Op& o = op(i);
  if (typed_.known.python_first && is_first(o) && is_refusing(o.kind)) return;
  switch (o.kind) {
    case OpKind::constant:
      if (constant(i).unboxes) value(i).rep = allowed(rep_of_type(constant(i).type));
      if (constant(i).wraps) value(i).rep = constant(i).natural ? Rep::kNatural : Rep::kWrapped;
      if (constant(i).type == Type::kText) types_[i] = Type::kText;
      return;
    case OpKind::guard_type:
      return form_guard_type(o, i);
    case OpKind::guard_array:
      arrays_[in(o)[0]] = t_.facts[o.facts];
      return;
    case OpKind::binary:
    case OpKind::inplace:
    case OpKind::compare:
    case OpKind::unary:
      return form_operator(o, i);
    case OpKind::truth:
    case OpKind::not_:
      return form_truth(o, i);
    case OpKind::is_:
      if (never_same(o)) form(i).mode = Mode::kFixed;
      return born(i, Rep::kBool);
    case OpKind::contains:
      if (is_lookup(i, in(o)[1], in(o)[0])) form(i).mode = Mode::kLookup;
      return born(i, Rep::kBool);
    case OpKind::get_len:
      if (!(o.effects & kRunsCode)) form(i).mode = Mode::kLength;
      return born(i, Rep::kInt);
    case OpKind::get_item:
    case OpKind::set_item:
      return form_subscript(o, i);
    case OpKind::set_add:
    case OpKind::map_add:
      if (is_lookup(i, in(o)[0], in(o)[1])) form_lookup(i, o.kind == OpKind::set_add ? Callee::kAdd : Callee::kNone);
      return;
    case OpKind::get_iter:
      return form_iterator(o, i);
    case OpKind::iter_next:
      return form_next(o, i);
    case OpKind::call:
      return form_call(o, i);
    case OpKind::build_list:
    case OpKind::build_tuple:
      types_[i] = o.kind == OpKind::build_list ? Type::kList : Type::kTuple;
      return;
    case OpKind::own_attr:
      value(i).rep = expected_[i];
      [[fallthrough]];
    case OpKind::set_own_attr:
      form(i).mode = Mode::kAttribute;
      return;
    case OpKind::list_append:
      form(i).mode = Mode::kItem;
      return;
    case OpKind::get_attr:
      return form_part_of_complex(o, i);
    default:
      return;
  }
}

// What an op on arrays gives, as far as that is known.
ArrayFacts Inference::array_of(const Op& o) const {
  if (o.fn != ArrayFn::none && o.facts >= 0) return t_.facts[o.facts];
  if (const Into into = into_of(typed_, o); into.target != kNull) return arrays_[into.target];
  return kNoFacts;
}

// Of a subscript: what the view is that it gives, or that it is written through.
ArrayFacts Inference::view_of(const Op& o) const {
  const ArrayFacts& array = arrays_[in(o)[0]];
  const bool quiet = !(o.effects & (kRunsCode | kStoresNames));
  const auto index = array.rank > 0 && quiet ? view_index_of(typed_, o) : std::nullopt;
  return {array.dtype, index ? rank_of_view(*index, array.rank) : -1};
}

// Does a store through a view need no conversion but one that a number stored there goes through?
bool Inference::stores_array(const Op& o, ValueId i) {
  const ArrayFacts &view = form(i).view, &stored = arrays_[in(o)[2]];
  if (view.rank < 1) return false;
  if (stored.rank > 0) return stored.dtype == view.dtype && stored.rank <= view.rank;
  return stores(view.dtype, typed_.rep_in_ops(in(o)[2]));
}

bool Inference::gathers(const Op& o) const {
  const ArrayFacts &array = arrays_[in(o)[0]], &positions = arrays_[in(o)[1]];
  return o.kind == OpKind::get_item && !(o.effects & (kRunsCode | kStoresNames)) && array.rank == 1 && positions.rank == 1 &&
         is_position(rep_of_dtype(positions.dtype));
}

// Is the guard before it that looking up this key in this container is quiet?
bool Inference::is_lookup(ValueId i, ValueId container, ValueId key) const {
  return i > 0 && op(i - 1).kind == OpKind::guard_quiet_lookup && in(op(i - 1))[0] == container && in(op(i - 1))[1] == key;
}

void Inference::form_lookup(ValueId i, Callee callee) {
  form(i).mode = Mode::kLookup;
  form(i).callee = callee;
  if (callee != Callee::kAdd && op_has_result(op(i).kind)) value(i).rep = expected_[i];
}

void Inference::form_subscript(const Op& o, ValueId i) {
  if (is_lookup(i, in(o)[0], in(o)[1])) return form_lookup(i, Callee::kNone);
  if (is_element(o)) {
    form(i).mode = Mode::kElement;
    const Rep rep = rep_of_dtype(t_.facts[o.facts].dtype);
    if (o.kind == OpKind::get_item && rep != Rep::kNone) born(i, rep);
    return;
  }
  if (gathers(o)) {
    form(i).mode = Mode::kGather;
    form(i).view = arrays_[i] = arrays_[in(o)[0]];
    return;
  }
  form(i).view = view_of(o);
  if (o.kind == OpKind::get_item) arrays_[i] = form(i).view;
  if (o.kind == OpKind::set_item && stores_array(o, i)) {
    form(i).mode = Mode::kView;
    return;
  }
  const Rep index = typed_.rep_in_ops(in(o)[1]);
  const Type container = types_[in(o)[0]];
  if (is_piece(o, container)) return form_piece(i, container);
  if (index == Rep::kBool || is_position(index)) {
    if (container == Type::kList || (container == Type::kTuple && o.kind == OpKind::get_item)) return form_item_of(i, container);
  }
  if (index == Rep::kBool || is_position(index)) {
    if (container == Type::kText && o.kind == OpKind::get_item) return form_letter(i);
    if (is_byte(o, container)) return form_byte(o, i, container);
  }
  const bool sequence = !(o.effects & (kRunsCode | kStoresNames));  // else it may be a dict, with keys
  if (index == Rep::kInt || index == Rep::kBool || (is_position(index) && sequence)) form(i).mode = Mode::kIndex;
}

// From one position to another, where both are numbers, or not given; backwards, too. Into lists what is in others.
bool Inference::is_piece(const Op& o, Type container) const {
  constexpr std::array kTypes{Type::kList, Type::kTuple, Type::kText, Type::kBytes};
  if (op(in(o)[1]).kind != OpKind::build_slice || std::find(kTypes.begin(), kTypes.end(), container) == kTypes.end()) return false;
  if (o.kind == OpKind::get_item ? (o.effects & (kRunsCode | kStoresNames)) != 0 : !puts_items(o, container)) return false;
  const auto index = view_index_of(typed_, o);
  if (!index || !(*index)[0].given[2]) return index.has_value();
  const int64_t step = (*index)[0].constant[2];
  return (*index)[0].at[2] == kNull && (step == 1 || (step == -1 && o.kind == OpKind::get_item));
}

bool Inference::puts_items(const Op& o, Type container) const {
  const Type put = types_[in(o)[2]];
  return container == Type::kList && (put == Type::kList || put == Type::kTuple);
}

void Inference::form_piece(ValueId i, Type container) {
  form(i).mode = Mode::kPiece;
  if (op_has_result(op(i).kind)) types_[i] = container;
}

void Inference::form_letter(ValueId i) {
  form(i).mode = Mode::kText;
  types_[i] = Type::kText;
}

bool Inference::is_byte(const Op& o, Type container) {
  const bool gets = o.kind == OpKind::get_item;
  const Rep stored = gets ? Rep::kNone : typed_.rep_in_ops(in(o)[2]);
  if (typed_.known.box_ints) return false;
  if (container == Type::kNumericArray) {
    const Rep item = item_of_typecode(o.imm);
    return item != Rep::kNone && (gets || stored == number_of_item(item));
  }
  return container == Type::kBytes ? gets : container == Type::kBytearray && (gets || stored == Rep::kInt);
}

void Inference::form_byte(const Op& o, ValueId i, Type container) {
  form(i).mode = Mode::kByte;
  form(i).of_tuple = container == Type::kBytes;
  if (o.kind == OpKind::get_item) born(i, container == Type::kNumericArray ? number_of_item(item_of_typecode(o.imm)) : Rep::kInt);
}

// Where a guard on its type follows, the item is unboxed as it is taken: one of another type leaves before the instruction.
void Inference::form_item_of(ValueId i, Type container) {
  form(i).mode = Mode::kItem;
  form(i).of_tuple = container == Type::kTuple || container == Type::kTupleIterator;
  if (op_has_result(op(i).kind)) value(i).rep = expected_[i];
}

bool Inference::is_element(const Op& o) const {
  const std::optional<Element> e = element_of(typed_, o);
  if (!e || (rep_of_dtype(t_.facts[o.facts].dtype) == Rep::kNone && o.kind != OpKind::get_item)) return false;
  for (int32_t k = 0; k < e->rank; ++k)
    if (e->at[k] != kNull && !is_position(typed_.rep_in_ops(e->at[k]))) return false;
  return e->stored == kNull || stores(t_.facts[o.facts].dtype, typed_.rep_in_ops(e->stored));
}

void Inference::find_texts(const Op& o, ValueId i) {
  const std::vector<ValueId> items = walked_by(t_, i);
  for (size_t k = 0; k < items.size(); ++k)
    if (const Walked over = walk_of(o.imm).over[k]; over == Walked::kAscii || over == Walked::kText) types_[items[k]] = Type::kText;
}

// An iterator over a range gives ints, one over an array of one dimension its elements.
void Inference::form_next(const Op& o, ValueId i) {
  if (form_walk(typed_, i, expected_)) return find_texts(o, i);
  if (!expects_item(o.imm) && types_[in(o)[0]] != Type::kRangeIterator) return;
  if (types_[in(o)[0]] == Type::kRangeIterator && !typed_.known.box_ints) {
    form(i).mode = Mode::kRange;
    born(i, Rep::kInt);
  } else if (const Type iterator = types_[in(o)[0]]; iterator == Type::kListIterator || iterator == Type::kTupleIterator) {
    form_item_of(i, iterator);
  } else if (o.facts >= 0 && t_.facts[o.facts].rank == 1 && rep_of_dtype(t_.facts[o.facts].dtype) != Rep::kNone) {
    form(i).mode = Mode::kElement;
    born(i, rep_of_dtype(t_.facts[o.facts].dtype));
  }
}

// An unboxed number is not None, nor any other object that is no number.
bool Inference::never_same(const Op& o) {
  for (int k = 0; k < 2; ++k) {
    const ValueId a = in(o)[k], b = in(o)[1 - k];
    if (value(a).born_raw && is_constant(b) && !constant(b).number) return true;
  }
  return false;
}

void Inference::form_guard_type(const Op& o, ValueId i) {
  types_[in(o)[0]] = typed_.known.objects[o.object].names;
  ValueForm& v = value(in(o)[0]);
  if (v.rep != Rep::kNone) return;
  v.rep = rep_named(o);
  v.since = i;
}

// An int that is a constant and exact in a double is compared with a float as a double.
bool Inference::compares_as_float(ValueId v, Rep other) const {
  if ((other != Rep::kFloat && other != Rep::kComplex) || typed_.values[v].rep != Rep::kInt || !is_constant(v)) return false;
  return constant(v).unboxes && exact_in_double(constant(v).bits);
}

// An int to the power of an int is an int where that is no negative one: a constant, or where an int is expected (else the step refuses).
bool Inference::is_whole_power(const Op& o, ValueId i, Rep a, Rep b) const {
  constexpr int64_t kMost = 62;
  if (o.kind == OpKind::compare || static_cast<BinaryOp>(o.imm) != BinaryOp::power || a != Rep::kInt || b != Rep::kInt) return false;
  if (!is_constant(in(o)[1])) return expected_[i] == Rep::kInt;
  return constant(in(o)[1]).bits >= 2 && constant(in(o)[1]).bits <= kMost;
}

// A complex number of NumPy's to the power of a small constant (npy_cpow() multiplies).
bool Inference::is_complex_power(const Op& o, Rep a, Rep b) const {
  constexpr int64_t kMost = 99;
  if (o.kind == OpKind::compare || static_cast<BinaryOp>(o.imm) != BinaryOp::power || a != Rep::kNpComplex128 || b != Rep::kInt)
    return false;
  return is_constant(in(o)[1]) && constant(in(o)[1]).unboxes && constant(in(o)[1]).bits >= 2 && constant(in(o)[1]).bits <= kMost;
}

// An int that is a constant and fits in the dtype of NumPy's integer beside it is one of those.
Rep Inference::taken_as(ValueId v, Rep other) const {
  const Rep rep = typed_.rep_in_ops(v);
  const bool fits = rep == Rep::kInt && is_numpy_integer(other) && is_constant(v) && constant(v).unboxes && holds(other, constant(v).bits);
  return fits ? other : rep;
}

Operator Inference::operator_of(const Op& o, ValueId i) const {
  Rep a = typed_.rep_in_ops(in(o)[0]);
  if (o.kind == OpKind::unary) return unary_operator(static_cast<UnaryOp>(o.imm), a);
  Rep b = typed_.rep_in_ops(in(o)[1]);
  if (is_whole_power(o, i, a, b)) return {Rep::kInt, Rep::kInt};
  if (is_complex_power(o, a, b)) return {Rep::kNpComplex128, Rep::kNpComplex128};
  if (o.kind != OpKind::compare) return binary_operator(static_cast<BinaryOp>(o.imm), taken_as(in(o)[0], b), taken_as(in(o)[1], a));
  if (compares_as_float(in(o)[0], b)) a = Rep::kFloat;
  if (compares_as_float(in(o)[1], a)) b = Rep::kFloat;
  return compare_operator(a, b, is_equality(o));
}

bool Inference::is_equality(const Op& o) {
  constexpr int32_t kEqual = 2, kUnequal = 3;  // Py_EQ, Py_NE
  return o.kind == OpKind::compare && (o.imm == kEqual || o.imm == kUnequal);
}

bool Inference::compares_texts(const Op& o) {
  return o.kind == OpKind::compare && types_[in(o)[0]] == Type::kText && types_[in(o)[1]] == Type::kText;
}

void Inference::form_operator(const Op& o, ValueId i) {
  arrays_[i] = array_of(o);
  if (o.fn != ArrayFn::none) return;
  if (compares_texts(o)) {
    form(i).mode = Mode::kText;
    return born(i, Rep::kBool);
  }
  const bool multiplies = o.kind == OpKind::binary && static_cast<BinaryOp>(o.imm) == BinaryOp::matmul;
  if (multiplies && form_product(o, i, in(o))) return;
  Operator found = modular_operator(o, i);
  if (!found) found = operator_of(o, i);
  if (!found) return;
  form(i) = {Mode::kTyped, found};
  born(i, found.result);
}

// z.real, z.imag
void Inference::form_part_of_complex(const Op& o, ValueId i) {
  const Rep rep = typed_.rep_in_ops(in(o)[0]);
  if (!is_pair(rep)) return;
  const std::string& name = t_.names[static_cast<size_t>(o.name)];
  if (name != "real" && name != "imag") return;
  const Callee part = name == "real" ? Callee::kReal : Callee::kImag;
  form(i) = {Mode::kTyped, call_operator(part, std::span(&rep, 1)), part};
  born(i, form(i).typed.result);
}

// `truth` of a bool is that bool.
void Inference::form_truth(const Op& o, ValueId i) {
  born(i, Rep::kBool);
  const Rep a = typed_.rep_in_ops(in(o)[0]);
  if (a == Rep::kNone) return;
  const bool truth = a == Rep::kBool || a == Rep::kNpBool;
  form(i).mode = truth && o.kind == OpKind::truth ? Mode::kAlias : Mode::kTyped;
}

}  // namespace dalsegno::typed
