// Callees that stand for operators: divmod(), range(), min(), max() and sum() of numbers.
#include <algorithm>
#include <utility>

#include "numpy/dtypes.h"
#include "trace/recorder/facts.h"
#include "trace/recorder/recorder.h"

namespace dalsegno::recorder {
namespace {

constexpr size_t kMostNumbers = 8;  // taken one by one

}  // namespace

bool Recorder::operates(ValueId callee, PyObject* live, const Arguments& arguments) {
  if (!is_constant(callee)) return false;
  if (arguments.names) return call_certain(live, arguments) || rounds(live, arguments);
  return rounds(live, arguments) || attr_of_array(live, arguments) || same(callee, live, arguments) || divide(live, arguments) ||
         extreme(live, arguments) || of_display(callee, live, arguments) || reverse(live, arguments) || outer(live, arguments) ||
         gives_argument(live, arguments) || is_subdtype(live, arguments) || call_certain(live, arguments) || slices(live, arguments) ||
         make_instance(live, arguments);
}

// slice(..) looks at nothing that it is given, as the instruction.
bool Recorder::slices(PyObject* live, const Arguments& arguments) {
  const size_t n = arguments.values.size();
  if (live != reinterpret_cast<PyObject*>(&PySlice_Type) || n < 1 || n > 3) return false;
  if (std::find(arguments.live.begin(), arguments.live.end(), nullptr) != arguments.live.end()) return false;
  std::vector<ValueId> parts = arguments.values;
  for (size_t i = 0; i < n; ++i)
    if (is_whole(arguments.live[i])) know(parts[i], arguments.live[i]);
  if (n == 1) parts.insert(parts.begin(), constant(Py_None, "const:None"));
  const ValueId v = emit(OpKind::build_slice, parts, {.effects = kNoEffect, .snapshot = false});
  set_type(v, &PySlice_Type);
  set_items(v, std::move(parts));
  replace_top(call_.pops, v);
  return true;
}

// index() of an int is that int.
bool Recorder::same(ValueId, PyObject* live, const Arguments& arguments) {
  const bool index = builtin_name(live) == "index" && callee_facts(live).kind == CalleeKind::quiet && arguments.values.size() == 1;
  if (!index || !arguments.live[0] || !PyLong_CheckExact(arguments.live[0]) || !know(arguments.values[0], arguments.live[0])) return false;
  const ValueId given = arguments.values[0];
  replace_top(call_.pops, given);
  return true;
}

// An int, a float, or NumPy's of which no comparison warns.
bool Recorder::is_plain_number(ValueId v) const {
  DType dtype;
  if (is(v, &PyLong_Type) || is(v, &PyFloat_Type)) return true;
  return numpy::scalar_dtype(info(v).type, &dtype) && (dtype == DType::kFloat64 || dtype == DType::kInt64 || dtype == DType::kInt32);
}

// min() and max() of numbers of several types: which one it is decides of what type the result is. So that is asked as the builtins do,
// comparison by comparison; where one has another result it leaves before the call.
bool Recorder::extreme(PyObject* live, const Arguments& arguments) {
  const size_t n = arguments.values.size();
  if (!is_extreme(live) || callee_facts(live).kind != CalleeKind::quiet || n < 2 || n > kMostNumbers) return false;
  bool mixed = false;
  for (size_t k = 0; k < n; ++k) {
    if (!arguments.live[k] || !know(arguments.values[k], arguments.live[k]) || !is_plain_number(arguments.values[k])) return false;
    mixed |= info(arguments.values[k]).type != info(arguments.values[0]).type;
  }
  if (!mixed) return false;
  const int better = builtin_name(live) == "max" ? Py_GT : Py_LT;
  size_t best = 0;
  for (size_t k = 1; k < n; ++k) {
    const int takes_its_place = PyObject_RichCompareBool(arguments.live[k], arguments.live[best], better);
    if (takes_its_place < 0) return PyErr_Clear(), false;
    const std::vector<ValueId> pair = {arguments.values[k], arguments.values[best]};
    const bool plain = simple(pair[0]) && simple(pair[1]);
    ValueId truth = emit(OpKind::compare, pair, {.imm = better, .effects = plain ? kNoEffect : kWarnsOnly});
    if (!plain) truth = emit(OpKind::truth, {truth}, {.effects = kNoEffect});
    set_type(truth, &PyBool_Type);
    emit(takes_its_place ? OpKind::guard_true : OpKind::guard_false, {truth}, {});
    if (takes_its_place) best = k;
  }
  const ValueId found = arguments.values[best];
  replace_top(call_.pops, found);
  return true;
}

// min(), max() and sum() of a list or tuple that has just been made of numbers: of the numbers, so that nobody needs the container.
bool Recorder::of_display(ValueId callee, PyObject* live, const Arguments& arguments) {
  const bool sums = builtin_name(live) == "sum";
  if ((!sums && !is_extreme(live)) || callee_facts(live).kind != CalleeKind::quiet || arguments.values.size() != 1) return false;
  const ValueId container = arguments.values[0];
  PyObject* of = arguments.live[0];
  if (!of || !(made(container, &PyList_Type) || made(container, &PyTuple_Type))) return false;
  Arguments items;
  items.values = info(container).items;
  const size_t n = items.values.size();
  if (n < 2 || n > kMostNumbers || static_cast<Py_ssize_t>(n) != Py_SIZE(of)) return false;
  PyObject** const first = PySequence_Fast_ITEMS(of);
  items.live.assign(first, first + n);
  for (size_t k = 0; k < n; ++k)
    if (is_dead(items.values[k]) || !know(items.values[k], items.live[k]) || !is_plain_number(items.values[k])) return false;
  if (sums) return add_up(items);
  if (!extreme(live, items)) call_opaque(callee, live, std::move(items));
  return true;
}

// sum() of some numbers: 0 and each of them, one after the other. Those that could warn are of types that all of it is typed with: a
// warning leaves before the call. (Behind 3.11 sum() makes up for what rounding loses of floats.)
bool Recorder::add_up(const Arguments& items) {
  PyTypeObject* const first = info(items.values[0]).type;
  bool simple_ones = true, same_type = true, doubles = true, floats = false;
  for (const ValueId v : items.values) {
    simple_ones &= simple(v);
    same_type &= info(v).type == first;
    doubles &= simple(v) || is(v, &PyDoubleArrType_Type);
    floats |= is(v, &PyFloat_Type);
  }
  if ((!doubles && !same_type) || (floats && PY_VERSION_HEX >= 0x030C0000)) return false;
  ValueId total = int_constant(small_int(0));
  for (const ValueId v : items.values) {
    const bool stays = is(total, &PyDoubleArrType_Type) || (is(total, &PyFloat_Type) && simple(v));
    PyTypeObject* const type = info(stays ? total : v).type;
    total = emit(OpKind::binary, {total, v}, {.imm = static_cast<int>(BinaryOp::add), .effects = simple_ones ? kNoEffect : kWarnsOnly});
    set_type(total, type);
  }
  replace_top(call_.pops, total);
  return true;
}

// divmod(a, b) of two ints or two floats: a quotient, a remainder and their tuple. A divisor of 0, of which divmod() has its own words,
// leaves before the call.
bool Recorder::divide(PyObject* live, const Arguments& arguments) {
  const bool is_divmod = callee_facts(live).result == &PyTuple_Type && builtin_name(live) == "divmod";
  if (!is_divmod || arguments.values.size() != 2 || !arguments.live[0] || !arguments.live[1]) return false;
  const ValueId a = arguments.values[0], b = arguments.values[1];
  PyTypeObject* type = Py_TYPE(arguments.live[0]);
  if ((type != &PyLong_Type && type != &PyFloat_Type) || !Py_IS_TYPE(arguments.live[1], type)) return false;
  if (!know(a, arguments.live[0]) || !know(b, arguments.live[1]) || PyObject_IsTrue(arguments.live[1]) != 1) return false;
  if (!is_constant(b)) {
    const ValueId divides = emit(OpKind::truth, {b}, {.effects = kReadsMemory});
    set_type(divides, &PyBool_Type);
    emit(OpKind::guard_true, {divides}, {});
  }
  const auto part = [&](BinaryOp op) {
    const ValueId v = emit(OpKind::binary, {a, b}, {.imm = static_cast<int>(op), .effects = kNoEffect});
    set_type(v, type);
    return v;
  };
  const std::vector<ValueId> parts = {part(BinaryOp::floor_divide), part(BinaryOp::remainder)};
  const ValueId v = emit(OpKind::build_tuple, parts, {.effects = kNoEffect, .snapshot = false});
  pop(call_.pops);
  push(v);
  set_type(v, &PyTuple_Type);
  made_of(v, parts);
  return true;
}

// range(), of NumPy's integers: of the ints that they are.
void Recorder::take_as_ints(Arguments* arguments) {
  static PyObject* const kAnInt = PyLong_FromLong(0);
  for (size_t i = 0; i < arguments->values.size(); ++i) {
    PyObject*& live = arguments->live[i];
    if (!live || PyLong_Check(live) || !is_whole(live) || !know(arguments->values[i], live)) continue;
    const ValueId type = constant(reinterpret_cast<PyObject*>(&PyLong_Type), type_path(&PyLong_Type));
    const ValueId v = emit(OpKind::call, {type, arguments->values[i]}, {.imm = 1, .effects = kNoEffect});
    set_type(v, &PyLong_Type);
    arguments->values[i] = v;
    live = kAnInt;
  }
}

}  // namespace dalsegno::recorder
