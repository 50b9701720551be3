// Operators, comparisons, subscripts; when a python op becomes an array op.
#include <algorithm>

#include "hook/lookups.h"
#include "hook/numeric_arrays.h"
#include "numpy/dtypes.h"
#include "trace/fault.h"
#include "trace/recorder/facts.h"
#include "trace/recorder/recorder.h"

namespace dalsegno::recorder {
namespace {

ArrayFn fn_of_compare(int op) {
  static constexpr ArrayFn fns[] = {ArrayFn::less,      ArrayFn::less_equal, ArrayFn::equal,
                                    ArrayFn::not_equal, ArrayFn::greater,    ArrayFn::greater_equal};
  return fns[op];
}

}  // namespace

// Facts for the operands of an array op: arrays and scalars of known dtypes, at least one array of rank 1 or more.
bool Recorder::array_operands(const std::vector<ValueId>& values, const std::vector<PyObject*>& live) {
  bool array = false;
  for (PyObject* o : live) {
    ArrayFacts facts;
    if (numpy::is_exact_array(o)) {
      if (!numpy::facts_of(o, &facts) || facts.rank == 0) return false;
      array = true;
    } else if (DType ignored; !o || !(PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o) || PyComplex_CheckExact(o) ||
                                      numpy::is_scalar_type(Py_TYPE(o)) || numpy::complex_dtype(Py_TYPE(o), &ignored))) {
      return false;
    }
  }
  if (!array) return false;
  for (size_t i = 0; i < values.size(); ++i)
    if (!(numpy::is_exact_array(live[i]) ? know_array(values[i], live[i]) : know(values[i], live[i]))) return false;
  return true;
}

// A power of an array of floats by a number. By constants it is often another function (NumPy: fast_scalar_power() in number.c; power's own
// loop does the same with the rest of them): `a ** 2`, also of complex numbers by an int, `a ** -1`, `a ** 0.5`.
ArrayFn Recorder::power_fn(ValueId right, PyObject* live_left, PyObject* live_right) const {
  ArrayFacts facts;
  if (!numpy::facts_of(live_left, &facts) || !(PyLong_CheckExact(live_right) || PyFloat_CheckExact(live_right))) return ArrayFn::none;
  const bool whole = PyLong_CheckExact(live_right);
  int overflow = 0;
  const double by = whole ? static_cast<double>(PyLong_AsLongAndOverflow(live_right, &overflow)) : PyFloat_AS_DOUBLE(live_right);
  if (is_complex(facts.dtype)) return is_constant(right) && whole && by == 2 ? ArrayFn::square : ArrayFn::none;
  if (!is_float(facts.dtype) || overflow != 0) return ArrayFn::none;
  if (!is_constant(right)) return ArrayFn::power;
  return by == 2 ? ArrayFn::square : by == -1 ? ArrayFn::reciprocal : by == 0.5 ? ArrayFn::sqrt : ArrayFn::power;
}

ArrayFn Recorder::binary_fn(BinaryOp op, ValueId right, PyObject* live_left, PyObject* live_right) const {
  return op == BinaryOp::power ? power_fn(right, live_left, live_right) : array_fn_of(op);
}

void Recorder::finish_array(const Instr&) { set_array_op(call_result_, pending_fn_, result()); }

// What follows from exact operand types: int op int is int, and so on.
static PyTypeObject* arithmetic_type(PyTypeObject* a, PyTypeObject* b, BinaryOp op) {
  auto integral = [](PyTypeObject* t) { return t == &PyLong_Type || t == &PyBool_Type; };
  bool both_bool = a == &PyBool_Type && b == &PyBool_Type;
  bool bitwise = op == BinaryOp::and_ || op == BinaryOp::or_ || op == BinaryOp::xor_;
  if (integral(a) && integral(b)) {
    if (op == BinaryOp::true_divide) return &PyFloat_Type;
    if (op == BinaryOp::power) return nullptr;  // a negative exponent gives a float
    return both_bool && bitwise ? &PyBool_Type : &PyLong_Type;
  }
  bool floats = (a == &PyFloat_Type || integral(a)) && (b == &PyFloat_Type || integral(b));
  if (floats && !bitwise && op != BinaryOp::power) return &PyFloat_Type;
  return nullptr;
}

static bool is_sequence(PyTypeObject* type) { return type == &PyList_Type || type == &PyTuple_Type; }

// What `a + b` and `a * n` of lists and tuples give, which runs nothing of the user's; null: something else.
static PyTypeObject* sequence_type(PyTypeObject* a, PyTypeObject* b, BinaryOp op) {
  if (op == BinaryOp::add && a == b && is_sequence(a)) return a;
  if (op == BinaryOp::multiply && is_sequence(a) && b == &PyLong_Type) return a;
  if (op == BinaryOp::multiply && is_sequence(b) && a == &PyLong_Type) return b;
  return nullptr;
}

void Recorder::binary(const Instr&, int nb) {
  if (operator_method(nb)) return;
  bool inplace = nb >= kInplaceFrom;
  auto op = static_cast<BinaryOp>(inplace ? nb - kInplaceFrom : nb);
  if (binary_certain(op)) return;
  ValueId left = top(1), right = top();
  PyObject *live_left = live_top(1), *live_right = live_top();
  bool arrays =
      (numpy::is_exact_array(live_left) || numpy::is_exact_array(live_right)) && array_operands({left, right}, {live_left, live_right});
  bool plain = !arrays && know(left, live_left) && know(right, live_right);
  PyTypeObject* type = nullptr;
  bool numeric = plain && (simple(left) || is_numpy_scalar(left)) && (simple(right) || is_numpy_scalar(right));
  uint32_t effects = arrays || numeric ? kWarnsOnly : kAnyEffect;
  if (plain && simple(left) && simple(right)) {
    effects = kNoEffect;
    type = arithmetic_type(info(left).type, info(right).type, op);
  } else if (plain && !inplace && (type = sequence_type(info(left).type, info(right).type, op)) != nullptr) {
    effects = kReadsMemory;
  }
  bool writes = inplace && numpy::is_exact_array(live_left);
  // On values that are not changed in place, the in-place operator is the plain one.
  OpKind kind = inplace && !(plain && simple(left)) ? OpKind::inplace : OpKind::binary;
  ValueId v = emit(kind, {left, right}, {.imm = static_cast<int>(op), .effects = effects});
  pop();
  pop();
  push(v);
  set_type(v, type);
  if (op == BinaryOp::multiply && !inplace) repeat_made(left, v, info(right).object);
  call_result_ = v;
  if (arrays && !writes && kind == OpKind::binary) {
    pending_fn_ = binary_fn(op, right, live_left, live_right);
    finisher_ = &Recorder::finish_array;
  } else if (arrays && writes) {
    set_same_array(v, left);
  }
}

void Recorder::on_BINARY_OP(const Instr& i) { binary(i, i.arg); }

void Recorder::unary(const Instr&, UnaryOp op) {
  if (unary_certain(op) || unary_method(op)) return;
  static constexpr ArrayFn fns[] = {ArrayFn::negative, ArrayFn::positive, ArrayFn::invert};
  ValueId in = top();
  PyObject* live = live_top();
  bool array = numpy::is_exact_array(live) && array_operands({in}, {live});
  bool plain = !array && know(in, live);
  bool warns = op == UnaryOp::invert && is(in, &PyBool_Type);  // deprecated since 3.12
  bool quiet = plain && simple(in) && !warns;
  bool known = array || (plain && is_numpy_scalar(in));
  ValueId v = emit(OpKind::unary, {in}, {.imm = static_cast<int>(op), .effects = quiet ? kNoEffect : known ? kWarnsOnly : kAnyEffect});
  pop();
  push(v);
  if (is(in, &PyFloat_Type)) set_type(v, &PyFloat_Type);
  if (is(in, &PyLong_Type)) set_type(v, &PyLong_Type);
  call_result_ = v;
  if (array) {
    pending_fn_ = fns[static_cast<int>(op)];
    finisher_ = &Recorder::finish_array;
  }
}

void Recorder::on_UNARY_NEGATIVE(const Instr& i) { unary(i, UnaryOp::negative); }
void Recorder::on_UNARY_POSITIVE(const Instr& i) { unary(i, UnaryOp::positive); }
void Recorder::on_UNARY_INVERT(const Instr& i) { unary(i, UnaryOp::invert); }

// None is false, and instances of a class that says nothing else are true.
bool Recorder::truth_of_class(ValueId v, PyObject* live, ValueId* truth) {
  if (!live || is_dead(v)) return false;
  if (live == Py_None) {
    if (!is_constant(v)) emit(OpKind::guard_is, {v}, {.object = object_index(Py_None, "const:None")});
    *truth = constant(Py_False, "");
    return true;
  }
  if (!dalsegno_has_true_instances(Py_TYPE(live))) return false;
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(live));
  const std::string path = sources_.by_name(type);
  if (path.empty()) return false;
  emit(OpKind::guard_truthy, {v}, {.object = object_index(type, path)});
  *truth = constant(Py_True, "");
  return true;
}

// Truth value of a value, as an op unless it is a bool already. Quiet on plain types (containers, numbers; arrays may warn or raise).
void Recorder::truth_of(ValueId v, PyObject* live, ValueId* truth) {
  if (truth_certain(v, truth) || truth_of_class(v, live, truth)) return;
  bool plain = know(v, live);
  if (is(v, &PyBool_Type)) {
    *truth = v;
    return;
  }
  bool quiet = plain && !numpy::is_exact_array(live);
  *truth = emit(OpKind::truth, {v}, {.effects = quiet ? kReadsMemory : plain ? kWarnsOnly : kAnyEffect});
  set_type(*truth, &PyBool_Type);
}

void Recorder::on_TO_BOOL(const Instr&) {
  ValueId truth;
  truth_of(top(), live_top(), &truth);
  replace_top(1, truth);
}

void Recorder::on_UNARY_NOT(const Instr&) {
  ValueId truth;
  truth_of(top(), live_top(), &truth);
  if (PyObject* known = certain(truth); known && push_certain(PyBool_FromLong(known == Py_False), 1)) return;
  ValueId v = emit(OpKind::not_, {truth}, {.effects = kNoEffect});
  set_type(v, &PyBool_Type);
  pop();
  push(v);
}

// The shape of an array, or another tuple of ints.
bool Recorder::is_shape(ValueId v) const {
  const std::vector<ValueId>& extents = info(v).items;
  return made(v, &PyTuple_Type) && std::all_of(extents.begin(), extents.end(), [&](ValueId extent) { return is(extent, &PyLong_Type); });
}

void Recorder::on_COMPARE_OP(const Instr& i) {
  int op = compare_op(i.arg);
  if (compare_certain(op) || compare_method(op)) return;
  ValueId left = top(1), right = top();
  PyObject *live_left = live_top(1), *live_right = live_top();
  bool arrays =
      (numpy::is_exact_array(live_left) || numpy::is_exact_array(live_right)) && array_operands({left, right}, {live_left, live_right});
  bool plain = !arrays && know(left, live_left) && know(right, live_right);
  bool quiet = plain && ((simple(left) && simple(right)) || (is_shape(left) && is_shape(right)));
  auto scalar = [&](ValueId v) { return simple(v) || is_numpy_scalar(v); };
  bool known = plain && scalar(left) && scalar(right);
  ValueId v = emit(OpKind::compare, {left, right}, {.imm = op, .effects = quiet ? kNoEffect : known || arrays ? kWarnsOnly : kAnyEffect});
  pop();
  pop();
  push(v);
  if (quiet) set_type(v, &PyBool_Type);
  call_result_ = v;
  if (compare_to_bool(i.arg) && !quiet) {  // 3.13: the truth of the result, in one instruction
    ValueId t = emit(OpKind::truth, {v}, {.effects = known ? kNoEffect : kAnyEffect});
    set_type(t, &PyBool_Type);
    pop();
    push(t);
    return;
  }
  if (arrays) {
    pending_fn_ = fn_of_compare(op);
    finisher_ = &Recorder::finish_array;
  }
}

void Recorder::on_IS_OP(const Instr& i) {
  if (is_certain(i.arg != 0)) return;
  ValueId v = emit(OpKind::is_, {top(1), top()}, {.imm = i.arg, .snapshot = false});
  set_type(v, &PyBool_Type);
  pop();
  pop();
  push(v);
}

void Recorder::on_CONTAINS_OP(const Instr& i) {
  if (contains_certain(i.arg != 0)) return;
  ValueId item = top(1), container = top();
  bool plain = know(item, live_top(1)) && know(container, live_top());
  bool hashed =
      dalsegno_is_table(live_top()) || is(container, &PyDict_Type) || is(container, &PySet_Type) || is(container, &PyFrozenSet_Type);
  bool quiet = plain && simple(item) && (simple(container) || is(container, &PyRange_Type));
  if (hashed) quiet = know_lookup(container, live_top(), item, live_top(1));
  if (plain && is_constant(container) && PyTuple_Check(live_top())) quiet = simple(item) && safe_index(container, live_top());
  ValueId v = emit(OpKind::contains, {item, container}, {.imm = i.arg, .effects = quiet ? kNoEffect : kAnyEffect});
  set_type(v, &PyBool_Type);
  pop();
  pop();
  push(v);
}

// ---- subscripts ------------------------------------------------------------------------------------------------------------

// An item of a tuple or list that was built in the trace, by a constant: the very value.
bool Recorder::item_of_made() {
  const ValueId container = top(1), index = top();
  if (!is_constant(index) || !PyLong_CheckExact(live_top()) || !(made(container, &PyTuple_Type) || made(container, &PyList_Type)))
    return false;
  const std::vector<ValueId>& items = info(container).items;
  const auto n = static_cast<Py_ssize_t>(items.size());
  Py_ssize_t at = PyLong_AsSsize_t(live_top());
  if (at == -1 && PyErr_Occurred()) return PyErr_Clear(), false;
  if (at < 0) at += n;
  if (at < 0 || at >= n) return false;
  const ValueId item = items[static_cast<size_t>(at)];
  replace_top(2, item);
  return true;
}

void Recorder::get_item(const Instr&) {
  if (item_of_made() || item_certain() || item_method()) return;
  take_index_apart(live_top(1));
  ValueId container = top(1), index = top();
  PyObject *live = live_top(1), *live_index = live_top();
  uint32_t effects = kAnyEffect;
  if (numpy::is_exact_array(live)) {
    const bool known = know_array(container, live) || know(container, live);  // of whatever dtype: no item runs code by being taken
    if (known && safe_index(index, live_index)) effects = kReadsMemory;
  } else if (know(container, live) && know(index, live_index)) {
    bool sequence = PyList_Check(live) || PyTuple_Check(live) || PyUnicode_Check(live) || PyBytes_Check(live) || PyRange_Check(live);
    bool position = is_whole(live_index) || (PySlice_Check(live_index) && safe_index(index, live_index));
    bool of_deque = (is_deque_type(Py_TYPE(live)) || is_array_module_type(Py_TYPE(live))) && is_whole(live_index);
    bool keyed = PyDict_Check(live) && know_lookup(container, live, index, live_index);
    if ((sequence && position) || of_deque || keyed) effects = kReadsMemory;
  } else if (dalsegno_is_table(live) && know(index, live_index)) {  // (looking another key up may run code)
    PyObject* value;
    dalsegno_found none{};
    const bool quiet = dalsegno_missing_is_quiet(live) || dalsegno_find(live, live_index, &value, &none) == 1;
    if (quiet && know_lookup(container, live, index, live_index)) effects = kWritesMemory;
  }
  const bool numeric = effects == kReadsMemory && is_array_module_type(Py_TYPE(live));
  ValueId v = emit(OpKind::get_item, {container, index}, {.imm = numeric ? hook::numeric_array_typecode(live) : 0, .effects = effects});
  if (effects == kReadsMemory && numpy::is_exact_array(live)) op(v).facts = element_facts(container, index, live_index, true);
  pop();
  pop();
  push(v);
  if (effects == kReadsMemory && PySlice_Check(live_index) && is_sequence(info(container).type)) set_type(v, info(container).type);
}

void Recorder::on_BINARY_SUBSCR(const Instr& i) { get_item(i); }

// The two on top of the stack: None, ints, and of an array NumPy's.
bool Recorder::know_bounds(bool of_array) {
  const auto bounds = [&](int k) {
    PyObject* live = live_top(k);
    return know(top(k), live) && (live == Py_None || PyLong_Check(live) || (of_array && numpy::is_scalar_type(Py_TYPE(live))));
  };
  return bounds(1) && bounds(0);
}

void Recorder::on_BINARY_SLICE(const Instr&) {
  PyObject* live = live_top(2);
  ValueId container = top(2);
  bool known = know_bounds(numpy::is_exact_array(live)) &&
               (numpy::is_exact_array(live) ? know_array(container, live) : know(container, live) && !PyDict_Check(live));
  ValueId slice = emit(OpKind::build_slice, {top(1), top()}, {.snapshot = false});
  ValueId v = emit(OpKind::get_item, {container, slice}, {.effects = known ? kReadsMemory : kAnyEffect});
  pop(3);
  push(v);
  if (known && is_sequence(info(container).type)) set_type(v, info(container).type);
}

// Can a value be stored in an array without running code of the user's, but for warnings?
bool Recorder::know_stored(ValueId v, PyObject* live) {
  if (numpy::is_exact_array(live)) return know_array(v, live);
  return know(v, live) && (simple(v) || is_numpy_scalar(v));
}

void Recorder::on_STORE_SUBSCR(const Instr&) {
  if (set_item_method()) return;
  take_index_apart(live_top(1));
  ValueId value = top(2), container = top(1), index = top();
  PyObject *live = live_top(1), *live_index = live_top(), *live_value = live_top(2);
  uint32_t effects = kAnyEffect;
  bool numeric = false;
  if (numpy::is_exact_array(live)) {
    const bool known = know_array(container, live) && safe_index(index, live_index) && know_stored(value, live_value);
    if (known) effects = kWarnsOnly;
  } else if (know(container, live) && PyList_Check(live) && know(index, live_index) && is_whole(live_index)) {
    effects = kReplaces;
  } else if (is_array_module_type(Py_TYPE(live)) && know(container, live) && know(index, live_index) && is_whole(live_index)) {
    numeric = know(value, live_value) && simple(value);
    if (numeric) effects = kWritesMemory | kRaises;
  } else if ((know(container, live) || dalsegno_is_table(live)) && PyDict_Check(live) && know_lookup(container, live, index, live_index)) {
    effects = planted(Fault::missing_name_effect) ? kWritesMemory : kReplacesName;  // it may be a namespace
  }
  std::vector<ValueId> items = effects == kReplaces ? items_with(container, info(index).object, value) : std::vector<ValueId>();
  const int typecode = numeric ? hook::numeric_array_typecode(live) : 0;
  ValueId v = emit(OpKind::set_item, {container, index, value}, {.imm = typecode, .effects = effects});
  if (!items.empty()) made_of(container, std::move(items));
  if (effects == kWarnsOnly) op(v).facts = element_facts(container, index, live_index);
  pop(3);
}

void Recorder::on_STORE_SLICE(const Instr&) {
  ValueId value = top(3), container = top(2);
  PyObject *live_value = live_top(3), *live = live_top(2);
  bool known = numpy::is_exact_array(live) && know_bounds(true) && know_array(container, live) && know_stored(value, live_value);
  ValueId slice = emit(OpKind::build_slice, {top(1), top()}, {.snapshot = false});
  emit(OpKind::set_item, {container, slice, value}, {.effects = known ? kWarnsOnly : kAnyEffect});
  pop(4);
}

void Recorder::on_DELETE_SUBSCR(const Instr&) {
  emit(OpKind::del_item, {top(1), top()}, {});
  pop();
  pop();
}

void Recorder::on_GET_LEN(const Instr&) {
  bool plain = know(top(), live_top());
  ValueId v = emit(OpKind::get_len, {top()}, {.effects = plain ? kNoEffect : kAnyEffect});
  set_type(v, &PyLong_Type);
  push(v);
}

}  // namespace dalsegno::recorder
