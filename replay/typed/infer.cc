// infer(): which values are unboxed, which ops are typed, who needs the object. Three passes over the trace:
//   hoist   a loop's parameters: their guards on types are done where values come in
//   forms   in order: each op's form follows from the representations of its operands
//   wants   who uses which part of a value
#include "replay/typed/typed_trace.h"

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
    for (ValueId i = 0; i < n; ++i) form_of(i);
    for (ValueId i = 0; i < n; ++i) mark_wants(i);
    if (loop) unbox_passengers();
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
  void unbox_passengers() {
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
           kind == OpKind::get_item || kind == OpKind::set_item || kind == OpKind::iter_next;
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
      case OpKind::iter_next:
        return form_next(o, i);
      default:
        return;
    }
  }

  static bool is_position(Rep rep) { return rep == Rep::kInt || rep == Rep::kNpInt32 || rep == Rep::kNpInt64; }

  void form_subscript(const Op& o, ValueId i) {
    if (is_element(o)) {
      form(i).mode = Mode::kElement;
      if (o.kind == OpKind::get_item) born(i, rep_of_dtype(t_.facts[o.facts].dtype));
      return;
    }
    const Rep index = typed_.rep_in_ops(in(o)[1]);
    if (index == Rep::kInt || index == Rep::kBool) form(i).mode = Mode::kIndex;
  }

  bool is_element(const Op& o) const {
    int32_t n = 0;
    const ValueId* indices = element_indices(typed_, o, &n);
    if (indices == nullptr) return false;
    for (int32_t k = 0; k < n; ++k)
      if (!is_position(typed_.rep_in_ops(indices[k]))) return false;
    return o.kind == OpKind::get_item || stores(t_.facts[o.facts].dtype, typed_.rep_in_ops(in(o)[2]));
  }

  // An iterator over a range gives ints, one over an array of one dimension its elements.
  void form_next(const Op& o, ValueId i) {
    if (o.imm != 1) return;
    if (types_[in(o)[0]] == Type::kRangeIterator && !typed_.known.box_ints) {
      form(i).mode = Mode::kRange;
      born(i, Rep::kInt);
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
    for (int32_t k = 0; k < o.n_inputs; ++k) {
      ValueForm& v = value(inputs[k]);
      const bool index = mode == Mode::kIndex && k == 1;
      if (index || mode == Mode::kTyped || mode == Mode::kAlias) v.wants_raw = true;
      if (mode == Mode::kPython || mode == Mode::kIndex || mode == Mode::kRange) v.wants_obj = true;
    }
    // An int's remainder may be the very object that was divided.
    if (is_int_remainder(o, form(i))) value(i).wants_obj = value(inputs[0]).wants_obj = true;
  }

  // The container is an object, the rest is unboxed.
  void want_element(const Op& o) {
    value(in(o)[0]).wants_obj = true;
    int32_t n = 0;
    const ValueId* indices = element_indices(typed_, o, &n);
    for (int32_t k = 0; k < n; ++k) value(indices[k]).wants_raw = true;
    if (o.kind == OpKind::set_item) value(in(o)[2]).wants_raw = true;
    if (n > 1) value(in(o)[1]).wants_obj = true;  // the tuple
  }

  static bool is_int_remainder(const Op& o, const OpForm& form) {
    const bool operation = o.kind == OpKind::binary || o.kind == OpKind::inplace;
    return form.mode == Mode::kTyped && operation && static_cast<BinaryOp>(o.imm) == BinaryOp::remainder && form.typed.operand == Rep::kInt;
  }

  const Trace& t_;
  TypedTrace typed_;
  std::vector<Type> types_;  // proven by guards so far, where they are no representation's
};

}  // namespace

Rep rep_of_type(Type type) {
  static_assert(static_cast<int>(Type::kRangeIterator) == static_cast<int>(Rep::kCount), "first the representations, in their order");
  return type < Type::kRangeIterator ? static_cast<Rep>(type) : Rep::kNone;
}

const ValueId* element_indices(const TypedTrace& typed, const Op& op, int32_t* count) {
  const Trace& t = *typed.trace;
  const bool subscript = op.kind == OpKind::get_item || op.kind == OpKind::set_item;
  if (!subscript || op.facts < 0 || op.fn != ArrayFn::none) return nullptr;
  const int32_t rank = t.facts[op.facts].rank;
  const ValueId* index = t.inputs_of(op) + 1;
  *count = rank;
  if (rank == 1) return index;
  const Op& tuple = t.ops[*index];
  return rank > 1 && rank <= kMaxElementRank && tuple.kind == OpKind::build_tuple && tuple.n_inputs == rank ? t.inputs_of(tuple) : nullptr;
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

TypedTrace infer(const Trace& trace, Knowledge known) { return Inference(trace, std::move(known)).run(); }

}  // namespace dalsegno::typed
