// What is known of values before any code is made: which are unboxed, which ops are typed, who needs the object.
#include "replay/lower/lower.h"

namespace dalsegno::replay {

Rep Lowering::rep_of_type(PyObject* type) const {
  if (type == reinterpret_cast<PyObject*>(&PyFloat_Type)) return Rep::kFloat;
  if (type == reinterpret_cast<PyObject*>(&PyBool_Type)) return Rep::kBool;
  if (type == reinterpret_cast<PyObject*>(&PyLong_Type) && !p_->box_ints) return Rep::kInt;
  return Rep::kNone;
}

Rep Lowering::rep_in_ops(ValueId v) const {
  Rep rep = values_[v].rep;
  return rep == Rep::kInt && p_->box_ints ? Rep::kNone : rep;
}

void Lowering::infer() {
  op_plans_.resize(t().ops.size());
  if (t().anchor == AnchorKind::loop) hoist();
  auto n = static_cast<ValueId>(t().ops.size());
  for (ValueId i = 0; i < n; ++i) infer_op(i);
  for (ValueId i = 0; i < n; ++i) mark_wants(i);
  if (t().anchor == AnchorKind::loop) unbox_passengers();
}

// A loop parameter that nothing in the loop looks at comes in as it goes out at the back edge: unboxed, if it is computed so.
void Lowering::unbox_passengers() {
  const Op& end = t().ops.back();
  if (end.kind != OpKind::jump || end.imm != t().number) return;
  std::vector<ValueId> in = slots_of(t().entry), out = slots_of(t().snapshots[end.snapshot]);
  for (size_t k = 0; k < in.size() && k < out.size(); ++k) {
    if (in[k] == kNull || out[k] == kNull || in[k] >= t().n_params || out[k] < t().n_params) continue;
    Value& param = values_[in[k]];
    const Value& source = values_[out[k]];
    bool unboxed = source.rep != Rep::kNone && !is_constant(out[k]) && (source.born_raw || source.wants_raw);
    if (!unboxed || param.rep != Rep::kNone || param.wants_obj) continue;
    param.rep = source.rep;
    param.hoisted = param.wants_raw = param.wants_obj = true;
  }
}

// int, float and bool are immutable and their types final, so a guard_type on a loop's parameter holds wherever it stands: it is done
// where the value comes in, at the jump, and the parameter stays unboxed around the back edge.
void Lowering::hoist() {
  for (const Op& op : t().ops) {
    if (op.kind != OpKind::guard_type) continue;
    ValueId v = in(op)[0];
    if (v >= t().n_params || values_[v].rep != Rep::kNone) continue;
    values_[v].rep = rep_of_type(object(op.object));
    // The object it came in as is kept beside it while the value is the same: its identity can be seen.
    values_[v].hoisted = values_[v].wants_obj = values_[v].rep != Rep::kNone;
  }
}

void Lowering::infer_op(ValueId i) {
  const Op& o = op(i);
  switch (o.kind) {
    case OpKind::constant:
      return infer_constant(i);
    case OpKind::guard_type:
      return infer_guard_type(o, i);
    case OpKind::binary:
    case OpKind::inplace:
    case OpKind::compare:
    case OpKind::unary:
      return infer_operator(o, i);
    case OpKind::truth:
    case OpKind::not_:
      return infer_truth(o, i);
    case OpKind::is_:
      if (never_same(o)) op_plans_[i].mode = Mode::kFixed;
      [[fallthrough]];
    case OpKind::contains:
      values_[i].born_raw = true;
      values_[i].rep = Rep::kBool;
      return;
    case OpKind::get_len:
      values_[i].born_raw = true;
      values_[i].rep = Rep::kInt;
      return;
    case OpKind::get_item:
    case OpKind::set_item: {
      Rep index = rep_in_ops(in(o)[1]);
      if (index == Rep::kInt || index == Rep::kBool) op_plans_[i].mode = Mode::kIndex;
      return;
    }
    default:
      return;
  }
}

// An unboxed number is not None, nor any other object that is no number.
bool Lowering::never_same(const Op& o) const {
  for (int k = 0; k < 2; ++k) {
    ValueId a = in(o)[k], b = in(o)[1 - k];
    if (!values_[a].born_raw || !is_constant(b)) continue;
    PyObject* other = object(op(b).object);
    if (!PyLong_Check(other) && !PyFloat_Check(other)) return true;
  }
  return false;
}

void Lowering::infer_constant(ValueId i) {
  PyObject* o = object(op(i).object);
  Rep rep = rep_of_type(reinterpret_cast<PyObject*>(Py_TYPE(o)));
  Reg ignored;
  if (rep != Rep::kNone && unbox(rep, o, &ignored)) values_[i].rep = rep;
}

void Lowering::infer_guard_type(const Op& o, ValueId i) {
  Value& v = values_[in(o)[0]];
  if (v.rep != Rep::kNone) return;
  v.rep = rep_of_type(object(o.object));
  v.since = i;
}

// An int that is a constant and exact in a double is compared with a float as a double.
bool Lowering::compares_as_float(ValueId v, Rep other) const {
  if (other != Rep::kFloat || values_[v].rep != Rep::kInt || !is_constant(v)) return false;
  Reg value;
  return unbox(Rep::kInt, object(op(v).object), &value) && exact_in_double(value.i);
}

void Lowering::infer_operator(const Op& o, ValueId i) {
  if (o.fn != ArrayFn::none) return;
  Rep a = rep_in_ops(in(o)[0]);
  Rep b = o.kind == OpKind::unary ? Rep::kNone : rep_in_ops(in(o)[1]);
  if (o.kind == OpKind::compare) {
    if (compares_as_float(in(o)[0], b)) a = Rep::kFloat;
    if (compares_as_float(in(o)[1], a)) b = Rep::kFloat;
  }
  Typed typed = o.kind == OpKind::unary     ? typed_unary(static_cast<UnaryOp>(o.imm), a)
                : o.kind == OpKind::compare ? typed_compare(o.imm, a, b)
                                            : typed_binary(static_cast<BinaryOp>(o.imm), a, b);
  if (!typed.fn) return;
  op_plans_[i] = {Mode::kTyped, typed};
  values_[i].rep = typed.result;
  values_[i].born_raw = true;
}

// `truth` of a bool is that bool.
void Lowering::infer_truth(const Op& o, ValueId i) {
  values_[i].rep = Rep::kBool;
  values_[i].born_raw = true;
  Rep a = rep_in_ops(in(o)[0]);
  if (a == Rep::kNone) return;
  op_plans_[i].mode = a == Rep::kBool && o.kind == OpKind::truth ? Mode::kAlias : Mode::kTyped;
}

void Lowering::mark_wants(ValueId i) {
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
      (values_[inputs[0]].rep == Rep::kBool ? values_[inputs[0]].wants_raw : values_[inputs[0]].wants_obj) = true;
      return;
    default:
      break;
  }
  Mode mode = op_plans_[i].mode;
  for (int32_t k = 0; k < o.n_inputs; ++k) {
    Value& v = values_[inputs[k]];
    bool index = mode == Mode::kIndex && k == 1;
    if (index || mode == Mode::kTyped || mode == Mode::kAlias) v.wants_raw = true;
    if (mode == Mode::kPython || mode == Mode::kIndex) v.wants_obj = true;
  }
  // An int's remainder may be the very object that was divided.
  bool remainder = o.kind == OpKind::binary || o.kind == OpKind::inplace;
  if (mode == Mode::kTyped && remainder && static_cast<BinaryOp>(o.imm) == BinaryOp::remainder && op_plans_[i].typed.operand == Rep::kInt)
    values_[i].wants_obj = values_[inputs[0]].wants_obj = true;
}

}  // namespace dalsegno::replay
