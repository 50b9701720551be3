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

  void born(ValueId i, Rep rep) {
    value(i).rep = rep;
    value(i).born_raw = true;
  }

  void form_of(ValueId i) {
    const Op& o = op(i);
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
      case OpKind::set_item: {
        const Rep index = typed_.rep_in_ops(in(o)[1]);
        if (index == Rep::kInt || index == Rep::kBool) form(i).mode = Mode::kIndex;
        return;
      }
      default:
        return;
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
    form(i).mode = a == Rep::kBool && o.kind == OpKind::truth ? Mode::kAlias : Mode::kTyped;
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
    for (int32_t k = 0; k < o.n_inputs; ++k) {
      ValueForm& v = value(inputs[k]);
      const bool index = mode == Mode::kIndex && k == 1;
      if (index || mode == Mode::kTyped || mode == Mode::kAlias) v.wants_raw = true;
      if (mode == Mode::kPython || mode == Mode::kIndex) v.wants_obj = true;
    }
    // An int's remainder may be the very object that was divided.
    if (is_int_remainder(o, form(i))) value(i).wants_obj = value(inputs[0]).wants_obj = true;
  }

  static bool is_int_remainder(const Op& o, const OpForm& form) {
    const bool operation = o.kind == OpKind::binary || o.kind == OpKind::inplace;
    return form.mode == Mode::kTyped && operation && static_cast<BinaryOp>(o.imm) == BinaryOp::remainder && form.typed.operand == Rep::kInt;
  }

  const Trace& t_;
  TypedTrace typed_;
};

}  // namespace

Rep rep_of_type(Type type) {
  static_assert(static_cast<int>(Type::kCount) == static_cast<int>(Rep::kCount));
  return type < Type::kCount ? static_cast<Rep>(type) : Rep::kNone;
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
