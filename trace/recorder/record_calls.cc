// Calls: Python functions are recorded through, everything else is called again at replay.
#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "hook/unobserved.h"
#include "numpy/dtypes.h"
#include "numpy/random.h"
#include "trace/fault.h"
#include "trace/recorder/facts.h"
#include "trace/recorder/recorder.h"
#include "trace/recorder/text.h"

namespace dalsegno::recorder {

// Stack: 3.11, 3.12: [method, self | NULL, callable] args; 3.13: [callable, self | NULL] args.
void Recorder::call(const Instr& instr, int nargs, PyObject* kwnames) {
  int below = kwnames && instr.op == Opcode::CALL_KW ? 1 : 0;  // 3.13: the names are on the stack
  if (below) pop();
  size_t base = shadow().stack.size() - nargs - 2;
  auto live = [&](size_t slot) { return view()->localsplus[frame().code->nlocalsplus() + slot].get(); };
  ValueId first = shadow().stack[base], second = shadow().stack[base + 1];
  bool method = kHas313Calls ? second != kNull : first != kNull;
  size_t callable_at = kHas313Calls || method ? base : base + 1;
  size_t args_from = method ? base + 1 : base + 2;
  ValueId callee = shadow().stack[callable_at];
  PyObject* live_callee = live(callable_at);
  Arguments arguments;
  arguments.values.assign(shadow().stack.begin() + args_from, shadow().stack.end());
  for (size_t i = args_from; i < shadow().stack.size(); ++i) arguments.live.push_back(live(i));
  arguments.names = kwnames;
  if (kwnames) arguments.names_object = keywords_index(kwnames);
  if (!method) {  // the live frame may hold an unbound method and self where the trace holds a bound method
    PyObject *a = live(base), *b = live(base + 1);
    if (a && b) live_callee = nullptr;
  }
  call_.pops = nargs + 2;
  if (counts_references(live_callee) || counts_references(live(base))) return give_up(Reason::refcount);
  if (live_callee == reinterpret_cast<PyObject*>(&PyRange_Type) && is_constant(callee) && !kwnames) take_as_ints(&arguments);
  if (live_callee && !method && know_callee(callee, live_callee)) callee = constant(live_callee, info(callee).path);
  if (live_callee) unbind(&callee, &live_callee, &arguments);
  if (is_constant(callee)) simplify(live_callee, &arguments);
  if (live_callee && call_companion(callee, live_callee, base, method, &arguments)) return;
  if (live_callee) take_method(&callee, &live_callee, arguments);
  if (live_callee && is_constant(callee) && test_class(live_callee, arguments)) return;
  if (live_callee && is_constant(callee) && (advance(live_callee, arguments) || call_absolute(live_callee, arguments))) return;
  if (live_callee && (operates(callee, live_callee, arguments) || call_through(callee, live_callee, arguments))) return;
  call_opaque(callee, live_callee, std::move(arguments));
}

void Recorder::on_CALL(const Instr& i) { call(i, i.arg, i.kwnames >= 0 ? const_at(i.kwnames) : nullptr); }
void Recorder::on_CALL_KW(const Instr& i) { call(i, i.arg, live_top()); }

static bool is_done_at_once(Through but, PyObject* first) {
  if (but == Through::kNotOfDouble) return PyFloat_CheckExact(first) || Py_IS_TYPE(first, &PyDoubleArrType_Type);
  return but == Through::kNotOfVector && PyArray_CheckExact(first) && PyArray_NDIM(reinterpret_cast<PyArrayObject*>(first)) == 1;
}

// What CALL does with a callee that runs a Python function first of all. False: it is called as it is.
bool Recorder::call_through(ValueId callee, PyObject* live, Arguments arguments) {
  if (!goes_through(live)) return false;
  if (!arguments.live.empty() && is_done_at_once(callee_facts(live).but, arguments.live[0])) return false;
  if (PyFunction_Check(live)) return call_python(callee, reinterpret_cast<PyFunctionObject*>(live), arguments);
  if (live == options_.callable) return call_itself(callee, arguments);
  if (PyMethod_Check(live)) return call_method(callee, live, std::move(arguments));
  if (PyType_Check(live)) return call_class(callee, live, std::move(arguments));
  if (PyFunctionObject* through = callee_facts(live).through) return call_dispatched(callee, through, std::move(arguments));
  return is_partial(live) ? call_partial(callee, live, std::move(arguments)) : call_instance(callee, live, std::move(arguments));
}

// The jitted function calls itself: while it is recorded, that runs the plain function.
bool Recorder::call_itself(ValueId callee, const Arguments& arguments) {
  return call_python(emit(OpKind::jitted_func, {callee}, {.snapshot = true}), function_, arguments);
}

bool Recorder::call_method(ValueId callee, PyObject* live, Arguments arguments) {
  if (!know(callee, live)) return false;
  ValueId func = emit(OpKind::method_func, {callee}, {.snapshot = false});
  ValueId self = emit(OpKind::method_self, {callee}, {.snapshot = false});
  arguments.values.insert(arguments.values.begin(), self);
  arguments.live.insert(arguments.live.begin(), PyMethod_GET_SELF(live));
  return call_through(func, PyMethod_GET_FUNCTION(live), std::move(arguments));
}

// np.float32, float, a dtype object: as argument of a NumPy function, data and not code.
bool Recorder::is_constant_dtype(ValueId v, PyObject* live) const {
  return live && is_constant(v) && (PyType_Check(live) || PyArray_DescrCheck(live));
}

// ---- everything else -------------------------------------------------------------------------------------------------------

namespace {

bool is_method_of(PyObject* callee, PyTypeObject* type) { return Py_IS_TYPE(callee, &PyMethodDescr_Type) && PyDescr_TYPE(callee) == type; }

bool is_astype(PyObject* callee) {
  return is_method_of(callee, &PyArray_Type) && PyUnicode_CompareWithASCIIString(PyDescr_NAME(callee), "astype") == 0;
}

// isinstance(x, ordinary class), isinstance(x, (ordinary classes))
bool is_class_test(PyObject* callee, const std::vector<PyObject*>& args) {
  if (builtin_name(callee) != "isinstance" || args.size() != 2 || !args[1]) return false;
  if (!PyTuple_CheckExact(args[1])) return Py_IS_TYPE(args[1], &PyType_Type);
  PyObject** classes = reinterpret_cast<PyTupleObject*>(args[1])->ob_item;
  return std::all_of(classes, classes + PyTuple_GET_SIZE(args[1]), [](PyObject* o) { return Py_IS_TYPE(o, &PyType_Type); });
}

bool is_append(PyObject* callee) {
  return is_method_of(callee, &PyList_Type) && PyUnicode_CompareWithASCIIString(PyDescr_NAME(callee), "append") == 0;
}

bool is_item(PyObject* callee) {
  return is_method_of(callee, &PyArray_Type) && PyUnicode_CompareWithASCIIString(PyDescr_NAME(callee), "item") == 0;
}

// Functions that ask NumPy's scalars for no more than their value, or compare them.
bool takes_numpy_scalars(PyObject* callee) {
  const std::string_view name = builtin_name(callee);
  for (const char* known : {"min", "max", "abs"})
    if (name == known) return true;
  if (callee == reinterpret_cast<PyObject*>(&PyLong_Type) || callee == reinterpret_cast<PyObject*>(&PyFloat_Type) ||
      callee == reinterpret_cast<PyObject*>(&PyBool_Type))
    return true;
  const CalleeFacts facts = callee_facts(callee);
  return !name.empty() && PyCFunction_GET_SELF(callee) && PyModule_Check(PyCFunction_GET_SELF(callee)) &&
         (facts.result == &PyFloat_Type || name == "isnan" || name == "isinf" || name == "isfinite");
}

// str.join of a list or tuple: no item is asked for more than whether it is a text.
bool joins_sequence(PyObject* callee, const std::vector<PyObject*>& args) {
  return is_method_of(callee, &PyUnicode_Type) && PyUnicode_CompareWithASCIIString(PyDescr_NAME(callee), "join") == 0 && args.size() == 2 &&
         args[1] && (PyList_CheckExact(args[1]) || PyTuple_CheckExact(args[1]));
}

// Types that ask their arguments for an iterator, and for nothing else before the first item.
bool makes_iterator(PyObject* callee) {
  for (PyTypeObject* type : {&PyEnum_Type, &PyZip_Type, &PyReversed_Type})
    if (callee == reinterpret_cast<PyObject*>(type)) return true;
  return false;
}

// bool(x), of what is no array: a container is asked how many items it has.
bool asks_truth(PyObject* callee, const std::vector<PyObject*>& args) {
  return callee == reinterpret_cast<PyObject*>(&PyBool_Type) && args.size() == 1 && args[0] && !PyArray_Check(args[0]);
}

// list(t), tuple(l): items are taken, and not looked at.
bool copies_items(PyObject* callee, const std::vector<PyObject*>& args) {
  if (callee != reinterpret_cast<PyObject*>(&PyList_Type) && callee != reinterpret_cast<PyObject*>(&PyTuple_Type)) return false;
  constexpr std::array kTypes{&PyList_Type, &PyTuple_Type, &PyRange_Type, &PyDict_Type, &PySet_Type, &PyFrozenSet_Type};
  return args.size() == 1 && args[0] && std::find(kTypes.begin(), kTypes.end(), Py_TYPE(args[0])) != kTypes.end();
}

}  // namespace

// Or a tuple of such, made here.
bool Recorder::is_constant_class(ValueId v) const {
  const std::vector<ValueId>& items = info(v).items;
  return is_constant(v) || (made(v, &PyTuple_Type) && std::all_of(items.begin(), items.end(), [&](ValueId c) { return is_constant(c); }));
}

// isinstance(), where the class of what is asked about tells: nothing is called. Of a class written in Python that is the very class that
// is asked for (or the first of them): such an instance may say of itself that it is of another one, too.
bool Recorder::test_class(PyObject* live, const Arguments& arguments) {
  static PyObject* const kModule = PyUnicode_InternFromString("__module__");  // every class has that
  if (!is_class_test(live, arguments.live) || arguments.names || !is_constant_class(arguments.values[1])) return false;
  const ValueId v = arguments.values[0];
  PyObject *one = arguments.live[0], *of = arguments.live[1];
  if (v == kNull || is_dead(v) || !one) return false;
  if (know(v, one)) {
    const int is = PyObject_IsInstance(one, of);
    return push_certain(is < 0 ? nullptr : PyBool_FromLong(is), call_.pops);
  }
  if (PyTuple_CheckExact(of) && PyTuple_GET_SIZE(of) > 0) of = PyTuple_GET_ITEM(of, 0);
  dalsegno_attribute a;
  dalsegno_attribute_cache cache{};
  std::string path;
  if (reinterpret_cast<PyTypeObject*>(of) != Py_TYPE(one) || !ordinary_attr(one, kModule, &a, &path)) return false;
  if (!a.found || !dalsegno_has_class_attribute(one, &a, &cache)) return false;
  emit_attr(OpKind::class_attr, {v}, a, path);
  return push_certain(Py_NewRef(Py_True), call_.pops);
}

// Builtins that look at their arguments' values, or at whatever they contain: with plain arguments they run no code of the user's.
bool Recorder::call_is_quiet(const OpaqueCall& call) {
  PyObject* callee = call.live;
  if (is_class_test(callee, call.live_args) && is_constant_class(call.args[1])) return info(call.args[0]).type != nullptr;
  if (!call.plain) return false;
  // (of bytes it may warn, and with a codec run anything)
  if (callee == reinterpret_cast<PyObject*>(&PyUnicode_Type) && (call.args.size() != 1 || is(call.args[0], &PyBytes_Type))) return false;
  // (min(list) looks into it)
  const bool any_container = builtin_name(callee) == "len" || builtin_name(callee) == "id" || makes_iterator(callee) ||
                             copies_items(callee, call.live_args) || joins_sequence(callee, call.live_args) ||
                             asks_truth(callee, call.live_args);
  const bool random = numpy::is_random_method(callee);
  const bool looks_up = is_method_of(callee, &PyDict_Type) && call.args.size() > 1;  // dict.get: its key is looked at there
  for (size_t i = 0; i < call.args.size(); ++i) {
    const bool named = call.kwnames && i + static_cast<size_t>(PyTuple_GET_SIZE(call.kwnames)) >= call.args.size();
    const bool own = i == 0 && (Py_IS_TYPE(callee, &PyMethodDescr_Type) || (random && !PyMethod_Check(callee)));
    const bool given = i > 0 && looks_up;  // d.get(k, given)
    const bool of_numpy = takes_numpy_scalars(callee) && is_numpy_scalar(call.args[i]);
    const bool data = random && call.arrays_known && numpy_data(call.args[i], call.live_args[i]);
    if ((!any_container || named) && !own && !given && !simple(call.args[i]) && !of_numpy && !data) return false;
  }
  return !looks_up || know_lookup(call.args[0], call.live_args[0], call.args[1], call.live_args[1]);
}

// An argument that NumPy's functions take as data. (Lists would be looked into, dicts and bound methods may be or hold callbacks.)
bool Recorder::numpy_data(ValueId v, PyObject* live) {
  if (PyTuple_CheckExact(live)) return safe_index(v, live);
  if (PyObject_TypeCheck(live, &PyUFunc_Type)) return is_constant(v) && callee_facts(live).kind == CalleeKind::numpy_pure;
  return simple(v) || numpy::is_exact_array(live) || numpy::is_scalar_type(Py_TYPE(live)) || is_constant_dtype(v, live);
}

bool Recorder::numpy_knows(const OpaqueCall& call) {
  if (!call.plain || !call.arrays_known) return false;
  bool known = true;
  for (size_t i = 0; i < call.args.size(); ++i) known = numpy_data(call.args[i], call.live_args[i]) && known;
  return known;
}

// A method's array, whole numbers, tuples of such, a dtype. (What else NumPy takes may be deprecated, and warned of; an array may be
// `out`.)
bool Recorder::numpy_is_quiet(const OpaqueCall& call) const {
  if (call.kwnames) return false;
  for (size_t i = 0; i < call.args.size(); ++i) {
    PyObject* live = call.live_args[i];
    const bool own = i == 0 && Py_IS_TYPE(call.live, &PyMethodDescr_Type) && numpy::is_exact_array(live);
    const bool dtype = is_constant(call.args[i]) &&
                       (live == reinterpret_cast<PyObject*>(&PyFloat_Type) || numpy::is_scalar_type(reinterpret_cast<PyTypeObject*>(live)));
    bool whole = PyLong_CheckExact(live);
    if (PyTuple_CheckExact(live)) {
      whole = true;
      for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(live); ++k) whole = whole && PyLong_CheckExact(PyTuple_GET_ITEM(live, k));
    }
    if (!own && !dtype && !whole) return false;
  }
  return true;
}

// A deque without a greatest length: guards that.
bool Recorder::is_unbounded(ValueId deque, PyObject* live) {
  static PyObject* const kMaxlen = PyUnicode_InternFromString("maxlen");
  if (!know(deque, live)) return false;
  PyObject* most = PyObject_GetAttr(live, kMaxlen);
  Py_XDECREF(most);
  if (most != Py_None) return PyErr_Clear(), false;
  ValueId v = emit(OpKind::get_attr, {deque}, {.name = name_index(kMaxlen), .effects = kNoEffect});
  emit(OpKind::guard_is, {v}, {.object = object_index(Py_None, "const:None")});
  return true;
}

// A generator's function is called: that makes a generator, which does not begin.
bool Recorder::makes_generator(ValueId callee, const OpaqueCall& call) {
  if (callee < 0 || !call.live || !PyFunction_Check(call.live) || call.kwnames) return false;
  auto* function = reinterpret_cast<PyFunctionObject*>(call.live);
  auto* code = reinterpret_cast<PyCodeObject*>(function->func_code);
  if ((code->co_flags & (kNotSimple | CO_VARARGS | CO_VARKEYWORDS)) != CO_GENERATOR || function->vectorcall != function_->vectorcall)
    return false;
  const auto given = static_cast<int>(call.args.size());
  const auto defaults = function->func_defaults ? static_cast<int>(PyTuple_GET_SIZE(function->func_defaults)) : 0;
  if (code->co_kwonlyargcount || given > code->co_argcount || given + defaults < code->co_argcount) return false;
  if (trace().data.ops[callee].kind == OpKind::make_function) return true;
  guard_code(callee, function);
  if (given < code->co_argcount) emit(OpKind::guard_defaults, {callee}, {.imm = defaults});
  return true;
}

// Does a method get nothing but its object?
bool Recorder::takes_nothing(const OpaqueCall& call) { return call.args.size() == (PyMethod_Check(call.live) ? 0u : 1u); }

// What the arguments decide, too, where a number is drawn.
PyTypeObject* Recorder::result_type(const OpaqueCall& call) const {
  const numpy::Draws draws = numpy::drawn_by(call.live);
  if (draws == numpy::Draws::kNothing) return call.facts.result;
  if (draws == numpy::Draws::kOther) return nullptr;
  if (draws == numpy::Draws::kNumber) return takes_nothing(call) ? &PyFloat_Type : nullptr;
  const int most = numpy::most_parameters(draws);
  if (most == 0) return takes_nothing(call) ? &PyFloat_Type : nullptr;
  const bool between = most > 0;
  const size_t first = PyMethod_Check(call.live) ? 0 : 1, n = call.args.size();
  const auto fits = [&](ValueId v) { return is_int(v) || (between && is(v, &PyFloat_Type)); };
  const bool few = n <= first + (between ? static_cast<size_t>(most) : 2) && (between || n > first);
  if (!few || !std::all_of(call.args.begin() + static_cast<ptrdiff_t>(first), call.args.end(), fits)) return nullptr;
  return between ? &PyFloat_Type : draws == numpy::Draws::kInt ? &PyLong_Type : &PyInt64ArrType_Type;
}

// Does the call run no code of the user's, but for warnings? If so, *effects says what else it does.
bool Recorder::call_is_known(const OpaqueCall& call, uint32_t* effects) {
  switch (call.facts.kind) {
    case CalleeKind::quiet:
      if ((call.kwnames && !makes_iterator(call.live)) || !call_is_quiet(call)) return false;  // zip(..., strict=True)
      *effects = kReadsMemory | kRaises;
      for (ValueId v : call.args)
        if (is_numpy_scalar(v) && !(is_extreme(call.live) && is_plain_number(v))) *effects = kWarnsOnly;
      if (numpy::is_random_method(call.live) && !takes_nothing(call) && !result_type(call)) *effects = kWarnsOnly;
      return true;
    case CalleeKind::quiet_write:
      if (call.kwnames || call.args.empty() || !info(call.args[0]).type) return false;
      if (call.facts.index > 0 && call.args.size() > 1 && !is_int(call.args[call.facts.index])) return false;  // __index__
      if ((is_method_of(call.live, &PySet_Type) || is_method_of(call.live, &PyDict_Type)) &&
          (call.args.size() < 2 || !know_lookup(call.args[0], call.live_args[0], call.args[1], call.live_args[1])))
        return false;
      *effects = kWritesMemory | kRaises;
      return true;
    case CalleeKind::unbounded_write:
      *effects = kWritesMemory | kRaises;
      return !call.kwnames && call.args.size() == 2 && is_unbounded(call.args[0], call.live_args[0]);
    case CalleeKind::numpy_quiet:
    case CalleeKind::numpy_pure:
    case CalleeKind::numpy_write:
      *effects = call.facts.kind == CalleeKind::numpy_quiet && numpy_is_quiet(call) ? kReadsMemory | kRaises : kWarnsOnly;
      return numpy_knows(call);
    default:
      return false;
  }
}

// a.astype(t) or a.astype(t, copy=c), t and c constants.
bool Recorder::is_constant_astype(const OpaqueCall& call) const {
  if (!is_astype(call.live) || call.args.size() != (call.kwnames ? 3u : 2u)) return false;
  if (call.kwnames && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(call.kwnames, 0), "copy") != 0) return false;
  return std::all_of(call.args.begin() + 1, call.args.end(), [&](ValueId v) { return is_constant(v); });
}

// What a list whose items are known holds behind xs.append(x); empty: it is something else. (A container may be, or hold, the list.)
std::vector<ValueId> Recorder::items_appended(const OpaqueCall& call) const {
  if (!is_append(call.live) || call.args.size() != 2 || !made(call.args[0], &PyList_Type) || info(call.args[1]).made) return {};
  std::vector<ValueId> items = info(call.args[0]).items;
  items.push_back(call.args[1]);
  return items;
}

// What follows for the result, and whether the call is one that kernels know.
void Recorder::known_result(const OpaqueCall& call, ValueId v) {
  set_type(v, result_type(call));
  const bool astype = is_constant_astype(call);
  if (is_item(call.live) && !call.kwnames && call.args.size() == 2 && info(call.args[0]).facts.rank == 1) {
    op(v).facts = element_facts(call.args[0], call.args[1], call.live_args[1]);
  } else if (call.facts.fn == ArrayFn::roll) {
    pending_fn_ = ArrayFn::roll;
    if (call.args.size() > 1 && array_operands({call.args[0]}, {call.live_args[0]})) finisher_ = &Recorder::finish_array;
  } else if (call.facts.kind == CalleeKind::numpy_pure && (!call.kwnames || astype)) {
    pending_fn_ = astype ? ArrayFn::astype : call.facts.fn;
    // (Between arrays NumPy clips by another loop.)
    if (pending_fn_ == ArrayFn::clip && std::any_of(call.live_args.begin() + 1, call.live_args.end(), numpy::is_exact_array))
      pending_fn_ = ArrayFn::none;
    const bool fits = pending_fn_ != ArrayFn::none && call.args.size() == static_cast<size_t>(array_fn_inputs(pending_fn_));
    if (astype || (fits && array_operands(call.args, call.live_args))) finisher_ = &Recorder::finish_array;
  } else if (const std::string_view name = builtin_name(call.live);
             !call.args.empty() && (name == "abs" || name == "min" || name == "max")) {
    // One of the arguments, or a number of its type.
    PyTypeObject* type = info(call.args[0]).type;
    const bool one = std::all_of(call.args.begin(), call.args.end(), [&](ValueId a) { return info(a).type == type; });
    const bool number = type == &PyFloat_Type || type == &PyLong_Type;
    if (one && number && (call.args.size() > 1 || name == "abs")) set_type(v, type);
  }
}

// A builtin that is given a generator or a function will run it. (Others are not let run frames: while they may, frames of other threads
// are made in another way, too.)
static bool runs_frames(PyObject* callee, const std::vector<PyObject*>& args) {
  const bool builtin =
      callee && (PyCFunction_Check(callee) || Py_IS_TYPE(callee, &PyMethodDescr_Type) ||
                 (PyType_Check(callee) && !PyType_HasFeature(reinterpret_cast<PyTypeObject*>(callee), Py_TPFLAGS_HEAPTYPE)));
  return builtin && std::any_of(args.begin(), args.end(),
                                [](PyObject* o) { return o && (PyGen_CheckExact(o) || PyFunction_Check(o) || PyMethod_Check(o)); });
}

void Recorder::call_opaque(ValueId callee, PyObject* live, Arguments arguments) {
  const int positional = static_cast<int>(arguments.positional());
  OpaqueCall call{live, live && is_constant(callee) ? callee_facts(live) : CalleeFacts{}, std::move(arguments.values),
                  std::move(arguments.live), arguments.names};
  if (counts_references(live)) return give_up(Reason::refcount);
  for (size_t i = 0; i < call.args.size(); ++i) {
    const bool known = know(call.args[i], call.live_args[i]) || is_constant_dtype(call.args[i], call.live_args[i]);
    if (known && numpy::is_exact_array(call.live_args[i])) call.arrays_known &= know_array(call.args[i], call.live_args[i]);
    call.plain &= known || (i == 0 && call.facts.any_self && Py_IS_TYPE(live, &PyMethodDescr_Type));
  }
  const bool of_array = call.args.size() == 1 && numpy::is_exact_array(call.live_args[0]) && call.plain && call.arrays_known;
  if (of_array && live && builtin_name(live) == "abs") call.facts = {CalleeKind::numpy_pure, nullptr, ArrayFn::absolute};
  uint32_t effects = kAnyEffect;
  pending_fn_ = ArrayFn::none;
  const bool generator = makes_generator(callee, call);
  if (generator) effects = kReadsMemory | kRaises;
  const bool known = generator || call_is_known(call, &effects);
  if (!known && runs_frames(live, call.live_args)) hook::let_frames_run(true);
  const bool jitted = live && options_.callable && Py_IS_TYPE(live, Py_TYPE(options_.callable)) && !call.kwnames;
  if (!known && live && !jitted) note(call.facts.kind == CalleeKind::frame_reader ? Reason::frame_reader : Reason::opaque_call, live);
  std::vector<ValueId> inputs{callee};
  inputs.insert(inputs.end(), call.args.begin(), call.args.end());
  if (!known) effects = planted(Fault::missing_effect) ? kReadsMemory | kWritesMemory | kRaises : kAnyEffect;
  const OpKind kind = jitted ? OpKind::call_tree : OpKind::call;
  std::vector<ValueId> items = known ? items_appended(call) : std::vector<ValueId>();
  ValueId v = emit(kind, inputs, {.imm = positional, .object = arguments.names_object, .effects = effects});
  if (!items.empty()) made_of(call.args[0], std::move(items));
  pop(call_.pops);
  push(v);
  call_result_ = v;
  if (known) known_result(call, v);
}

// The tuple of names is a constant of the code; 3.13 has it on the stack.
int Recorder::keywords_index(PyObject* kwnames) {
  std::string path = shadow().code_path.empty() ? "" : shadow().code_path + ".const[" + std::to_string(pending()->kwnames) + "]";
  if (pending()->op == Opcode::CALL_KW) path = info(top_before()).path;
  return object_index(kwnames, path);
}

// The manager's methods are looked up and __enter__ is called; __exit__ stays on the stack, to be called as anything else is.
void Recorder::on_BEFORE_WITH(const Instr&) {
  static PyObject *const kEnter = PyUnicode_InternFromString("__enter__"), *const kExit = PyUnicode_InternFromString("__exit__");
  ValueId manager = top();
  note(Reason::opaque_call, reinterpret_cast<PyObject*>(Py_TYPE(live_top())));
  ValueId enter = emit(OpKind::load_special, {manager}, {.name = name_index(kEnter)});
  ValueId exit = emit(OpKind::load_special, {manager}, {.name = name_index(kExit)});
  ValueId entered = emit(OpKind::call, {enter}, {.imm = 0});
  pop();
  push(exit);
  push(entered);
}

// 3.14 has an instruction a method, __exit__ first, and leaves them as LOAD_METHOD does.
void Recorder::on_LOAD_SPECIAL(const Instr& i) {
  static PyObject* const kNames[] = {PyUnicode_InternFromString("__enter__"), PyUnicode_InternFromString("__exit__")};
  if (i.arg >= static_cast<int>(std::size(kNames))) return not_recorded(i);
  if (i.arg == 1) note(Reason::opaque_call, reinterpret_cast<PyObject*>(Py_TYPE(live_top())));
  if (plain_attr(kNames[i.arg], true)) return;
  call_result_ = emit(OpKind::load_special, {top()}, {.name = name_index(kNames[i.arg])});
  push_loaded(call_result_, kNull, true);
  finisher_ = &Recorder::finish_method;
}

// ---- functions made in the trace -------------------------------------------------------------------------------------------

void Recorder::on_MAKE_FUNCTION(const Instr& i) {
  int flags = kHas313Calls ? 0 : i.arg;
  std::vector<ValueId> inputs{top()};
  int parts = __builtin_popcount(flags);
  for (int j = parts; j >= 1; --j) inputs.push_back(top(j));
  ValueId v = emit(OpKind::make_function, inputs,
                   {.imm = flags, .object = object_index(frame().live->func_globals, shadow().globals_path), .snapshot = false});
  for (int j = 0; j <= parts; ++j) pop();
  push(v);
  set_type(v, &PyFunction_Type);
}

void Recorder::on_SET_FUNCTION_ATTRIBUTE(const Instr& i) {
  ValueId function = top(), value = top(1);
  ValueId v = emit(OpKind::set_function_attribute, {function, value}, {.imm = i.arg, .snapshot = false});
  set_type(v, &PyFunction_Type);
  pop();
  pop();
  push(v);
}

}  // namespace dalsegno::recorder
