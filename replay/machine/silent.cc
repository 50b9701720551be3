// Which ops that might run code of the user's run none on the operands they have now, warn of nothing, and drop nothing that does: lists
// and tuples of numbers and texts, and what C code of the interpreter's does with them. No frames are shown for these.
#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "hook/audits.h"
#include "hook/hook.h"
#include "hook/lookups.h"
#include "numpy/dtypes.h"
#include "replay/machine/run.h"
#include "replay/machine/silent_classes.h"
#include "replay/machine/silent_numpy.h"
#include "replay/machine/silent_tables.h"
#include "trace/fault.h"
#include "trace/recorder/facts.h"

namespace dalsegno::replay {
namespace {

constexpr Py_ssize_t kMostLooks = 64;  // at items: showing frames costs as much
constexpr int kDeepestTuple = 2;

bool is_array_of_items(PyObject* o) { return PyList_CheckExact(o) || PyTuple_CheckExact(o); }

PyObject** items_of(PyObject* o) {
  return PyList_CheckExact(o) ? reinterpret_cast<PyListObject*>(o)->ob_item : reinterpret_cast<PyTupleObject*>(o)->ob_item;
}

using IsPlain = bool (*)(PyObject*);

// Items from..to, all of them.
template <IsPlain is_plain>
bool all_items(PyObject* sequence, Py_ssize_t from, Py_ssize_t to) {
  PyObject** items = items_of(sequence);
  return std::all_of(items + from, items + to, [](PyObject* item) { return is_plain(item); });
}

template <IsPlain is_plain>
bool all_items(PyObject* sequence) {
  return is_array_of_items(sequence) && Py_SIZE(sequence) <= kMostLooks && all_items<is_plain>(sequence, 0, Py_SIZE(sequence));
}

// The same of tuples of such: what has an order.
bool has_plain_order(PyObject* o, int depth) {
  if (is_leaf_object(o)) return true;
  if (!PyTuple_CheckExact(o) || depth == kDeepestTuple) return false;
  PyObject** items = items_of(o);
  return std::all_of(items, items + Py_SIZE(o), [&](PyObject* item) { return has_plain_order(item, depth + 1); });
}
bool is_ordered(PyObject* o) { return has_plain_order(o, 0); }

bool is_position(PyObject* o) { return PyLong_CheckExact(o) || is_plain_slice(o); }

// Nothing that the list drops at a position runs code when it dies.
bool drops_leaves(PyObject* list, PyObject* position) {
  Py_ssize_t start, stop, step;
  if (PyLong_CheckExact(position)) {
    start = PyLong_AsSsize_t(position);
    if (start == -1 && PyErr_Occurred()) return PyErr_Clear(), false;
    if (start < 0) start += Py_SIZE(list);
    return start < 0 || start >= Py_SIZE(list) || drops_quietly(PyList_GET_ITEM(list, start));
  }
  if (PySlice_Unpack(position, &start, &stop, &step) < 0) return PyErr_Clear(), false;
  const Py_ssize_t n = PySlice_AdjustIndices(Py_SIZE(list), &start, &stop, step);
  if (n == 0) return true;
  const Py_ssize_t last = start + (n - 1) * step, from = std::min(start, last), to = std::max(start, last) + 1;
  return to - from <= kMostLooks && all_items<is_leaf_object>(list, from, to);
}

// The list that list.__reversed__()'s iterator goes through: not dropped, or with nothing that runs code.
int keeps_leaves(PyObject* list, void*) { return Py_REFCNT(list) == 1 && !all_items<is_leaf_object>(list); }

// Whose items C code takes without running any other.
bool gives_items(PyObject* o) {
  if (is_array_of_items(o) || PyRange_Check(o) || PyUnicode_CheckExact(o) || Py_IS_TYPE(o, &PyRangeIter_Type) || is_number_array(o))
    return true;
  return Py_IS_TYPE(o, &PyListRevIter_Type) && PyListRevIter_Type.tp_traverse(o, keeps_leaves, nullptr) == 0;
}

// == of two such is C code.
bool is_compared_in_c(PyObject* o) { return is_leaf_object(o) || compares_by_identity(o); }

// `x` is looked for from the first item on, by identity and then by ==.
bool is_found(PyObject* sequence, PyObject* x) {
  if (!is_array_of_items(sequence) || !is_compared_in_c(x)) return false;
  PyObject** items = items_of(sequence);
  const Py_ssize_t n = std::min(Py_SIZE(sequence), kMostLooks);
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (items[i] == x) return true;
    if (!is_compared_in_c(items[i])) return false;
  }
  return n == Py_SIZE(sequence);
}

bool is_deque(PyObject* o) { return recorder::is_deque_type(Py_TYPE(o)); }

// ---- kinds of ops ------------------------------------------------------------------------------------------------------------------

PyObject* first(const Step& s, const Reg* r) { return r[s.a].o; }
PyObject* second(const Step& s, const Reg* r) { return r[s.b].o; }

bool are_values(PyObject* a, PyObject* b) {
  return (is_value_in_c(a) && (is_number_object(b) || is_value_in_c(b))) || (is_number_object(a) && is_value_in_c(b));
}

bool joins(const Step& s, const Reg* r) {
  PyObject *a = first(s, r), *b = second(s, r);
  const auto op = static_cast<BinaryOp>(s.imm);
  if (are_values(a, b)) return true;
  if (PyAnySet_Check(a)) return joins_sets(op) && are_sets(a, b);
  if (computes_complex(a, b, op)) return true;
  if (op == BinaryOp::add) return is_array_of_items(a) && Py_IS_TYPE(b, Py_TYPE(a));
  return op == BinaryOp::multiply && ((is_array_of_items(a) && PyLong_CheckExact(b)) || (is_array_of_items(b) && PyLong_CheckExact(a)));
}

// (A list repeated in place drops what it held where the factor is less than one.)
bool joins_in_place(const Step& s, const Reg* r) {
  PyObject *a = first(s, r), *b = second(s, r);
  if (PyList_CheckExact(a)) return static_cast<BinaryOp>(s.imm) == BinaryOp::add && gives_items(b);
  if (PyAnySet_Check(a) && !dalsegno_holds_plain_keys(a, kMostKeys)) return false;
  return (PyTuple_CheckExact(a) || PyAnySet_Check(a) || PyComplex_Check(a) || is_value_in_c(a) || is_value_in_c(b)) && joins(s, r);
}

bool compares(const Step& s, const Reg* r) {
  PyObject *a = first(s, r), *b = second(s, r);
  if ((compares_by_identity(a) && is_compared_in_c(b)) || (is_leaf_object(a) && compares_by_identity(b)))
    return s.imm == Py_EQ || s.imm == Py_NE;
  if (are_values(a, b) || are_sets(a, b)) return true;
  return Py_IS_TYPE(b, Py_TYPE(a)) && all_items<is_leaf_object>(a) && all_items<is_leaf_object>(b);
}

bool contains(const Step& s, const Reg* r) {
  PyObject *in = second(s, r), *held;
  if (PyDict_Check(in)) return does_as_dicts(in, Does::kContains) && dalsegno_find_in(in, first(s, r), &held) >= 0;
  return is_found(in, first(s, r));
}
bool has_known_length(PyObject* o) {
  return is_array_of_items(o) || is_deque(o) || PyAnySet_CheckExact(o) || (PyDict_Check(o) && does_as_dicts(o, Does::kLength));
}
bool asks_truth(const Step& s, const Reg* r) {
  PyObject* o = first(s, r);
  return (has_known_length(o) && !PyDict_Check(o)) || is_always_true(o) || is_value_in_c(o);
}
bool of_value(const Step& s, const Reg* r) { return is_value_in_c(first(s, r)); }
bool iterates(const Step& s, const Reg* r) { return inherits_iterator(first(s, r)); }

bool gets_item(const Step& s, const Reg* r) {
  PyObject *o = first(s, r), *key = second(s, r);
  if (is_array_of_items(o) || PyUnicode_CheckExact(o)) return is_position(key);
  if (PyDict_Check(o)) return gets_from_dict(o, key);
  if (inherits_items(o)) return is_position(key);
  return (is_deque(o) && PyLong_CheckExact(key)) || gives_part(o, key);
}

bool deletes_item(const Step& s, const Reg* r) {
  PyObject *o = first(s, r), *key = second(s, r);
  if (PyDict_Check(o)) return does_as_dicts(o, Does::kDelete) && replaces_quietly(o, key);
  return PyList_CheckExact(o) && is_position(key) && drops_leaves(o, key);
}

bool sets_item(const Step& s, const Reg* r) {
  if (PyObject* o = first(s, r); PyDict_Check(o)) return does_as_dicts(o, Does::kSet) && replaces_quietly(o, second(s, r));
  if (takes_part(first(s, r), second(s, r), r[s.c].o)) return true;
  if (!deletes_item(s, r)) return false;
  return PyLong_CheckExact(second(s, r)) || gives_items(r[s.c].o);
}

// ---- calls: list[0] is what is called, behind it its arguments ----------------------------------------------------------------------

PyObject* argument(const Step& s, const Reg* r, int32_t i) { return r[s.list[i + 1]].o; }
bool takes(const Step& s, int32_t n) { return s.n == n + 1 && !s.object; }

bool is_list_call(const Step& s, const Reg* r, int32_t n) { return takes(s, n) && PyList_CheckExact(argument(s, r, 0)); }

bool extends(const Step& s, const Reg* r) { return is_list_call(s, r, 2) && gives_items(argument(s, r, 1)); }
bool finds(const Step& s, const Reg* r) { return is_list_call(s, r, 2) && is_found(argument(s, r, 0), argument(s, r, 1)); }
bool counts(const Step& s, const Reg* r) {
  return is_list_call(s, r, 2) && is_leaf_object(argument(s, r, 1)) && all_items<is_leaf_object>(argument(s, r, 0));
}
bool clears(const Step& s, const Reg* r) { return is_list_call(s, r, 1) && all_items<is_leaf_object>(argument(s, r, 0)); }

// sort(), sorted(), with reverse=... or not. (A key would be a function.)
bool sorts(const Step& s, const Reg* r) {
  for (int32_t i = 1; i + 1 < s.n; ++i)
    if (!is_leaf_object(argument(s, r, i))) return false;
  return s.n > 1 && all_items<is_ordered>(argument(s, r, 0));
}

bool takes_items(const Step& s, const Reg* r) { return takes(s, 1) && gives_items(argument(s, r, 0)); }
bool adds(const Step& s, const Reg* r) { return takes(s, 1) && all_items<is_number_object>(argument(s, r, 0)); }
bool finds_extreme(const Step& s, const Reg* r) {
  return takes(s, 1) && (all_items<is_ordered>(argument(s, r, 0)) || dalsegno_holds_plain_keys(argument(s, r, 0), kMostKeys));
}
bool asks_all(const Step& s, const Reg* r) { return takes(s, 1) && all_items<is_leaf_object>(argument(s, r, 0)); }
bool measures(const Step& s, const Reg* r) {
  return takes(s, 1) && (has_known_length(argument(s, r, 0)) || inherits_length(argument(s, r, 0)));
}
bool is_called_back(const Step& s, const Reg* r) {
  return takes(s, 1) && (is_array_of_items(argument(s, r, 0)) || PyRange_Check(argument(s, r, 0)));
}

// Lists, and what is derived from them.
bool appends(const Step& s, const Reg* r) { return takes(s, 2) && PyList_Check(argument(s, r, 0)); }
bool inserts(const Step& s, const Reg* r) { return takes(s, 3) && PyList_Check(argument(s, r, 0)) && PyLong_CheckExact(argument(s, r, 1)); }
bool pops(const Step& s, const Reg* r) {
  return s.n > 1 && !s.object && PyList_Check(argument(s, r, 0)) && (s.n == 2 || (s.n == 3 && PyLong_CheckExact(argument(s, r, 1))));
}

bool takes_one(const Step& s, const Reg*) { return takes(s, 1); }
bool identifies(const Step& s, const Reg*) { return takes(s, 1) && !dalsegno_is_audited(); }
bool makes_super_of(const Step& s, const Reg* r) { return takes(s, 2) && makes_super(argument(s, r, 0), argument(s, r, 1)); }
bool makes_instance(const Step& s, const Reg* r) {
  return takes(s, 0) && makes_bare_instances(reinterpret_cast<PyTypeObject*>(r[s.list[0]].o));
}
// Of numbers, texts, None and others of such types.
bool has_values(const Step& s, const Reg* r) {
  for (int32_t i = 0; i + 1 < s.n; ++i)
    if (PyObject* o = argument(s, r, i); !is_leaf_object(o) && !is_value_in_c(o)) return false;
  return true;
}

// A class that leaves to type what its instances are, or a tuple of such.
bool is_plain_class(PyObject* o) {
  if (!PyTuple_CheckExact(o)) return Py_IS_TYPE(o, &PyType_Type);
  PyObject** classes = items_of(o);
  return std::all_of(classes, classes + Py_SIZE(o), [](PyObject* one) { return Py_IS_TYPE(one, &PyType_Type); });
}

// Of an instance that says of itself what every object does.
bool tests_class(const Step& s, const Reg* r) {
  static PyObject* const kClass = PyUnicode_InternFromString("__class__");
  if (!takes(s, 2) || !is_plain_class(argument(s, r, 1))) return false;
  PyTypeObject* type = Py_TYPE(argument(s, r, 0));
  return type->tp_getattro == PyObject_GenericGetAttr && _PyType_Lookup(type, kClass) == _PyType_Lookup(&PyBaseObject_Type, kClass);
}

bool tests_subclass(const Step& s, const Reg* r) {
  return takes(s, 2) && PyType_Check(argument(s, r, 0)) && is_plain_class(argument(s, r, 1));
}

// Not at its end, where it lets go of what it goes through.
bool gives_next(const Step& s, const Reg* r) {
  PyObject* it = s.n > 1 && !s.object ? argument(s, r, 0) : nullptr;
  return it && hook::quiet_iterator(it) && advances_quietly(it) && ends_quietly(it);
}

// As every dict does it.
bool looks_up(const Step& s, const Reg* r) {
  PyObject* held;
  return !s.object && s.n > 2 && PyDict_Check(argument(s, r, 0)) && dalsegno_find_in(argument(s, r, 0), argument(s, r, 1), &held) >= 0;
}
// (Of a class derived from it they call its methods.)
bool is_ordered_dict(const Step& s, const Reg* r) { return s.n > 1 && PyODict_CheckExact(argument(s, r, 0)); }
bool moves(const Step& s, const Reg* r) {
  PyObject* held;
  return is_ordered_dict(s, r) && s.n > 2 && dalsegno_find_in(argument(s, r, 0), argument(s, r, 1), &held) == 1 &&
         (s.n == 3 || (s.n == 4 && is_leaf_object(argument(s, r, 2))));
}
bool takes_last(const Step& s, const Reg* r) {
  return is_ordered_dict(s, r) && (s.n == 2 || (s.n == 3 && is_leaf_object(argument(s, r, 1))));
}

// One at its other end may be dropped.
template <Py_ssize_t end>
bool appends_to_deque(const Step& s, const Reg* r) {
  if (!takes(s, 2) || !is_deque(argument(s, r, 0))) return false;
  PyObject* deque = argument(s, r, 0);
  const Py_ssize_t n = PyObject_Size(deque);
  if (n == 0) return true;
  PyObject* dropped = PySequence_GetItem(deque, end == 0 ? 0 : n - 1);
  if (!dropped) return PyErr_Clear(), false;
  const bool quietly = is_leaf_object(dropped) || Py_REFCNT(dropped) > 2;
  Py_DECREF(dropped);
  return quietly;
}
bool rotates(const Step& s, const Reg* r) {
  return s.n <= 3 && !s.object && is_deque(argument(s, r, 0)) && (s.n == 2 || PyLong_CheckExact(argument(s, r, 1)));
}

// int.__add__ and its like: what operators of numbers are in C. And object.__init__(), bound, without arguments.
bool calls_operator(const Step& s, const Reg* r) {
  PyObject* callee = r[s.list[0]].o;
  if (s.n == 1 && is_bare_init(callee)) return true;
  if (!Py_IS_TYPE(callee, &PyWrapperDescr_Type) || s.object) return false;
  PyTypeObject* of = PyDescr_TYPE(callee);
  if (of != &PyLong_Type && of != &PyFloat_Type && of != &PyComplex_Type && of != &PyBool_Type) return false;
  for (int32_t i = 0; i + 1 < s.n; ++i)
    if (PyObject* o = argument(s, r, i); !is_number_object(o) && !PyComplex_CheckExact(o)) return false;
  return true;
}

// ---- NumPy's (silent_numpy.h)

bool takes_absolute(const Step& s, const Reg* r) { return takes(s, 1) && has_absolute(argument(s, r, 0)); }
bool gives_object(const Step& s, const Reg* r) { return takes(s, 1) && numpy::is_number_type(Py_TYPE(argument(s, r, 0))); }
bool of_numbers(const Step& s, const Reg* r) { return takes(s, 1) && is_number_array(argument(s, r, 0)); }
bool sorts_numbers(const Step& s, const Reg* r) { return takes(s, 1) && takes_numbers(argument(s, r, 0)); }
// An array, and from there on axes, a shape, an order: ints, None, texts, or tuples of such. (For bools NumPy has words.)
bool has_array_and_axes(const Step& s, const Reg* r, int32_t from) {
  if (s.n < from + 1 || !is_number_array(argument(s, r, 0))) return false;
  for (int32_t i = from; i + 1 < s.n; ++i)
    if (!is_axes(argument(s, r, i))) return false;
  return true;
}
bool rearranges(const Step& s, const Reg* r) { return has_array_and_axes(s, r, 1); }
bool holds_ints(PyObject* o) { return is_number_array(o) && PyTypeNum_ISINTEGER(type_of_numbers(o)); }
// Behind the array positions in it. (What `out` holds may be cast, with a warning.)
bool takes_at(const Step& s, const Reg* r) {
  return has_array_and_axes(s, r, 2) && (PyLong_CheckExact(argument(s, r, 1)) || holds_ints(argument(s, r, 1)));
}
// Of ints, weighed by doubles or not.
bool counts_numbers(const Step& s, const Reg* r) {
  if (s.n < 2 || !holds_ints(argument(s, r, 0))) return false;
  for (int32_t i = 1; i + 1 < s.n; ++i)
    if (PyObject* o = argument(s, r, i); !PyLong_CheckExact(o) && !(is_number_array(o) && type_of_numbers(o) == NPY_DOUBLE)) return false;
  return true;
}
// (Those of floats warn as arithmetic does.)
bool multiplies_ints(const Step& s, const Reg* r) { return takes(s, 2) && holds_ints(argument(s, r, 0)) && holds_ints(argument(s, r, 1)); }
// Of two arrays, as they are: a cast may warn.
bool chooses(const Step& s, const Reg* r) {
  if (s.n < 2 || s.object || !is_number_array(argument(s, r, 0))) return false;
  if (s.n == 2) return true;
  PyObject* a = s.n == 4 ? argument(s, r, 1) : nullptr;
  PyObject* b = s.n == 4 ? argument(s, r, 2) : nullptr;
  return a && is_number_array(a) && is_number_array(b) && type_of_numbers(a) == type_of_numbers(b);
}
bool fills(const Step& s, const Reg* r) { return takes(s, 2) && takes_fill(argument(s, r, 0), argument(s, r, 1)); }

struct Row {
  const char *type, *name;  // type: "" for builtins
  Plain silent;
};
constexpr Row kCalls[] = {
    {"list", "extend", extends},
    {"list", "index", finds},
    {"list", "remove", finds},
    {"list", "count", counts},
    {"list", "clear", clears},
    {"list", "sort", sorts},
    {"list", "append", appends},
    {"list", "insert", inserts},
    {"list", "pop", pops},
    {"", "sorted", sorts},
    {"", "list", takes_items},
    {"", "tuple", takes_items},
    {"", "sum", adds},
    {"", "max", finds_extreme},
    {"", "min", finds_extreme},
    {"", "any", asks_all},
    {"", "all", asks_all},
    {"", "len", measures},
    {"", "isinstance", tests_class},
    {"", "issubclass", tests_subclass},
    {"", "id", identifies},
    {"", "type", takes_one},
    {"", "super", makes_super_of},
    {"", "reversed", is_called_back},
    {"", "next", gives_next},
    {"", "abs", takes_absolute},
    {"numpy.generic", "item", gives_object},
    {"numpy.ndarray", "tolist", of_numbers},
    {"numpy.ndarray", "sort", sorts_numbers},
    {"numpy.ndarray", "fill", fills},
    {"numpy.ndarray", "argmax", rearranges},
    {"numpy.ndarray", "argmin", rearranges},
    {"numpy.ndarray", "argsort", rearranges},
    {"numpy.ndarray", "copy", rearranges},
    {"numpy.ndarray", "diagonal", rearranges},
    {"numpy.ndarray", "flatten", rearranges},
    {"numpy.ndarray", "nonzero", rearranges},
    {"numpy.ndarray", "ravel", rearranges},
    {"numpy.ndarray", "repeat", rearranges},
    {"numpy.ndarray", "reshape", rearranges},
    {"numpy.ndarray", "squeeze", rearranges},
    {"numpy.ndarray", "swapaxes", rearranges},
    {"numpy.ndarray", "transpose", rearranges},
    {"numpy.ndarray", "dot", multiplies_ints},
    {"numpy.ndarray", "take", takes_at},
    {"numpy", "bincount", counts_numbers},
    {"numpy", "dot", multiplies_ints},
    {"numpy", "inner", multiplies_ints},
    {"numpy", "vdot", multiplies_ints},
    {"numpy", "where", chooses},
    {"dict", "get", looks_up},
    {"dict", "setdefault", looks_up},
    {"collections.OrderedDict", "get", looks_up},
    {"collections.OrderedDict", "move_to_end", moves},
    {"collections.OrderedDict", "popitem", takes_last},
    {"collections.deque", "append", appends_to_deque<0>},
    {"collections.deque", "appendleft", appends_to_deque<-1>},
    {"collections.deque", "rotate", rotates},
    {"decimal.Decimal", "compare", has_values},
    {"decimal.Decimal", "copy_abs", has_values},
    {"decimal.Decimal", "is_nan", has_values},
    {"decimal.Decimal", "is_zero", has_values},
    {"decimal.Decimal", "quantize", has_values},
    {"decimal.Decimal", "sqrt", has_values},
    {"datetime.timedelta", "total_seconds", has_values},
};

bool has_rows(PyTypeObject* type) { return type == &PyArray_Type || type == &PyGenericArrType_Type || recorder::is_type_in_c(type); }

// What NumPy's dispatcher calls of its own; null: that is no function in C.
const char* function_in_c(PyObject* callee) {
  if (std::string_view(Py_TYPE(callee)->tp_name) != "numpy._ArrayFunctionDispatcher") return nullptr;
  PyObject* does = PyObject_GetAttrString(callee, "_implementation");
  const char* name = does && PyCFunction_CheckExact(does) ? reinterpret_cast<PyCFunctionObject*>(does)->m_ml->ml_name : nullptr;
  Py_XDECREF(does);  // its dispatcher has it
  if (!does) PyErr_Clear();
  return name;
}

// Of a callee in C: "" and a builtin's name, "numpy" and a function's of its, or its type's and its own.
Plain call_of(PyObject* callee) {
  std::string_view type, name;
  if (PyType_Check(callee)) {
    auto* made = reinterpret_cast<PyTypeObject*>(callee);
    if (recorder::is_value_type_in_c(made)) return has_values;
    if (PyType_HasFeature(made, Py_TPFLAGS_HEAPTYPE)) return makes_instance;
    name = made->tp_name;
  } else if (Py_IS_TYPE(callee, &PyMethodDescr_Type) && has_rows(PyDescr_TYPE(callee))) {
    type = PyDescr_TYPE(callee)->tp_name;
    name = reinterpret_cast<PyMethodDescrObject*>(callee)->d_method->ml_name;
  } else if (const char* function = function_in_c(callee)) {
    type = "numpy", name = function;
  } else if (PyCFunction_CheckExact(callee) && recorder::is_builtin_in_c(callee)) {
    name = reinterpret_cast<PyCFunctionObject*>(callee)->m_ml->ml_name;
  }
  for (const Row& row : kCalls)
    if (row.type == type && row.name == name) return row.silent;
  return nullptr;
}

}  // namespace

Plain silent_of(OpKind kind, PyObject* callee) {
  switch (kind) {
    case OpKind::binary:
      return joins;
    case OpKind::inplace:
      return joins_in_place;
    case OpKind::compare:
      return compares;
    case OpKind::unary:
      return of_value;
    case OpKind::contains:
      return contains;
    case OpKind::get_iter:
      return iterates;
    case OpKind::truth:
    case OpKind::not_:
      return asks_truth;
    case OpKind::get_attr:
      return gets_attribute;
    case OpKind::get_item:
      return gets_item;
    case OpKind::set_item:
      return sets_item;
    case OpKind::del_item:
      return deletes_item;
    case OpKind::call:
      return callee ? call_of(callee) : calls_operator;
    default:
      return nullptr;
  }
}

bool exec_silent(const Step& s, Reg* r, Machine& m) {
  const Py_ssize_t before = hook::collections(m.collections);
  const bool ok = s.exec(s, r);
  if (hook::collections(m.collections) != before) {  // finalisers may have run
    m.dirty = m.unsettled = true;
    ++m.code_run;
  }
  return ok;
}

}  // namespace dalsegno::replay
