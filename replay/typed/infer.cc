// infer(): which values are unboxed, which ops are typed, who needs the object. Passes over the trace:
//   hoist   a loop's parameters: their guards on types are done where values come in
//   forms   in order: each op's form follows from the representations of its operands
//   virtual what need not exist as an object
//   wants   who uses which part of a value
#include <algorithm>

#include "replay/typed/borrow.h"
#include "replay/typed/typed_trace.h"
#include "replay/typed/virtual.h"

namespace dalsegno::typed {
namespace {

class Inference {
 public:
  Inference(const Trace& trace, Knowledge known) : t_(trace) {
    typed_.trace = &trace;
    typed_.known = std::move(known);
    typed_.values.resize(trace.ops.size());
    typed_.ops.resize(trace.ops.size());
    types_.resize(trace.ops.size());
  }

  TypedTrace run() {
    const std::vector<Rep>& params = typed_.known.params;
    for (size_t v = 0; v < params.size(); ++v) value(static_cast<ValueId>(v)).rep = params[v];
    const bool loop = t_.anchor == AnchorKind::loop;
    if (loop) hoist();
    const auto n = static_cast<ValueId>(t_.ops.size());
    count_uses();
    find_expected();
    for (ValueId i = 0; i < n; ++i) form_of(i);
    find_passing();
    find_virtual(typed_);
    for (ValueId i = 0; i < n; ++i) mark_wants(i);
    if (loop) unbox_carried();
    for (ValueId i = 0; i < n; ++i) form(i).effects = effects_of(i);
    find_borrowed(typed_);
    return std::move(typed_);
  }

 private:
  const Op& op(ValueId i) const { return t_.ops[i]; }
  const ValueId* in(const Op& o) const { return t_.inputs_of(o); }
  ValueForm& value(ValueId v) { return typed_.values[v]; }
  OpForm& form(ValueId i) { return typed_.ops[i]; }
  bool is_constant(ValueId v) const { return op(v).kind == OpKind::constant; }
  const ObjectFacts& constant(ValueId v) const { return typed_.known.objects[op(v).object]; }
  Rep rep_named(const Op& guard) const { return allowed(rep_of_type(typed_.known.objects[guard.object].names)); }
  Rep allowed(Rep rep) const { return rep == Rep::kInt && typed_.known.box_ints ? Rep::kNone : rep; }

  // -- hoist

  // The types in the table are final, so a guard_type on a loop's parameter holds wherever it stands: it is done where the value comes
  // in, at the jump, and the parameter stays unboxed around the back edge.
  void hoist() {
    for (const Op& o : t_.ops) {
      if (o.kind != OpKind::guard_type) continue;
      const ValueId v = in(o)[0];
      if (v >= t_.n_params || value(v).rep != Rep::kNone) continue;
      value(v).rep = rep_named(o);
      // The object it came in as is kept beside it while the value is the same: its identity can be seen.
      value(v).hoisted = value(v).wants_obj = value(v).rep != Rep::kNone;
    }
  }

  // A loop parameter that nothing in the loop looks at comes in as it goes out at the back edge: unboxed, if it is computed so.
  void unbox_carried() {
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

  // -- forms

  // Kinds whose typed form may refuse its operands.
  static bool is_refusing(OpKind kind) {
    return kind == OpKind::binary || kind == OpKind::inplace || kind == OpKind::compare || kind == OpKind::unary ||
           kind == OpKind::get_item || kind == OpKind::set_item || kind == OpKind::iter_next || kind == OpKind::call;
  }

  void born(ValueId i, Rep rep) {
    value(i).rep = rep;
    value(i).born_raw = true;
  }

  // Belongs op i to the instruction the trace begins with?
  bool is_first(const Op& o) const {
    if (o.snapshot < 0 || t_.entry.frames.empty()) return false;
    if (t_.snapshots.top(o.snapshot).offset != t_.entry.frames.back().offset) return false;
    size_t depth = 0;
    for (int32_t f = t_.snapshots.tops[o.snapshot]; f >= 0; f = t_.snapshots.frames[f].outer) ++depth;
    return depth == t_.entry.frames.size();
  }

  void form_of(ValueId i) {
    const Op& o = op(i);
    if (typed_.known.python_first && is_first(o) && is_refusing(o.kind)) return;
    switch (o.kind) {
      case OpKind::constant:
        if (constant(i).unboxes) value(i).rep = allowed(rep_of_type(constant(i).type));
        return;
      case OpKind::guard_type:
        return form_guard_type(o, i);
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
        return born(i, Rep::kBool);
      case OpKind::get_len:
        return born(i, Rep::kInt);
      case OpKind::get_item:
      case OpKind::set_item:
        return form_subscript(o, i);
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
      case OpKind::list_append:
        form(i).mode = Mode::kItem;
        return;
      default:
        return;
    }
  }

  void form_subscript(const Op& o, ValueId i) {
    if (is_element(o)) {
      form(i).mode = Mode::kElement;
      if (o.kind == OpKind::get_item) born(i, rep_of_dtype(t_.facts[o.facts].dtype));
      return;
    }
    const Rep index = typed_.rep_in_ops(in(o)[1]);
    const Type container = types_[in(o)[0]];
    if (index == Rep::kBool || is_position(index)) {
      if (container == Type::kList || (container == Type::kTuple && o.kind == OpKind::get_item)) return form_item_of(i, container);
    }
    const bool sequence = !(o.effects & (kRunsCode | kStoresNames));  // else it may be a dict, with keys
    if (index == Rep::kInt || index == Rep::kBool || (is_position(index) && sequence)) form(i).mode = Mode::kIndex;
  }

  // Where a guard on its type follows, the item is unboxed as it is taken: one of another type leaves before the instruction.
  void form_item_of(ValueId i, Type container) {
    form(i).mode = Mode::kItem;
    form(i).of_tuple = container == Type::kTuple || container == Type::kTupleIterator;
    if (op_has_result(op(i).kind)) value(i).rep = expected_[i];
  }

  // The representations that guards behind ask for.
  void find_expected() {
    expected_.assign(t_.ops.size(), Rep::kNone);
    for (const Op& o : t_.ops)
      if (o.kind == OpKind::guard_type && expected_[in(o)[0]] == Rep::kNone) expected_[in(o)[0]] = rep_named(o);
  }

  bool is_element(const Op& o) const {
    const std::optional<Element> e = element_of(typed_, o);
    if (!e) return false;
    for (int32_t k = 0; k < e->rank; ++k)
      if (e->at[k] != kNull && !is_position(typed_.rep_in_ops(e->at[k]))) return false;
    return e->stored == kNull || stores(t_.facts[o.facts].dtype, typed_.rep_in_ops(e->stored));
  }

  // -- calls

  static Rep python_rep(DType dtype) {
    const Bits bits = bits_of(rep_of_dtype(dtype));
    return dtype == DType::kBool ? Rep::kBool : bits == Bits::kInt64 ? Rep::kInt : Rep::kFloat;
  }

  void form_call(const Op& o, ValueId i) {
    if (o.object >= 0 || o.fn != ArrayFn::none || o.n_inputs < 2 || !is_constant(in(o)[0])) return;
    const Callee callee = constant(in(o)[0]).callee;
    if (callee == Callee::kNone) return;
    if (callee == Callee::kLen) {
      if (o.n_inputs != 2 || (o.effects & kRunsCode)) return;
      form(i).mode = Mode::kLength;
      return born(i, Rep::kInt);
    }
    if (callee == Callee::kRange) return form_range(o, i);
    if (callee == Callee::kItem) return form_item(o, i);
    if (callee == Callee::kAppend || callee == Callee::kPop) return form_list_call(o, i, callee);
    std::vector<Rep> arguments;
    for (int32_t k = 1; k < o.n_inputs; ++k) arguments.push_back(typed_.rep_in_ops(in(o)[k]));
    const Operator found = call_operator(callee, arguments);
    if (!found) return;
    form(i) = {Mode::kTyped, found, callee};
    born(i, found.result);
  }

  // A range that nothing but the iter() behind it takes.
  void form_range(const Op& o, ValueId i) {
    if (o.n_inputs > 4) return;
    for (int32_t k = 1; k < o.n_inputs; ++k)
      if (typed_.rep_in_ops(in(o)[k]) != Rep::kInt) return;
    if (uses_[i] != 1 || !iterated_alone(i)) return;
    form(i) = {.mode = Mode::kVirtual, .callee = Callee::kRange};
  }

  bool iterated_alone(ValueId v) const {
    bool iterated = false;
    for (ValueId i = v + 1; i < static_cast<ValueId>(t_.ops.size()); ++i) {
      const Op& o = op(i);
      if (!takes(t_, o, v)) continue;
      if (o.kind == OpKind::release) return iterated;
      if (o.kind != OpKind::get_iter) return false;
      iterated = true;
    }
    return false;
  }

  void form_iterator(const Op& o, ValueId i) {
    const OpForm& range = form(in(o)[0]);
    if (range.mode != Mode::kVirtual || range.callee != Callee::kRange) return;
    form(i).mode = Mode::kIterator;
    types_[i] = Type::kRangeIterator;
  }

  // a.item(i) is the element as Python's own number.
  void form_item(const Op& o, ValueId i) {
    if (!is_element(o)) return;
    const DType dtype = t_.facts[o.facts].dtype;
    if (dtype == DType::kFloat32 || dtype == DType::kUint64 || (typed_.known.box_ints && python_rep(dtype) == Rep::kInt)) return;
    form(i) = {Mode::kElement, {}, Callee::kItem};
    born(i, python_rep(dtype));
  }

  // xs.append(v), xs.pop()
  void form_list_call(const Op& o, ValueId i, Callee callee) {
    if (types_[in(o)[1]] != Type::kList || o.n_inputs != (callee == Callee::kAppend ? 3 : 2)) return;
    form(i).callee = callee;
    form_item_of(i, Type::kList);
  }

  // -- passing

  void count_uses() {
    uses_.assign(t_.ops.size(), 0);
    for (const Op& o : t_.ops) {
      if (o.kind == OpKind::guard_type || o.kind == OpKind::release) continue;
      for (int32_t k = 0; k < o.n_inputs; ++k) uses_[in(o)[k]]++;
    }
  }

  // The values that op i was the last to take.
  const Op* released_behind(ValueId i) const {
    const auto end = static_cast<ValueId>(t_.ops.size());
    ValueId behind = i + 1;
    while (behind < end && (op(behind).kind == OpKind::guard_world || op(behind).kind == OpKind::guard_type)) ++behind;
    return behind < end && op(behind).kind == OpKind::release ? &op(behind) : nullptr;
  }

  void find_passing() {
    const auto n = static_cast<ValueId>(t_.ops.size());
    for (ValueId i = 0; i < n; ++i) {
      const Op& o = op(i);
      const bool stores = form(i).mode == Mode::kItem && item_of(typed_, o).stored != kNull;
      const bool calls = o.kind == OpKind::call && (form(i).mode == Mode::kTyped || form(i).mode == Mode::kVirtual);
      if (o.kind != OpKind::build_tuple && !stores && !calls && !is_int_remainder(o, form(i))) continue;
      const Op* release = released_behind(i);
      if (release == nullptr) continue;
      for (int32_t k = 0; k < o.n_inputs; ++k) {
        const ValueId v = in(o)[k];
        value(v).passing = takes(t_, *release, v) && value(v).born_raw && uses_[v] == 1 && op(v).kind != OpKind::param && is_new(v);
      }
    }
  }

  // Not one of its operands, the very object, but for those that nobody ever sees.
  bool is_new(ValueId v) {
    const Op& o = op(v);
    if (is_int_remainder(o, form(v))) return value(in(o)[0]).passing;
    if (o.kind != OpKind::call || form(v).mode != Mode::kTyped) return true;
    return std::all_of(in(o) + 1, in(o) + o.n_inputs,
                       [&](ValueId a) { return value(a).passing || !gives_argument(form(v).callee, value(a).rep); });
  }

  uint32_t effects_of(ValueId i) const {
    const Op& o = t_.ops[i];
    switch (typed_.ops[i].mode) {
      case Mode::kTyped:
      case Mode::kAlias:
      case Mode::kFixed:
      case Mode::kIterator:
      case Mode::kVirtual:
        return kNoEffect;
      case Mode::kElement:
        return o.kind == OpKind::get_item || o.kind == OpKind::call ? kReadsMemory : kWritesMemory;
      case Mode::kItem:
        return o.kind == OpKind::set_item ? kReplaces : o.kind == OpKind::get_item ? kReadsMemory : kWritesMemory;
      case Mode::kRange:
        return kWritesMemory;
      case Mode::kLength:
        return kReadsMemory | kRaises;
      case Mode::kPython:
      case Mode::kIndex:
        break;
    }
    return o.effects;
  }

  // An iterator over a range gives ints, one over an array of one dimension its elements.
  void form_next(const Op& o, ValueId i) {
    if (o.imm != 1 && types_[in(o)[0]] != Type::kRangeIterator) return;
    if (types_[in(o)[0]] == Type::kRangeIterator && !typed_.known.box_ints) {
      form(i).mode = Mode::kRange;
      born(i, Rep::kInt);
    } else if (const Type iterator = types_[in(o)[0]]; iterator == Type::kListIterator || iterator == Type::kTupleIterator) {
      form_item_of(i, iterator);
    } else if (o.facts >= 0 && t_.facts[o.facts].rank == 1) {
      form(i).mode = Mode::kElement;
      born(i, rep_of_dtype(t_.facts[o.facts].dtype));
    }
  }

  // An unboxed number is not None, nor any other object that is no number.
  bool never_same(const Op& o) {
    for (int k = 0; k < 2; ++k) {
      const ValueId a = in(o)[k], b = in(o)[1 - k];
      if (value(a).born_raw && is_constant(b) && !constant(b).number) return true;
    }
    return false;
  }

  void form_guard_type(const Op& o, ValueId i) {
    types_[in(o)[0]] = typed_.known.objects[o.object].names;
    ValueForm& v = value(in(o)[0]);
    if (v.rep != Rep::kNone) return;
    v.rep = rep_named(o);
    v.since = i;
  }

  // An int that is a constant and exact in a double is compared with a float as a double.
  bool compares_as_float(ValueId v, Rep other) const {
    if (other != Rep::kFloat || typed_.values[v].rep != Rep::kInt || !is_constant(v)) return false;
    return constant(v).unboxes && exact_in_double(constant(v).bits);
  }

  Operator operator_of(const Op& o) const {
    Rep a = typed_.rep_in_ops(in(o)[0]);
    if (o.kind == OpKind::unary) return unary_operator(static_cast<UnaryOp>(o.imm), a);
    Rep b = typed_.rep_in_ops(in(o)[1]);
    if (o.kind != OpKind::compare) return binary_operator(static_cast<BinaryOp>(o.imm), a, b);
    if (compares_as_float(in(o)[0], b)) a = Rep::kFloat;
    if (compares_as_float(in(o)[1], a)) b = Rep::kFloat;
    return compare_operator(a, b);
  }

  void form_operator(const Op& o, ValueId i) {
    if (o.fn != ArrayFn::none) return;
    const Operator found = operator_of(o);
    if (!found) return;
    form(i) = {Mode::kTyped, found};
    born(i, found.result);
  }

  // `truth` of a bool is that bool.
  void form_truth(const Op& o, ValueId i) {
    born(i, Rep::kBool);
    const Rep a = typed_.rep_in_ops(in(o)[0]);
    if (a == Rep::kNone) return;
    const bool truth = a == Rep::kBool || a == Rep::kNpBool;
    form(i).mode = truth && o.kind == OpKind::truth ? Mode::kAlias : Mode::kTyped;
  }

  // -- wants

  void mark_wants(ValueId i) {
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
    if (o.kind == OpKind::call_tree) return want_arguments(o, i);
    for (int32_t k = 0; k < o.n_inputs; ++k) {
      ValueForm& v = value(inputs[k]);
      const bool index = mode == Mode::kIndex && k == 1;
      if (index || mode == Mode::kTyped || mode == Mode::kAlias) v.wants_raw = true;
      if (mode == Mode::kPython || mode == Mode::kIndex || mode == Mode::kRange || mode == Mode::kLength) v.wants_obj = true;
    }
    // An int's remainder may be the very object that was divided.
    if (is_int_remainder(o, form(i)) && !value(inputs[0]).passing) value(i).wants_obj = value(inputs[0]).wants_obj = true;
  }

  // A jitted function takes unboxed what only the call holds: nobody can tell which object it would have been.
  void want_arguments(const Op& o, ValueId i) {
    value(in(o)[0]).wants_obj = true;
    for (int32_t k = 1; k < o.n_inputs; ++k)
      (hands_over(typed_, i, k) && has_raw(in(o)[k], i) ? value(in(o)[k]).wants_raw : value(in(o)[k]).wants_obj) = true;
  }
  bool has_raw(ValueId v, ValueId i) { return value(v).rep != Rep::kNone && value(v).since < i && !is_constant(v); }

  // The container is an object, the rest is unboxed.
  void want_element(const Op& o) {
    const std::optional<Element> e = element_of(typed_, o);
    value(e ? e->array : in(o)[0]).wants_obj = true;
    if (!e) return;
    for (int32_t k = 0; k < e->rank; ++k)
      if (e->at[k] != kNull) value(e->at[k]).wants_raw = true;
    if (e->stored != kNull) value(e->stored).wants_raw = true;
    if (e->tuple != kNull) value(e->tuple).wants_obj = true;
  }

  void want_item(const Op& o) {
    const Item item = item_of(typed_, o);
    value(item.container).wants_obj = true;
    if (item.index != kNull) value(item.index).wants_raw = true;
    if (item.stored != kNull) (value(item.stored).passing ? value(item.stored).wants_raw : value(item.stored).wants_obj) = true;
  }

  // Where the result is one of the arguments, both share their object, unless nobody ever sees the argument's.
  void want_call(const Op& o, ValueId i) {
    for (int32_t k = 1; k < o.n_inputs; ++k) {
      ValueForm& v = value(in(o)[k]);
      v.wants_raw = true;
      if (v.passing || !gives_argument(form(i).callee, v.rep)) continue;
      v.wants_obj = value(i).wants_obj = true;
    }
  }

  void want_parts(const Op& o) {
    if (o.kind == OpKind::get_item) {
      value(in(o)[0]).wants_obj = value(in(o)[1]).wants_raw = true;
      return;
    }
    for (int32_t k = o.kind == OpKind::call ? 1 : 0; k < o.n_inputs; ++k) {
      ValueForm& v = value(in(o)[k]);
      v.wants_raw = true;
      if (!v.passing) v.wants_obj = true;
    }
  }

  static bool is_int_remainder(const Op& o, const OpForm& form) {
    const bool operation = o.kind == OpKind::binary || o.kind == OpKind::inplace;
    return form.mode == Mode::kTyped && operation && static_cast<BinaryOp>(o.imm) == BinaryOp::remainder && form.typed.operand == Rep::kInt;
  }

  const Trace& t_;
  TypedTrace typed_;
  std::vector<Type> types_;    // proven by guards so far, where they are no representation's
  std::vector<Rep> expected_;  // per value: see find_expected()
  std::vector<int32_t> uses_;  // per value: how many ops take it, but for guards of its type and releases
};

}  // namespace

TypedTrace infer(const Trace& trace, Knowledge known) { return Inference(trace, std::move(known)).run(); }

}  // namespace dalsegno::typed
