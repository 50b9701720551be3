// NumPy's own Python code, which is recorded through, asks again and again for what a trace is certain of: ranks and dtypes of arrays that
// are guarded, defaults, its own constants. What follows from such values alone is computed while recording, and stands in the trace as a
// constant: nothing of it is done, or guarded, at replay. Only in NumPy's code, which asks no number or tuple for its identity.
#include <algorithm>
#include <utility>

#include "numpy/dtypes.h"
#include "trace/recorder/facts.h"
#include "trace/recorder/recorder.h"
#include "trace/recorder/sources.h"
#include "trace/recorder/text.h"

namespace dalsegno::recorder {
namespace {

constexpr Py_ssize_t kMostItems = 64;
constexpr int kMostDepth = 3;

bool is_class(PyObject* o) {
  return PyType_Check(o) && (Py_IS_TYPE(o, &PyType_Type) || PyType_IsSubtype(Py_TYPE(o), &PyArrayDTypeMeta_Type));
}

bool is_plain_dtype(PyObject* o) {
  DType ignored;
  return numpy::dtype_of_descr(o, &ignored);
}

}  // namespace

bool is_expressible(PyObject* o, int depth) {
  if (is_simple_type(Py_TYPE(o)) || is_class(o) || is_plain_dtype(o) || is_no_value(o)) return true;
  if (depth == kMostDepth) return false;
  if (PySlice_Check(o)) {
    auto* slice = reinterpret_cast<PySliceObject*>(o);
    return is_simple_type(Py_TYPE(slice->start)) && is_simple_type(Py_TYPE(slice->stop)) && is_simple_type(Py_TYPE(slice->step));
  }
  if (!PyTuple_CheckExact(o) || PyTuple_GET_SIZE(o) > kMostItems) return false;
  PyObject** items = reinterpret_cast<PyTupleObject*>(o)->ob_item;
  return std::all_of(items, items + PyTuple_GET_SIZE(o), [&](PyObject* item) { return is_expressible(item, depth + 1); });
}

namespace {

std::string path_of(PyObject* o) {
  if (PyType_Check(o)) return type_path(reinterpret_cast<PyTypeObject*>(o));
  return is_no_value(o) ? "module:numpy.attr(_NoValue)" : "";  // (others are kept as they are written)
}

// Of which there is one object, or which is told by its identity anyway.
bool is_one_of_its_kind(PyObject* o) {
  return o == Py_None || PyBool_Check(o) || is_no_value(o) || PyType_Check(o) || PyFunction_Check(o) || PyModule_Check(o);
}

// Functions that look at such values and do nothing else.
bool only_looks(PyObject* callee) {
  static const auto kNames =
      words("abs int float bool str len min max isinstance issubclass index normalize_axis_index result_type promote_types");
  if (callee == reinterpret_cast<PyObject*>(&PySlice_Type) || callee == reinterpret_cast<PyObject*>(&PyArrayDescr_Type)) return true;
  for (PyTypeObject* type : {&PyLong_Type, &PyFloat_Type, &PyBool_Type, &PyTuple_Type})
    if (callee == reinterpret_cast<PyObject*>(type)) return true;
  const bool builtin = PyCFunction_Check(callee) || callee_facts(callee).kind == CalleeKind::numpy_pure;
  if (!builtin) return false;
  const std::string_view name = builtin_name(callee);
  if (!name.empty()) return kNames.contains(std::string(name));
  PyObject* own = PyObject_GetAttrString(callee, "__name__");
  const bool known = own && utf8_of(own) && kNames.contains(utf8_of(own));
  Py_XDECREF(own);
  PyErr_Clear();
  return known;
}

PyObject* apply(BinaryOp op, PyObject* a, PyObject* b) {
  switch (op) {
    case BinaryOp::add:
      return PyNumber_Add(a, b);
    case BinaryOp::subtract:
      return PyNumber_Subtract(a, b);
    case BinaryOp::multiply:
      return PyNumber_Multiply(a, b);
    case BinaryOp::floor_divide:
      return PyNumber_FloorDivide(a, b);
    case BinaryOp::remainder:
      return PyNumber_Remainder(a, b);
    default:
      return nullptr;
  }
}

}  // namespace

// The object that a value is certain to be, borrowed; null: it is not.
PyObject* Recorder::certain(ValueId v) const {
  PyObject* object = v >= 0 ? info(v).object : nullptr;
  return object && is_expressible(object) ? object : nullptr;
}

// `made`: a new reference, or null, where it cannot be had. In the place of `count` operands.
bool Recorder::push_certain(PyObject* made, int count) {
  if (!made) return PyErr_Clear(), false;
  const bool known = is_expressible(made);
  if (known) {
    const ValueId v = constant(made, path_of(made));
    pop(count);
    push(v);
  }
  Py_DECREF(made);
  return known;
}

// ---- operators -------------------------------------------------------------------------------------------------------------

bool Recorder::compare_certain(int operation) {
  PyObject *left = certain(top(1)), *right = certain(top());
  return is_in_numpy() && left && right && push_certain(PyObject_RichCompare(left, right, operation), 2);
}

// A value that is known to be of one type is not what is of another.
bool Recorder::is_certain(bool negated) {
  if (!is_in_numpy()) return false;
  PyObject *left = info(top(1)).object, *right = info(top()).object;
  const auto differs = [&](PyObject* one, ValueId other) {
    return one && is_one_of_its_kind(one) && info(other).type && info(other).type != Py_TYPE(one);
  };
  const bool both = left && right && (is_one_of_its_kind(left) || is_one_of_its_kind(right));
  if (!both && !differs(left, top()) && !differs(right, top(1))) return false;
  return push_certain(PyBool_FromLong((both && left == right) != negated), 2);
}

bool Recorder::contains_certain(bool negated) {
  PyObject *item = certain(top(1)), *container = certain(top());
  if (!is_in_numpy() || !item || !container || PyArray_DescrCheck(container)) return false;
  const int found = PySequence_Contains(container, item);
  return push_certain(found < 0 ? nullptr : PyBool_FromLong((found != 0) != negated), 2);
}

bool Recorder::binary_certain(BinaryOp op) {
  if (!is_in_numpy()) return false;
  PyObject *left = certain(top(1)), *right = certain(top());
  if (!left || !right || PyType_Check(left) || PyArray_DescrCheck(left)) return false;
  if (op == BinaryOp::multiply && PyLong_Check(right) && PyLong_AsLong(right) > kMostItems) return PyErr_Clear(), false;
  return push_certain(apply(op, left, right), 2);
}

bool Recorder::unary_certain(UnaryOp op) {
  PyObject* object = certain(top());
  if (!is_in_numpy() || !object || op != UnaryOp::negative || !is_simple_type(Py_TYPE(object))) return false;
  return push_certain(PyNumber_Negative(object), 1);
}

bool Recorder::truth_certain(ValueId v, ValueId* truth) {
  PyObject* object = is_in_numpy() ? certain(v) : nullptr;
  if (!object || PyArray_DescrCheck(object)) return false;
  const int is = PyObject_IsTrue(object);
  if (is < 0) return PyErr_Clear(), false;
  *truth = constant(is ? Py_True : Py_False, "");
  return true;
}

bool Recorder::item_certain() {
  PyObject *container = certain(top(1)), *index = certain(top());
  if (!is_in_numpy() || !container || !index || !PyTuple_CheckExact(container)) return false;
  return push_certain(PyObject_GetItem(container, index), 2);
}

// A tuple or slice of such values.
bool Recorder::build_certain(PyTypeObject* type, int count) {
  if (!is_in_numpy()) return false;
  PyObject* parts = PyTuple_New(count);
  for (int k = 0; parts && k < count; ++k) {
    PyObject* part = certain(top(count - 1 - k));
    if (!part) return Py_DECREF(parts), false;
    PyTuple_SET_ITEM(parts, k, Py_NewRef(part));
  }
  if (type == &PyTuple_Type) return push_certain(parts, count);
  const bool made = parts && push_certain(PyObject_CallObject(reinterpret_cast<PyObject*>(type), parts), count);
  Py_XDECREF(parts);
  return PyErr_Clear(), made;
}

// ---- attributes ------------------------------------------------------------------------------------------------------------

bool Recorder::attr_certain(PyObject* name) {
  static const auto kOfDtypes = words("char fields itemsize kind name names num subdtype type");
  if (!is_in_numpy()) return false;
  PyObject *live = live_top(), *object = certain(top());
  const std::string text = text_of(name);
  if (object && PyArray_DescrCheck(object)) return kOfDtypes.contains(text) && push_certain(PyObject_GetAttr(object, name), 1);
  if (!numpy::is_exact_array(live) || !know_array(top(), live)) return false;
  PyObject* dtype = reinterpret_cast<PyObject*>(PyArray_DESCR(reinterpret_cast<PyArrayObject*>(live)));
  if (text == "real" && !is_complex(info(top()).facts.dtype)) return true;  // it is its own real part
  if (text == "ndim") return push_certain(PyLong_FromLong(info(top()).facts.rank), 1);
  return text == "dtype" && know_own_dtype(top(), live) && push_certain(Py_NewRef(dtype), 1);
}

// ---- calls -----------------------------------------------------------------------------------------------------------------

// The dtype that an array or a number of NumPy's is certain to have, borrowed from NumPy; or null.
PyObject* Recorder::dtype_of_operand(ValueId v, PyObject* live) {
  DType dtype;
  if (numpy::is_exact_array(live)) {
    PyObject* own = reinterpret_cast<PyObject*>(PyArray_DESCR(reinterpret_cast<PyArrayObject*>(live)));
    return know_own_dtype(v, live) ? own : nullptr;
  }
  if (!live || !numpy::scalar_dtype(Py_TYPE(live), &dtype) || !know(v, live)) return nullptr;
  return reinterpret_cast<PyObject*>(numpy::descriptor(dtype));
}

bool Recorder::call_certain(PyObject* live, const Arguments& arguments) {
  if (!is_in_numpy() || !live || !only_looks(live)) return false;
  const auto n = static_cast<Py_ssize_t>(arguments.positional());
  const std::string_view name = builtin_name(live);
  if (n == 0 || n > kMostItems) return false;
  const ValueId first = arguments.values[0];
  if (name == "len" && info(first).made) return push_certain(PyLong_FromSize_t(info(first).items.size()), call_.pops);
  const bool of_type = name == "isinstance" && n == 2 && info(first).type && arguments.live[0];
  PyObject* given = PyTuple_New(n);
  for (Py_ssize_t k = 0; given && k < n; ++k) {
    const ValueId v = arguments.values[static_cast<size_t>(k)];
    PyObject* one = k == 0 && of_type ? arguments.live[0] : certain(v);
    if (!one && name.empty()) one = dtype_of_operand(v, arguments.live[static_cast<size_t>(k)]);  // result_type(a, b) asks for no more
    if (!one) return Py_DECREF(given), false;
    PyTuple_SET_ITEM(given, k, Py_NewRef(one));
  }
  PyObject* named = arguments.names ? PyDict_New() : nullptr;
  for (size_t k = arguments.positional(); named && k < arguments.values.size(); ++k) {
    PyObject* one = certain(arguments.values[k]);
    const auto at = static_cast<Py_ssize_t>(k - arguments.positional());
    if (!one || PyDict_SetItem(named, PyTuple_GET_ITEM(arguments.names, at), one) < 0) Py_CLEAR(given);
    if (!given) break;
  }
  const bool done = given && push_certain(PyObject_Call(live, given, named), call_.pops);
  Py_XDECREF(given);
  Py_XDECREF(named);
  return PyErr_Clear(), done;
}

// getattr() of a method of an array's.
bool Recorder::attr_of_array(PyObject* live, const Arguments& arguments) {
  if (!is_in_numpy() || builtin_name(live) != "getattr" || arguments.values.size() < 2 || !numpy::is_exact_array(arguments.live[0]))
    return false;
  const ValueId array = arguments.values[0];
  PyObject* name = certain(arguments.values[1]);
  PyObject* found = name && PyUnicode_CheckExact(name) ? _PyType_Lookup(&PyArray_Type, name) : nullptr;
  if (!found || !know(array, arguments.live[0]) || !Py_IS_TYPE(found, &PyMethodDescr_Type) || !is_known_method(found)) return false;
  replace_top(call_.pops, array);
  return bound_attr(name, found, type_path(&PyArray_Type));
}

// issubdtype() of classes of scalars, and of dtypes for those.
bool Recorder::is_subdtype(PyObject* live, const Arguments& arguments) {
  static PyObject* const kFunction = PyDict_GetItemString(PyModule_GetDict(numpy::module()), "issubdtype");  // borrowed: NumPy keeps it
  if (!is_in_numpy() || live != kFunction || arguments.values.size() != 2) return false;
  const auto scalar_class = [this](ValueId v) -> PyTypeObject* {
    PyObject* object = certain(v);
    if (object && PyArray_DescrCheck(object)) return reinterpret_cast<PyArray_Descr*>(object)->typeobj;
    auto* type = object && PyType_Check(object) ? reinterpret_cast<PyTypeObject*>(object) : nullptr;
    return type && PyType_IsSubtype(type, &PyGenericArrType_Type) ? type : nullptr;
  };
  PyTypeObject *one = scalar_class(arguments.values[0]), *other = scalar_class(arguments.values[1]);
  return one && other && push_certain(PyBool_FromLong(PyType_IsSubtype(one, other)), call_.pops);
}

// asarray() of an array is that array, as is conj() of one of real numbers; tuple() of a list whose items are known, one of those.
bool Recorder::gives_argument(PyObject* live, const Arguments& arguments) {
  if (arguments.values.size() != 1 || !arguments.live[0]) return false;
  const ValueId given = arguments.values[0];
  static PyObject* const kConj = PyDict_GetItemString(PyArray_Type.tp_dict, "conj");  // borrowed; the type keeps it
  if (callee_facts(live).same_array || live == kConj) {
    if (!numpy::is_exact_array(arguments.live[0]) || !know(given, arguments.live[0])) return false;
    if (live == kConj && !(know_array(given, arguments.live[0]) && !is_complex(info(given).facts.dtype))) return false;
    replace_top(call_.pops, given);
    return true;
  }
  if (live != reinterpret_cast<PyObject*>(&PyTuple_Type) || !made(given, &PyList_Type)) return false;
  const std::vector<ValueId> items = info(given).items;
  for (const ValueId v : items) hold(v, +1);
  pop(call_.pops);
  for (const ValueId v : items) push(v), hold(v, -1);
  const int count = static_cast<int>(items.size());
  if (build_certain(&PyTuple_Type, count)) return true;
  const ValueId tuple = emit(OpKind::build_tuple, items, {.effects = kNoEffect, .snapshot = false});
  pop(count);
  push(tuple);
  set_type(tuple, &PyTuple_Type);
  made_of(tuple, items);
  return true;
}

// ---- lists whose items are known ---------------------------------------------------------------------------------------------

// [x] * n
void Recorder::repeat_made(ValueId list, ValueId repeated, PyObject* times) {
  const long n = times && PyLong_CheckExact(times) ? PyLong_AsLong(times) : -1;
  PyErr_Clear();
  const std::vector<ValueId>& items = info(list).items;
  if (!made(list, &PyList_Type) || n < 0 || n * static_cast<long>(items.size()) > kMostItems) return;
  std::vector<ValueId> all;
  for (long k = 0; k < n; ++k) all.insert(all.end(), items.begin(), items.end());
  set_type(repeated, &PyList_Type);
  made_of(repeated, std::move(all));
}

// What a list that is stored into holds then; empty: that is not known. (A container may be, or hold, the list.)
std::vector<ValueId> Recorder::items_with(ValueId list, PyObject* index, ValueId stored) const {
  std::vector<ValueId> items = made(list, &PyList_Type) && index && !info(stored).made ? info(list).items : std::vector<ValueId>();
  Py_ssize_t at = index && PyLong_CheckExact(index) ? PyLong_AsSsize_t(index) : PY_SSIZE_T_MAX;
  PyErr_Clear();
  if (at < 0) at += static_cast<Py_ssize_t>(items.size());
  if (at < 0 || at >= static_cast<Py_ssize_t>(items.size())) return {};
  items[static_cast<size_t>(at)] = stored;
  return items;
}

}  // namespace dalsegno::recorder
