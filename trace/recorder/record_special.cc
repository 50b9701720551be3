// Python functions that C code calls for an instruction: __init__ of a class that is called, operators' methods, __getitem__. They are
// recorded through; what C does with their results is what their callers' frames are told (hook::ReturnAction).
#include <array>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "trace/recorder/facts.h"
#include "trace/recorder/recorder.h"
#include "trace/recorder/return_actions.h"

namespace dalsegno::recorder {
namespace {

using hook::ReturnAction;

// By BinaryOp: the methods of the left and the right operand, and where types keep what the operator in place does first.
struct OperatorMethods {
  const char *left, *right;
  binaryfunc PyNumberMethods::*in_place;
};
constexpr std::array<OperatorMethods, 13> kOperators = {{
    {"__add__", "__radd__", &PyNumberMethods::nb_inplace_add},
    {"__and__", "__rand__", &PyNumberMethods::nb_inplace_and},
    {"__floordiv__", "__rfloordiv__", &PyNumberMethods::nb_inplace_floor_divide},
    {"__lshift__", "__rlshift__", &PyNumberMethods::nb_inplace_lshift},
    {"__matmul__", "__rmatmul__", &PyNumberMethods::nb_inplace_matrix_multiply},
    {"__mul__", "__rmul__", &PyNumberMethods::nb_inplace_multiply},
    {"__mod__", "__rmod__", &PyNumberMethods::nb_inplace_remainder},
    {"__or__", "__ror__", &PyNumberMethods::nb_inplace_or},
    {nullptr, nullptr, nullptr},  // ** has three operands
    {"__rshift__", "__rrshift__", &PyNumberMethods::nb_inplace_rshift},
    {"__sub__", "__rsub__", &PyNumberMethods::nb_inplace_subtract},
    {"__truediv__", "__rtruediv__", &PyNumberMethods::nb_inplace_true_divide},
    {"__xor__", "__rxor__", &PyNumberMethods::nb_inplace_xor},
}};
constexpr std::array<const char*, 6> kComparisons = {"__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"};

// Such a name; borrowed, as names that have been used once stay.
PyObject* interned(const char* name) {
  static std::unordered_map<const char*, PyObject*> names;
  PyObject*& known = names[name];
  if (!known) known = PyUnicode_InternFromString(name);
  return known;
}

bool is_number(PyObject* o) { return PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o); }

// An instance of a class made in Python that is no number or sequence made in C: nothing else is asked for its operators than its methods.
bool has_methods_alone(PyObject* o, binaryfunc PyNumberMethods::*in_place) {
  const PyTypeObject* type = Py_TYPE(o);
  if (!PyType_HasFeature(Py_TYPE(o), Py_TPFLAGS_HEAPTYPE) || PyLong_Check(o) || PyFloat_Check(o) || PyComplex_Check(o)) return false;
  const PySequenceMethods* sequence = type->tp_as_sequence;
  const bool adds = sequence && (sequence->sq_concat || sequence->sq_repeat || sequence->sq_inplace_concat || sequence->sq_inplace_repeat);
  return !adds && (!in_place || !type->tp_as_number || !(type->tp_as_number->*in_place));
}

}  // namespace

// ---- making instances ------------------------------------------------------------------------------------------------------

// C(..): the arguments stay on the stack until __init__ has returned. The instance, which C code holds meanwhile, stands where a method
// would: the frame's stack has no room for more.
bool Recorder::call_class(ValueId callee, PyObject* live, Arguments arguments) {
  static PyObject* const kInit = interned("__init__");
  auto* type = reinterpret_cast<PyTypeObject*>(live);
  const std::string path = sources_.by_name(live);
  const dalsegno_attribute a{type, kInit, class_init(type)};
  const std::vector<ValueId>& stack = shadow().stack;
  const bool room = call_.pops > 1 && static_cast<size_t>(call_.pops) <= stack.size() && stack[stack.size() - call_.pops] == kNull;
  if (path.empty() || !a.found || is_dead(callee) || !room) return false;
  auto* init = reinterpret_cast<PyFunctionObject*>(a.found);
  if (reinterpret_cast<PyCodeObject*>(init->func_code)->co_argcount < 1) return false;
  if (!is_constant(callee)) emit(OpKind::guard_is, {callee}, {.object = object_index(live, path)});
  const ValueId function = constant(a.found, attr_path(path, kInit));
  arguments.values.insert(arguments.values.begin(), function);  // until there is an instance, behind all guards
  arguments.live.insert(arguments.live.begin(), nullptr);
  if (!call_python(function, init, arguments)) return false;
  call_.instance = call_.locals[0] = emit_attr(OpKind::make_instance, {}, a, path);
  call_.action = packed_action(ReturnAction::kInstance, std::exchange(call_.pops, 0) - 1);
  return true;
}

// ---- operators -------------------------------------------------------------------------------------------------------------

// The instance's class has a Python function under the name, which is called with these arguments.
bool Recorder::call_special(ValueId object, PyObject* live, PyObject* name, const Arguments& arguments, int action) {
  dalsegno_attribute a;
  dalsegno_attribute_cache cache{};
  std::string path;
  if (!kMethodsOfClasses || is_dead(object) || !ordinary_attr(live, name, &a, &path)) return false;
  if (!a.found || !PyFunction_Check(a.found) || !goes_through(a.found) || !dalsegno_has_class_attribute(live, &a, &cache)) return false;
  for (size_t i = 0; i < arguments.live.size(); ++i)  // the other operand is of the same class, or plain
    if (Py_TYPE(arguments.live[i]) == a.type) emit_attr(OpKind::class_attr, {arguments.values[i]}, a, path);
  if (!call_python(constant(a.found, attr_path(path, name)), reinterpret_cast<PyFunctionObject*>(a.found), arguments)) return false;
  call_.action = action;
  return true;
}

// x.name where the class has a property under the name, whose getter is called with the instance: that stays on the stack meanwhile.
bool Recorder::property_attr(PyObject* name) {
  PyObject* live = live_top();
  PyTypeObject* type = Py_TYPE(live);
  const dalsegno_attribute a{type, name, _PyType_Lookup(type, name)};
  if (!kMethodsOfClasses || is_dead(top()) || !a.found || !Py_IS_TYPE(a.found, &PyProperty_Type)) return false;
  const std::string path = sources_.by_name(reinterpret_cast<PyObject*>(type));
  PyObject* getter = PyObject_GetAttr(a.found, interned("fget"));
  if (!getter) return PyErr_Clear(), false;
  Py_DECREF(getter);  // the property has it
  dalsegno_attribute_cache cache{};
  if (path.empty() || !PyFunction_Check(getter) || !goes_through(getter) || !dalsegno_has_class_attribute(live, &a, &cache)) return false;
  emit_attr(OpKind::class_attr, {top()}, a, path);
  const ValueId function = constant(getter, attr_path(attr_path(path, name), interned("fget")));
  if (!call_python(function, reinterpret_cast<PyFunctionObject*>(getter), {{top()}, {live}})) return false;
  call_.action = packed_action(ReturnAction::kPush, 1);
  return true;
}

// C() of a class without an __init__ of its own.
bool Recorder::make_instance(PyObject* live, const Arguments& arguments) {
  static PyObject* const kInit = interned("__init__");
  auto* type = reinterpret_cast<PyTypeObject*>(live);
  if (!kMethodsOfClasses || !PyType_Check(live) || !arguments.values.empty() || !dalsegno_makes_instances(type)) return false;
  const std::string path = sources_.by_name(live);
  if (path.empty() || type->tp_init != PyBaseObject_Type.tp_init) return false;
  replace_top(call_.pops, emit_attr(OpKind::make_instance, {}, {type, kInit, _PyType_Lookup(type, kInit)}, path));
  return true;
}

// Binary operators where one operand's method is asked first and the other has nothing to say, or is asked behind it: both are of one
// class, or one is a number, or the right one of any plain type (but what it repeats where nobody multiplies).
bool Recorder::operator_method(int nb) {
  const bool in_place = nb >= kInplaceFrom;
  const OperatorMethods& methods = kOperators[static_cast<size_t>(in_place ? nb - kInplaceFrom : nb)];
  PyObject *left = live_top(1), *right = live_top();
  if (!methods.left) return false;
  const auto asked = in_place ? methods.in_place : nullptr;
  const int action = packed_action(ReturnAction::kOperator, 2);
  if (has_methods_alone(left, asked)) {
    const PySequenceMethods* sequence = Py_TYPE(right)->tp_as_sequence;
    const bool repeats = sequence && sequence->sq_repeat && methods.in_place == &PyNumberMethods::nb_inplace_multiply;
    if (Py_TYPE(right) != Py_TYPE(left) && (repeats || !know(top(), right))) return false;
    return call_special(top(1), left, interned(methods.left), {{top(1), top()}, {left, right}}, action);
  }
  if (!is_number(left) || !has_methods_alone(right, nullptr) || !know(top(1), left)) return false;
  return call_special(top(), right, interned(methods.right), {{top(), top(1)}, {right, left}}, action);
}

bool Recorder::unary_method(UnaryOp op) {
  constexpr std::array kNames = {"__neg__", "__pos__", "__invert__"};
  PyObject* live = live_top();
  return call_special(top(), live, interned(kNames[static_cast<size_t>(op)]), {{top()}, {live}}, packed_action(ReturnAction::kPush, 1));
}

// abs(x): it stays, with the builtin, on the stack meanwhile.
bool Recorder::call_absolute(PyObject* live, const Arguments& arguments) {
  if (!live || builtin_name(live) != "abs" || arguments.names || arguments.values.size() != 1) return false;
  PyObject *of = PyCFunction_GET_SELF(live), *operand = arguments.live[0];
  if (!of || !PyModule_CheckExact(of) || std::strcmp(PyModule_GetName(of), "builtins") != 0) return false;
  if (!operand || !has_methods_alone(operand, nullptr)) return false;
  if (!call_special(arguments.values[0], operand, interned("__abs__"), arguments, 0)) return false;
  call_.action = packed_action(ReturnAction::kCalled, std::exchange(call_.pops, 0));
  return true;
}

// c[i] = v: all three stay on the stack, and what the method returns is dropped.
bool Recorder::set_item_method() {
  PyObject *value = live_top(2), *container = live_top(1), *index = live_top();
  return call_special(top(1), container, interned("__setitem__"), {{top(1), top(), top(2)}, {container, index, value}},
                      packed_action(ReturnAction::kDiscard, 3));
}

bool Recorder::compare_method(int operation) {
  PyObject *left = live_top(1), *right = live_top();
  if (!PyType_HasFeature(Py_TYPE(left), Py_TPFLAGS_HEAPTYPE)) return false;
  if (Py_TYPE(right) != Py_TYPE(left) && !know(top(), right)) return false;
  return call_special(top(1), left, interned(kComparisons[static_cast<size_t>(operation)]), {{top(1), top()}, {left, right}},
                      packed_action(ReturnAction::kCompare, 2));
}

// As the interpreter does it once it knows the class: the operands become the method's.
bool Recorder::item_method() {
  static PyObject* const kGetItem = interned("__getitem__");
  PyObject *container = live_top(1), *index = live_top();
  if (!PyType_HasFeature(Py_TYPE(container), Py_TPFLAGS_HEAPTYPE)) return false;
  if (!call_special(top(1), container, kGetItem, {{top(1), top()}, {container, index}}, packed_action(ReturnAction::kPush, 0)))
    return false;
  call_.pops = 2;
  return true;
}

// What makes C code do something else with the result leaves before it is returned.
bool Recorder::returns_what_is_asked() {
  if (shadows().size() < 2) return true;
  const auto action = what_of(shadows()[shadows().size() - 2].action);
  PyObject* result = live_top();
  if (action == ReturnAction::kInstance) {
    if (result != Py_None) return false;
    if (!is_constant(top())) emit(OpKind::guard_is, {top()}, {.object = object_index(Py_None, "const:None")});
  } else if (action == ReturnAction::kOperator || action == ReturnAction::kCompare) {
    if (result == Py_NotImplemented) return false;
    const bool certain = is_constant(top()) || info(top()).type || op(top()).kind == OpKind::make_instance;
    if (!certain) emit(OpKind::guard_is_not, {top()}, {.object = object_index(Py_NotImplemented, "const:NotImplemented")});
  }
  return true;
}

}  // namespace dalsegno::recorder
