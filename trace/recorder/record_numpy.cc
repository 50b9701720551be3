// Functions of NumPy's that are views and operations: recorded as those.
#include <algorithm>
#include <string_view>

#include "numpy/dtypes.h"
#include "trace/fault.h"
#include "trace/recorder/facts.h"
#include "trace/recorder/recorder.h"
#include "trace/recorder/return_actions.h"
#include "trace/recorder/text.h"

namespace dalsegno::recorder {
namespace {

// (:, ..., None, ...). New reference; null: an exception.
PyObject* new_axes(int own, int added) {
  PyObject* index = PyTuple_New(own + added);
  for (int k = 0; index && k < own + added; ++k)
    PyTuple_SET_ITEM(index, k, k < own ? PySlice_New(nullptr, nullptr, nullptr) : Py_NewRef(Py_None));
  return index;
}

}  // namespace

// np.flip(a) of a vector: a[::-1].
bool Recorder::reverse(PyObject* live, const Arguments& arguments) {
  static PyObject* const kBack = PyLong_FromLong(-1);
  if (!callee_facts(live).reverses || arguments.values.size() != 1) return false;
  const ValueId vector = arguments.values[0];
  PyObject* live_vector = arguments.live[0];
  if (!numpy::is_exact_array(live_vector) || PyArray_NDIM(reinterpret_cast<PyArrayObject*>(live_vector)) != 1) return false;
  if (!know_array(vector, live_vector)) return false;
  const ValueId none = constant(Py_None, "const:None"), back = int_constant(kBack);
  const ValueId slice = emit(OpKind::build_slice, {none, none, back}, {.snapshot = false});
  const ValueId v = emit(OpKind::get_item, {vector, slice}, {.effects = kReadsMemory});
  pop(call_.pops);
  push(v);
  return true;
}

// np.add.outer(a, b): np.add(a[..., None], b), with an axis for each that b has (NumPy: ufunc_outer in ufunc_object.c).
bool Recorder::outer(PyObject* live, const Arguments& arguments) {
  constexpr int kMostAxes = 8;
  static PyObject* const kOuter = PyDict_GetItemString(PyUFunc_Type.tp_dict, "outer");  // borrowed; the type keeps it
  if (live != kOuter || arguments.values.size() != 3 || !is_constant(arguments.values[0])) return false;
  PyObject *ufunc = arguments.live[0], *left = arguments.live[1], *right = arguments.live[2];
  const bool computes = callee_facts(ufunc).kind == CalleeKind::numpy_pure && reinterpret_cast<PyUFuncObject*>(ufunc)->nin == 2 &&
                        !reinterpret_cast<PyUFuncObject*>(ufunc)->core_enabled;
  if (!computes || !numpy::is_exact_array(left) || !numpy::is_exact_array(right)) return false;
  const int own = PyArray_NDIM(reinterpret_cast<PyArrayObject*>(left)), added = PyArray_NDIM(reinterpret_cast<PyArrayObject*>(right));
  if (own == 0 || added == 0 || own + added > kMostAxes) return false;
  if (!know_array(arguments.values[1], left) || !know_array(arguments.values[2], right)) return false;
  PyObject* index = new_axes(own, added);
  PyObject* view = index ? PyObject_GetItem(left, index) : nullptr;
  if (view) {
    Arguments operands;
    operands.values = {emit(OpKind::get_item, {arguments.values[1], parts_of_index(index)}, {.effects = kReadsMemory}),
                       arguments.values[2]};
    operands.live = {view, right};
    call_opaque(arguments.values[0], ufunc, std::move(operands));
  } else {
    PyErr_Clear();
  }
  Py_XDECREF(index);
  Py_XDECREF(view);
  return view != nullptr;
}

// clip(a, a_min=x, a_max=y): as clip(a, x, y).
void Recorder::place_bounds(Arguments* arguments) const {
  const size_t n = arguments->positional(), size = arguments->values.size();
  Arguments placed;
  placed.values.assign(arguments->values.begin(), arguments->values.begin() + static_cast<int64_t>(n));
  placed.live.assign(arguments->live.begin(), arguments->live.begin() + static_cast<int64_t>(n));
  for (const auto& [own, other] : {std::pair{"a_min", "min"}, std::pair{"a_max", "max"}}) {
    for (size_t k = n; k < size; ++k) {
      PyObject* name = PyTuple_GET_ITEM(arguments->names, static_cast<Py_ssize_t>(k - n));
      if (PyUnicode_CompareWithASCIIString(name, own) != 0 && PyUnicode_CompareWithASCIIString(name, other) != 0) continue;
      placed.values.push_back(arguments->values[k]);
      placed.live.push_back(arguments->live[k]);
    }
  }
  if (n > 0 && size == 3 && placed.values.size() == size) *arguments = std::move(placed);
}

// The names of the last arguments. False: no memory for them.
bool Recorder::set_names(const std::vector<PyObject*>& names, Arguments* arguments) {
  if (names.empty()) return true;
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(names.size()));
  if (!tuple) return PyErr_Clear(), false;
  for (size_t k = 0; k < names.size(); ++k) PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(k), Py_NewRef(names[k]));
  arguments->names_object = names_index(tuple);
  arguments->names = tuple;  // kept by the trace
  Py_DECREF(tuple);
  return true;
}

// Arguments in the form that the tables know: by position, without what goes without saying.
void Recorder::simplify(PyObject* live, Arguments* arguments) {
  const CalleeFacts facts = callee_facts(live);
  if (facts.fn == ArrayFn::clip && arguments->names) place_bounds(arguments);
  if (facts.axis_behind && arguments->names) place_axis(arguments);
  drop_needless(live, arguments);
}

// f(a, axis=n) of functions that take it behind the array is f(a, n).
void Recorder::place_axis(Arguments* arguments) const {
  if (arguments->positional() != 1 || arguments->values.size() != 2) return;
  if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(arguments->names, 0), "axis") != 0) return;
  arguments->names = nullptr, arguments->names_object = -1;
}

// Arguments of reductions and ufuncs that say what would be anyway: out=None, axis=None of a reduction to one number, the dtype that all
// floats among the arguments have. (Any other dtype is as hard to know as the call.)
void Recorder::drop_needless(PyObject* live, Arguments* arguments) {
  static const auto kReductions = words("all any max mean min prod std sum var");
  const bool method = live && Py_IS_TYPE(live, &PyMethodDescr_Type) && PyDescr_TYPE(live) == &PyArray_Type;
  const bool reduces = method && kReductions.contains(text_of(PyDescr_NAME(live)));
  const bool ufunc = live && PyObject_TypeCheck(live, &PyUFunc_Type);
  if (!reduces && !ufunc && callee_facts(live).fn != ArrayFn::clip) return;
  std::vector<PyObject*> names;
  std::vector<size_t> kept;
  const size_t n = arguments->positional();
  size_t placed = n;  // without outputs by position that are None
  const size_t operands = ufunc && !arguments->names ? static_cast<size_t>(reinterpret_cast<PyUFuncObject*>(live)->nin) : n;
  while (placed > operands && info(arguments->values[placed - 1]).object == Py_None) --placed;
  const auto is_own_dtype = [&](PyObject* dtype) {
    DType own;
    if (!numpy::dtype_of_descr(dtype, &own) || !is_float(own)) return false;
    return std::all_of(arguments->live.begin(), arguments->live.begin() + static_cast<int64_t>(n), [&](PyObject* o) {
      ArrayFacts facts;
      return o && numpy::facts_of(o, &facts) && facts.rank > 0 && facts.dtype == own;
    });
  };
  for (size_t k = n; k < arguments->values.size(); ++k) {
    PyObject* name = PyTuple_GET_ITEM(arguments->names, static_cast<Py_ssize_t>(k - n));
    PyObject* value = info(arguments->values[k]).object;
    const std::string text = text_of(name);
    const bool none = value == Py_None && (text == "out" || text == "dtype" || (reduces && text == "axis"));
    if (none || (value && text == "dtype" && is_own_dtype(value))) continue;
    names.push_back(name);
    kept.push_back(k);
  }
  Arguments less;
  less.values.assign(arguments->values.begin(), arguments->values.begin() + static_cast<int64_t>(placed));
  less.live.assign(arguments->live.begin(), arguments->live.begin() + static_cast<int64_t>(placed));
  if (reduces && n == 2 && info(less.values[1]).object == Py_None) less.values.pop_back(), less.live.pop_back();  // a.sum(None)
  if (kept.size() == arguments->values.size() - n && less.values.size() == n) return;
  for (const size_t k : kept) less.values.push_back(arguments->values[k]), less.live.push_back(arguments->live[k]);
  if (set_names(names, &less)) *arguments = std::move(less);
}

// a.round(n), n > 0, of an array of floats is a * 10**n, rint() and / 10**n; a.round() is rint() alone (NumPy: PyArray_Round in
// calculation.c).
bool Recorder::rounds(PyObject* live, const Arguments& arguments) {
  constexpr long kMost = 22;  // powers of ten that a double has exactly
  if (!callee_facts(live).rounds || arguments.values.empty() || arguments.positional() > 2) return false;
  PyObject* places = arguments.positional() == 2 ? info(arguments.values[1]).object : nullptr;
  for (size_t k = arguments.positional(); k < arguments.values.size(); ++k) {
    PyObject* name = PyTuple_GET_ITEM(arguments.names, static_cast<Py_ssize_t>(k - arguments.positional()));
    PyObject* value = info(arguments.values[k]).object;
    const bool decimals = PyUnicode_CompareWithASCIIString(name, "decimals") == 0 && !places;
    if (!value || (!decimals && (PyUnicode_CompareWithASCIIString(name, "out") != 0 || value != Py_None))) return false;
    if (decimals) places = value;
  }
  const ValueId array = arguments.values[0];
  if (places && !PyLong_CheckExact(places)) return false;
  const long n = places ? PyLong_AsLong(places) : 0;
  PyErr_Clear();
  if (n < 0 || n > kMost || !array_operands({array}, {arguments.live[0]}) || !is_float(info(array).facts.dtype)) return false;
  if (n > 0 && !guard_contiguous(array, arguments.live[0])) return false;  // of others the result is in C's order
  ValueId factor = kNull;
  if (n > 0) {
    double power = 10;
    for (long k = 1; k < n; ++k) power *= 10;
    PyObject* by = PyFloat_FromDouble(power);
    if (!by) return PyErr_Clear(), false;
    factor = constant(by, "");
    Py_DECREF(by);
  }
  // Each computes into what the one before has made, as an operator does with what dies there.
  const auto done = [&](OpKind kind, int which, ArrayFn fn, std::initializer_list<ValueId> operands) {
    const ValueId v = emit(kind, operands, {.imm = which, .effects = kWarnsOnly});
    set_array_op(v, fn, arguments.live[0]);  // of its dtype and rank
    hold(v, +1);
    const ValueId operand = *operands.begin();
    if (operand != array) hold(operand, -1), release_dead();
    return v;
  };
  const auto scaled = [&](BinaryOp which, ArrayFn fn, ValueId of, ValueId by) {
    return done(OpKind::binary, static_cast<int>(which), fn, {of, by});
  };
  ValueId rounded = array;
  if (n > 0) rounded = scaled(BinaryOp::multiply, ArrayFn::multiply, rounded, planted(Fault::lost_place) ? array : factor);
  rounded = done(OpKind::unary, static_cast<int>(UnaryOp::rint), ArrayFn::rint, {rounded});
  if (n > 0) rounded = scaled(BinaryOp::true_divide, ArrayFn::divide, rounded, factor);
  pop(call_.pops);
  push(rounded);
  hold(rounded, -1);
  return true;
}

// ---- functions written in Python ------------------------------------------------------------------------------------------

// Has nothing in it __array_function__ but arrays, whose own does nothing else than call the function?
bool Recorder::overrides_nothing(ValueId v, PyObject* live, int depth) {
  constexpr Py_ssize_t kMostItems = 16;
  constexpr int kMostDepth = 3;
  if (!live) return false;
  if (is_constant_dtype(v, live)) return true;
  if (!know(v, live)) return false;
  if (numpy::is_exact_array(live)) return know_array(v, live);
  if (!PyList_CheckExact(live) && !PyTuple_CheckExact(live))
    return simple(v) || numpy::is_scalar_type(Py_TYPE(live)) || safe_index(v, live);
  std::vector<ValueId> items;
  if (Py_SIZE(live) > kMostItems || depth == kMostDepth || !parts(v, live, &items)) return false;
  for (size_t i = 0; i < items.size(); ++i)
    if (!overrides_nothing(items[i], PySequence_Fast_GET_ITEM(live, static_cast<Py_ssize_t>(i)), depth + 1)) return false;
  return true;
}

// The dispatcher, in C, would look for __array_function__ and then call its implementation (NumPy: dispatcher_vectorcall in
// arrayfunction_override.c). The arguments are on the caller's stack until that has returned.
bool Recorder::call_dispatched(ValueId callee, PyFunctionObject* implementation, Arguments arguments) {
  if (!is_constant(callee) || arguments.values.size() < callee_facts(info(callee).object).through_with) return false;
  for (size_t i = 0; i < arguments.values.size(); ++i)
    if (!overrides_nothing(arguments.values[i], arguments.live[i])) return false;
  static PyObject* const kImplementation = PyUnicode_InternFromString("_implementation");
  const ValueId function = constant(reinterpret_cast<PyObject*>(implementation), attr_path(info(callee).path, kImplementation));
  if (!call_python(function, implementation, arguments)) return false;
  call_.action = packed_action(hook::ReturnAction::kPush, std::exchange(call_.pops, 0));
  return true;
}

// np.ravel(a) is a.ravel(). (With other arguments it may raise, from a frame of its own.)
void Recorder::take_method(ValueId* callee, PyObject** live, const Arguments& arguments) {
  PyObject* method = is_constant(*callee) ? callee_facts(*live).method : nullptr;
  if (!method || arguments.names || arguments.values.size() != 1 || !numpy::is_exact_array(arguments.live[0])) return;
  if (PyArray_NDIM(reinterpret_cast<PyArrayObject*>(arguments.live[0])) == 0) return;
  if (!know(arguments.values[0], arguments.live[0]) || !know_array(arguments.values[0], arguments.live[0])) return;
  *callee = constant(method, attr_path(type_path(&PyArray_Type), PyDescr_NAME(method)));
  *live = method;
}

// Loops in NumPy's own code go round once or a few times: they are written out. So is the rest of the turn in which a generator has
// yielded: most come to a yield in the next one, and then its loop is that of who goes through it.
bool Recorder::unrolls() {
  constexpr int kMostTurns = 16;
  if (is_in_numpy() && count_turn() <= kMostTurns) return true;
  return shadow().goes_on && count_turn() == 1;
}

}  // namespace dalsegno::recorder
