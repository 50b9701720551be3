// Calls of Python functions: they are recorded through. Which of them, and what their parameters are bound to.
#include <algorithm>
#include <utility>

#include "trace/recorder/facts.h"
#include "trace/recorder/recorder.h"
#include "trace/recorder/text.h"

namespace dalsegno::recorder {
namespace {

std::string module_of(PyFunctionObject* function) {
  const char* module = utf8_of(function->func_module);
  return module ? module : "";
}

bool starts_with(const std::string& text, const char* prefix) { return text.rfind(prefix, 0) == 0; }

bool is_within(PyFunctionObject* function, const char* package) {
  const std::string module = module_of(function);
  return module == package || starts_with(module, (std::string(package) + ".").c_str());
}

// The import system is called, not recorded through.
bool imports(PyFunctionObject* function) { return is_within(function, "importlib") || is_within(function, "_frozen_importlib"); }

bool is_of_numpy(PyFunctionObject* function) { return is_within(function, "numpy"); }

// Of the standard library, whose loops are mostly short: random's draw again what is too large.
bool is_of_library(PyFunctionObject* function) {
  const std::string module = module_of(function);
  PyObject* names = PySys_GetObject("stdlib_module_names");  // borrowed
  PyObject* top = PyUnicode_FromString(module.substr(0, module.find('.')).c_str());
  const bool known = names && top && PySet_Contains(names, top) == 1;
  Py_XDECREF(top);
  PyErr_Clear();
  return known;
}

}  // namespace

// Is the innermost frame one of NumPy's own Python code?
bool Recorder::is_in_numpy() const { return frame().live && is_of_numpy(frame().live); }

// A default of a function of NumPy's is what it was: a constant.
ValueId Recorder::default_of(PyFunctionObject* function, ValueId given, PyObject* live, const std::string& path) {
  if (!is_of_numpy(function) || !is_expressible(live)) return given;
  const std::string source = is_no_value(live) || path[0] == '.' ? "" : path;
  emit(OpKind::guard_is, {given}, {.object = object_index(live, source)});
  return constant(live, source);
}

bool Recorder::bind_arguments(ValueId func, PyFunctionObject* live, const Arguments& arguments, std::vector<ValueId>* locals) {
  const std::vector<ValueId>& args = arguments.values;
  auto* code = reinterpret_cast<PyCodeObject*>(live->func_code);
  const int npos = static_cast<int>(arguments.positional());
  const int nkw = static_cast<int>(args.size()) - npos;
  int total = code->co_argcount + code->co_kwonlyargcount;
  bool varargs = code->co_flags & CO_VARARGS, varkw = code->co_flags & CO_VARKEYWORDS;
  if (npos > code->co_argcount && !varargs) return false;
  locals->assign(code->co_nlocalsplus, kNull);
  for (int i = 0; i < npos && i < code->co_argcount; ++i) (*locals)[i] = args[i];
  std::vector<ValueId> extra_kw;
  for (int k = 0; k < nkw; ++k) {
    PyObject* name = PyTuple_GET_ITEM(arguments.names, k);
    int slot = -1;
    for (int i = code->co_posonlyargcount; i < total && slot < 0; ++i)
      if (PyUnicode_Compare(name, PyTuple_GET_ITEM(code->co_localsplusnames, i)) == 0) slot = i;
    if (slot >= 0) {
      if ((*locals)[slot] != kNull) return false;
      (*locals)[slot] = args[npos + k];
    } else if (varkw) {
      extra_kw.push_back(constant(name, utf8_of(name) ? std::string("const:str:") + utf8_of(name) : ""));
      extra_kw.push_back(args[npos + k]);
    } else {
      return false;
    }
  }
  const std::string path = is_constant(func) ? info(func).path : "";
  int ndefaults = live->func_defaults ? static_cast<int>(PyTuple_GET_SIZE(live->func_defaults)) : 0;
  for (int i = 0; i < code->co_argcount; ++i) {
    if ((*locals)[i] != kNull) continue;
    int d = i - (code->co_argcount - ndefaults);
    if (d < 0) return false;
    const ValueId given = emit(OpKind::func_default, {func}, {.imm = d, .snapshot = false});
    (*locals)[i] = default_of(live, given, PyTuple_GET_ITEM(live->func_defaults, d), path + ".defaults[" + std::to_string(d) + "]");
  }
  for (int i = code->co_argcount; i < total; ++i) {
    if ((*locals)[i] != kNull) continue;
    PyObject* name = PyTuple_GET_ITEM(code->co_localsplusnames, i);
    PyObject* value = live->func_kwdefaults ? PyDict_GetItemWithError(live->func_kwdefaults, name) : nullptr;
    if (!value) return false;
    const ValueId given = emit(OpKind::func_kwdefault, {func}, {.name = name_index(name)});
    (*locals)[i] = default_of(live, given, value, path + ".kwdefaults[" + text_of(name) + "]");
  }
  int slot = total;
  if (varargs) {
    std::vector<ValueId> rest;
    if (npos > code->co_argcount) rest.assign(args.begin() + code->co_argcount, args.begin() + npos);
    ValueId tuple = emit(OpKind::build_tuple, rest, {.snapshot = false});
    set_type(tuple, &PyTuple_Type);
    made_of(tuple, rest);
    (*locals)[slot++] = tuple;
  }
  if (varkw) {
    ValueId dict = emit(OpKind::build_map, extra_kw, {.effects = kNoEffect});
    set_type(dict, &PyDict_Type);
    made_of_pairs(dict, extra_kw);
    (*locals)[slot] = dict;
  }
  return true;
}

// A function that calls itself is recorded through a few levels: a trace of all of them would be of this one number of levels.
bool Recorder::recurses(PyObject* code) const {
  constexpr int kMostLevels = 3;
  auto same = [&](const Frame& f) { return reinterpret_cast<PyObject*>(f.code->code) == code; };
  return std::count_if(frames().begin(), frames().end(), same) >= kMostLevels;
}

// What the function does is what it did. Where its code is found again.
std::string Recorder::guard_code(ValueId func, PyFunctionObject* live) {
  const std::string path = is_constant(func) ? info(func).path : "";
  int code = object_index(live->func_code, path.empty() ? "" : path + ".code");
  if (source(code).empty()) code = object_index(live->func_code, sources_.of_code(live));
  const int globals = object_index(live->func_globals, sources_.of_globals(live->func_globals));
  emit(OpKind::guard_function, {func}, {.imm = globals, .object = code});
  return source(code);
}

// Is it a method that `self`, if there is one, has under its name?
static bool is_method_of(PyFunctionObject* function, PyObject* self) {
  PyObject* name = reinterpret_cast<PyCodeObject*>(function->func_code)->co_name;
  return self && _PyType_Lookup(Py_TYPE(self), name) == reinterpret_cast<PyObject*>(function);
}

// Does it close over itself, or call, by its name, what is found under that now, and is that the function? `self`: its first argument, or
// null.
static bool calls_itself(PyFunctionObject* function, const CodeInfo& info, PyObject* self) {
  auto* code = reinterpret_cast<PyCodeObject*>(function->func_code);
  for (Py_ssize_t i = 0; function->func_closure && i < PyTuple_GET_SIZE(function->func_closure); ++i)
    if (PyCell_GET(PyTuple_GET_ITEM(function->func_closure, i)) == reinterpret_cast<PyObject*>(function)) return true;
  if (info.asks_first(code->co_name) && is_method_of(function, self)) return true;
  if (!PyDict_CheckExact(function->func_globals) || !info.loads_global(code->co_name)) return false;
  PyObject* found = PyDict_GetItemWithError(function->func_globals, code->co_name);  // borrowed
  if (!found) PyErr_Clear();
  return found == reinterpret_cast<PyObject*>(function);
}

// Does a method ask anything for what has its name? (pop() may ask a list.)
static bool may_call_itself(PyFunctionObject* function, PyObject* self) {
  auto* code = reinterpret_cast<PyCodeObject*>(function->func_code);
  return PySequence_Contains(code->co_names, code->co_name) == 1 && is_method_of(function, self);
}

// Is what is recorded now within a loop of one of the frames?
bool Recorder::is_in_loop() const {
  return std::any_of(frames().begin(), frames().end(), [this](const Frame& f) {
    const Instr* now = &f == &frame() ? pending() : f.call;
    return now && f.code->in_loop(now->start);
  });
}

// Does a comprehension (up to 3.11 a function made for this call) go round but a few times?
static bool goes_round_shortly(PyObject* iterator) {
  static PyTypeObject* const kKnowLength[] = {&PyRangeIter_Type,   &PyListIter_Type,      &PyTupleIter_Type,   &PySetIter_Type,
                                              &PyDictIterKey_Type, &PyDictIterValue_Type, &PyDictIterItem_Type};
  if (std::find(std::begin(kKnowLength), std::end(kKnowLength), Py_TYPE(iterator)) == std::end(kKnowLength)) return false;
  const Py_ssize_t left = PyObject_LengthHint(iterator, 0);
  if (left < 0) PyErr_Clear();
  return left <= kFewTurns;
}

// Is it the tree's own function, or one of its own functions?
bool Recorder::is_root(PyFunctionObject* function) const {
  if (!options_.shape) return function == function_;
  return function->func_code == options_.shape->func_code && function->func_globals == options_.shape->func_globals;
}

// On the interpreter's stack: a callee, whose reference is stolen, that takes the function which stands there as its first argument. Of a
// method there is no room for an argument more: both become one bound method.
static void put_before(hook::Slot* on_stack, PyObject* callee, PyObject* function, bool method) {
  if (!method) {
    if (kHas313Calls) std::swap(on_stack[0], on_stack[1]);
    return on_stack[0].put(callee);
  }
  PyObject* bound = PyMethod_New(callee, function);
  Py_DECREF(callee);
  if (!bound) throw std::bad_alloc();
  on_stack[0].put(bound);
}

// Some plain functions are called as if they were jitted: by the trace, and by the interpreter now. Those that call themselves, as
// otherwise their traces could only be of some few levels, and whoever records one would have all the others run under its eyes. And those
// that have loops: the frame in which a loop runs is the outermost one of its traces then, so that it is entered, left and grows in one and
// the same call (replay/on_stack.h), and all who call the function share them. (PyPy's tracing JIT does not go through functions with loops
// either.) But in a loop those are gone through whose own loops turn out to go round but a few times. Functions that are not the same ones
// in each run, as they are made by the code that calls them, share what is called in the place of all with their code: that takes the
// function as its first argument. `base`: where the stack has the callee.
bool Recorder::call_companion(ValueId callee, PyObject* live, size_t base, bool method, Arguments* arguments) {
  hook::Slot* const on_stack = view()->localsplus + frame().code->nlocalsplus() + base;
  hook::Slot& place = on_stack[kHas313Calls || method ? 0 : 1];
  if (!options_.callable || !PyFunction_Check(live) || place.get() != live) return false;
  auto* function = reinterpret_cast<PyFunctionObject*>(live);
  auto* code = reinterpret_cast<PyCodeObject*>(function->func_code);
  if ((code->co_flags & kNotSimple) || function->vectorcall != function_->vectorcall || is_of_numpy(function)) return false;
  PyObject* self = arguments->live.empty() ? nullptr : arguments->live[0];
  const CodeInfo& about = *info_of(code);
  const bool certain = is_root(function) || calls_itself(function, about, self);
  bool recursive = !arguments->names && (certain || may_call_itself(function, self));
  const bool in_loop = is_in_loop();
  const bool loops = about.loops() && !imports(function) && !(in_loop && is_of_library(function));
  if (!recursive && !loops) return false;
  std::string path = is_constant(callee) ? info(callee).path : !options_.shape && is_root(function) ? "self" : sources_.by_name(live);
  const bool any = !is_constant(callee) && path.empty();
  if (any && method && in_loop && goes_round_shortly(self)) return false;
  const auto [companion, ready, recurses] = options_.companion(function, any);
  if (!companion) return false;
  recursive &= certain || !ready || recurses;
  if (!recursive && !loops) return Py_DECREF(companion), false;
  const bool often = !recursive && in_loop;
  if (often && options_.loops_shortly(companion)) return Py_DECREF(companion), false;
  if (any) {
    path = guard_code(callee, function);
    arguments->values.insert(arguments->values.begin(), callee);
    arguments->live.insert(arguments->live.begin(), live);
    put_before(on_stack, companion, live, method);
  } else {
    if (!is_constant(callee) && !know_which(callee, live, path)) return Py_DECREF(companion), false;
    if (!options_.shape && is_root(function)) path = "self";
    place.put(companion);
  }
  if (often) companion_ = companion, finisher_ = &Recorder::finish_companion;
  if (recursive && !ready) return give_up(Reason::calls_itself), true;
  call_opaque(constant(companion, path.empty() ? "" : path + ".jitted"), companion, std::move(*arguments));
  return true;
}

// By now it is known how long the loops of a companion are that has been called for the first time. Where they are short, another recording
// goes through it; a function's entry, which comes by once, keeps the call.
void Recorder::finish_companion(const Instr&) {
  if (!options_.loops_shortly(companion_) || trace().data.anchor == AnchorKind::entry) return;
  goes_through_now_ = true;
  abandon();
}

// The callees whose frames are recorded through: functions, and what does no more than call one. NumPy's own Python code is where that
// has been tried (facts.cc), with all that it calls.
bool Recorder::goes_through(PyObject* live) const {
  if (!live || static_cast<int>(frames().size()) >= options_.max_depth) return false;
  if (live == options_.callable)  // a loop in each of its levels would be recorded again for each
    return !frames().front().code->loops() && goes_through(reinterpret_cast<PyObject*>(function_));
  if (PyMethod_Check(live)) return goes_through(PyMethod_GET_FUNCTION(live));
  const PyFunctionObject* through = callee_facts(live).through;
  if (through && !PyFunction_Check(live)) return through->vectorcall == function_->vectorcall && !recurses(through->func_code);
  if (is_partial(live)) return goes_through(partial_function(live));
  if (PyFunction_Check(live)) {
    auto* function = reinterpret_cast<PyFunctionObject*>(live);
    const int flags = reinterpret_cast<PyCodeObject*>(function->func_code)->co_flags;
    if (imports(function) || (is_of_numpy(function) && !through && !is_in_numpy())) return false;
    return !(flags & kNotSimple) && function->vectorcall == function_->vectorcall && !recurses(function->func_code);
  }
  PyObject* found = PyType_Check(live) ? class_init(reinterpret_cast<PyTypeObject*>(live)) : class_call(Py_TYPE(live));
  return found && goes_through(found);
}

bool Recorder::call_python(ValueId func, PyFunctionObject* live, const Arguments& arguments) {
  auto* code = reinterpret_cast<PyCodeObject*>(live->func_code);
  guard_code(func, live);
  if (code->co_argcount > static_cast<int>(arguments.positional())) {
    int defaults = live->func_defaults ? static_cast<int>(PyTuple_GET_SIZE(live->func_defaults)) : 0;
    emit(OpKind::guard_defaults, {func}, {.imm = defaults});
  }
  std::vector<ValueId> locals;
  if (!bind_arguments(func, live, arguments, &locals) || !hook::watch_code(code)) return false;
  call_.function = func;
  call_.locals = std::move(locals);
  will_enter(code);
  return true;
}

}  // namespace dalsegno::recorder
