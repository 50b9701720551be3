// Python ops on boxed operands, each as the interpreter does it: one row a kind in the table at the end.
#include "hook/generators.h"
#include "numpy/api.h"
#include "replay/machine/exec.h"
#include "trace/kind_table.h"

namespace dalsegno::replay {
namespace {

#define A r[s.a].o
#define B r[s.b].o
#define C r[s.c].o

PyObject* power(PyObject* a, PyObject* b) { return PyNumber_Power(a, b, Py_None); }
PyObject* inplace_power(PyObject* a, PyObject* b) { return PyNumber_InPlacePower(a, b, Py_None); }
constexpr BinaryFn kBinary[] = {PyNumber_Add,      PyNumber_And,        PyNumber_FloorDivide, PyNumber_Lshift, PyNumber_MatrixMultiply,
                                PyNumber_Multiply, PyNumber_Remainder,  PyNumber_Or,          power,           PyNumber_Rshift,
                                PyNumber_Subtract, PyNumber_TrueDivide, PyNumber_Xor};
constexpr BinaryFn kInplace[] = {PyNumber_InPlaceAdd,
                                 PyNumber_InPlaceAnd,
                                 PyNumber_InPlaceFloorDivide,
                                 PyNumber_InPlaceLshift,
                                 PyNumber_InPlaceMatrixMultiply,
                                 PyNumber_InPlaceMultiply,
                                 PyNumber_InPlaceRemainder,
                                 PyNumber_InPlaceOr,
                                 inplace_power,
                                 PyNumber_InPlaceRshift,
                                 PyNumber_InPlaceSubtract,
                                 PyNumber_InPlaceTrueDivide,
                                 PyNumber_InPlaceXor};
using UnaryFn = PyObject* (*)(PyObject*);
PyObject* rint_of(PyObject* array) {
  static PyObject* const kRint = PyDict_GetItemString(PyModule_GetDict(numpy::module()), "rint");  // borrowed: NumPy keeps it
  return PyObject_CallOneArg(kRint, array);
}

constexpr UnaryFn kUnary[] = {PyNumber_Negative, PyNumber_Positive, PyNumber_Invert, rint_of};
constexpr UnaryFn kConvert[] = {nullptr, PyObject_Str, PyObject_Repr, PyObject_ASCII};

// -- names
bool load_global(const Step& s, Reg* r) {
  PyObject* v = PyDict_GetItemWithError(s.object, s.name);
  if (!v && !PyErr_Occurred()) v = PyDict_GetItemWithError(s.object2, s.name);
  return give(s, r, Py_XNewRef(v));
}
bool store_global(const Step& s, Reg* r) { return PyDict_SetItem(s.object, s.name, A) == 0; }
bool delete_global(const Step& s, Reg*) {
  if (PyDict_DelItem(s.object, s.name) == 0) return true;
  if (PyErr_ExceptionMatches(PyExc_KeyError)) PyErr_Clear();
  return false;
}
bool func_closure(const Step& s, Reg* r) {
  PyObject* cells = PyFunction_GET_CLOSURE(A);
  return cells && s.imm < PyTuple_GET_SIZE(cells) && give(s, r, Py_NewRef(PyTuple_GET_ITEM(cells, s.imm)));
}
bool func_default(const Step& s, Reg* r) {
  PyObject* defaults = PyFunction_GET_DEFAULTS(A);
  return defaults && s.imm < PyTuple_GET_SIZE(defaults) && give(s, r, Py_NewRef(PyTuple_GET_ITEM(defaults, s.imm)));
}
bool func_kwdefault(const Step& s, Reg* r) {
  PyObject* defaults = PyFunction_GET_KW_DEFAULTS(A);
  return defaults && give(s, r, Py_XNewRef(PyDict_GetItemWithError(defaults, s.name)));
}
bool cell_new(const Step& s, Reg* r) { return give(s, r, PyCell_New(s.n ? r[s.list[0]].o : nullptr)); }
bool cell_get(const Step& s, Reg* r) { return PyCell_Check(A) && give(s, r, Py_XNewRef(PyCell_GET(A))); }
bool cell_set(const Step& s, Reg* r) { return PyCell_Check(A) && PyCell_Set(A, B) == 0; }
bool cell_delete(const Step& s, Reg* r) { return PyCell_Check(A) && PyCell_GET(A) && PyCell_Set(A, nullptr) == 0; }

// -- attributes and items
bool get_attr(const Step& s, Reg* r) { return give(s, r, PyObject_GetAttr(A, s.name)); }
bool load_special(const Step& s, Reg* r) {  // _PyObject_LookupSpecial
  PyTypeObject* type = Py_TYPE(A);
  PyObject* found = _PyType_Lookup(type, s.name);
  if (!found) return false;
  descrgetfunc bind = Py_TYPE(found)->tp_descr_get;
  Py_INCREF(found);
  if (!bind) return give(s, r, found);
  PyObject* bound = bind(found, A, reinterpret_cast<PyObject*>(type));
  Py_DECREF(found);
  return give(s, r, bound);
}
bool super_attr(const Step& s, Reg* r) {
  PyObject* bases = PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(&PySuper_Type), A, B, nullptr);
  if (!bases) return false;
  PyObject* found = PyObject_GetAttr(bases, s.name);
  Py_DECREF(bases);
  return give(s, r, found);
}
bool set_attr(const Step& s, Reg* r) { return PyObject_SetAttr(A, s.name, B) == 0; }
bool del_attr(const Step& s, Reg* r) { return PyObject_SetAttr(A, s.name, nullptr) == 0; }
bool get_item(const Step& s, Reg* r) { return give(s, r, PyObject_GetItem(A, B)); }
bool set_item(const Step& s, Reg* r) { return PyObject_SetItem(A, B, C) == 0; }
bool del_item(const Step& s, Reg* r) { return PyObject_DelItem(A, B) == 0; }

// -- operators
bool binary(const Step& s, Reg* r) { return give(s, r, kBinary[s.imm](A, B)); }
bool inplace(const Step& s, Reg* r) { return give(s, r, kInplace[s.imm](A, B)); }
bool unary(const Step& s, Reg* r) { return give(s, r, kUnary[s.imm](A)); }
bool compare(const Step& s, Reg* r) { return give(s, r, PyObject_RichCompare(A, B, s.imm)); }

// Truth values are born unboxed.
bool raw(const Step& s, Reg* r, int truth, bool invert) {
  r[s.dst].i = invert ? !truth : truth;
  return truth >= 0;
}
bool contains(const Step& s, Reg* r) { return raw(s, r, PySequence_Contains(B, A), s.imm != 0); }
bool is_(const Step& s, Reg* r) { return raw(s, r, A == B, s.imm != 0); }
bool truth(const Step& s, Reg* r) { return raw(s, r, PyObject_IsTrue(A), false); }
bool not_(const Step& s, Reg* r) { return raw(s, r, PyObject_IsTrue(A), true); }
bool get_len(const Step& s, Reg* r) {
  r[s.dst].i = s.imm == 0 ? PyObject_Size(A) : PyArray_DIM(reinterpret_cast<PyArrayObject*>(A), s.imm);
  return r[s.dst].i >= 0;
}

// -- calls
bool is_python(PyObject* callable) { return PyFunction_Check(callable); }
bool is_python_method(PyObject* callable) { return PyMethod_Check(callable) && is_python(PyMethod_GET_FUNCTION(callable)); }

bool call(const Step& s, Reg* r) {
  Args args(s, r);
  const hook::UncountedEvaluator uncounted(is_python(args[0]) || is_python_method(args[0]));
  size_t nargs = static_cast<size_t>(s.imm) | PY_VECTORCALL_ARGUMENTS_OFFSET;
  return give(s, r, PyObject_Vectorcall(args[0], args.data() + 1, nargs, s.object));
}
// CALL_FUNCTION_EX words its own messages for arguments that are not iterable or no mapping: those leave before the instruction.
bool call_ex(const Step& s, Reg* r) {
  PyObject* func = r[s.list[0]].o;
  PyObject* positional = r[s.list[1]].o;
  PyObject* keywords = s.n > 2 ? r[s.list[2]].o : nullptr;
  if (keywords && !PyDict_CheckExact(keywords)) return false;
  const hook::UncountedEvaluator uncounted(is_python(func));
  if (PyTuple_CheckExact(positional)) return give(s, r, PyObject_Call(func, positional, keywords));
  if (!Py_TYPE(positional)->tp_iter && !PySequence_Check(positional)) return false;
  PyObject* tuple = PySequence_Tuple(positional);
  if (!tuple) return false;
  PyObject* v = PyObject_Call(func, tuple, keywords);
  Py_DECREF(tuple);
  return give(s, r, v);
}
bool method_func(const Step& s, Reg* r) { return PyMethod_Check(A) && give(s, r, Py_NewRef(PyMethod_GET_FUNCTION(A))); }
bool method_self(const Step& s, Reg* r) {
  PyObject* self = PyMethod_Check(A) ? PyMethod_GET_SELF(A) : PyCFunction_CheckExact(A) ? PyCFunction_GET_SELF(A) : nullptr;
  return give(s, r, Py_XNewRef(self));
}

bool bind_method(const Step& s, Reg* r) { return give(s, r, bound_method(A, B)); }

bool jitted_func(const Step& s, Reg* r) {
  const Jitted* callee = jitted_at(A);
  return callee && give(s, r, Py_NewRef(callee->plain()));
}

// -- text
bool convert(const Step& s, Reg* r) { return give(s, r, kConvert[s.imm](A)); }
bool format(const Step& s, Reg* r) {
  PyObject* v = r[s.list[0]].o;
  if (s.n == 1 && PyUnicode_CheckExact(v)) return give(s, r, Py_NewRef(v));
  return give(s, r, PyObject_Format(v, s.n > 1 ? r[s.list[1]].o : nullptr));
}

// -- iteration
bool get_iter(const Step& s, Reg* r) { return give(s, r, PyObject_GetIter(A)); }
bool tuple_item(const Step& s, Reg* r) {
  return PyTuple_Check(A) && s.imm < PyTuple_GET_SIZE(A) && give(s, r, Py_NewRef(PyTuple_GET_ITEM(A, s.imm)));
}

// -- generators
bool waiting_slot(const Step& s, Reg* r) {
  if (s.imm >= 0) return give(s, r, hook::take_slot(A, s.imm));
  return give(s, r, Py_NewRef(reinterpret_cast<PyObject*>(hook::waiting_generator(A).function)));
}
bool begin_to_run(const Step& s, Reg* r) {
  hook::begin_to_run(A);
  return true;
}
bool wait_at(const Step& s, Reg* r) {
  PyObject* generator = r[s.list[0]].o;
  const Py_UCS1* bound = PyUnicode_1BYTE_DATA(s.name);
  const auto count = static_cast<int>(PyUnicode_GET_LENGTH(s.name));
  for (int slot = 0, k = 1; slot < count; ++slot)
    hook::fill_slot(generator, slot, bound[slot] == '1' ? Py_NewRef(r[s.list[k++]].o) : nullptr);
  hook::wait_at(generator, s.imm, count);
  return true;
}
bool end_running(const Step& s, Reg* r) {
  hook::end_running(A, s.imm);
  return true;
}

constexpr KindRow<Exec> kRows[] = {
#define ROW(name) \
  { OpKind::name, name }
    ROW(load_global), ROW(store_global), ROW(delete_global), ROW(func_closure), ROW(func_default), ROW(func_kwdefault), ROW(cell_new),
    ROW(cell_get),    ROW(cell_set),     ROW(cell_delete),   ROW(get_attr),     ROW(load_special), ROW(set_attr),       ROW(del_attr),
    ROW(get_item),    ROW(set_item),     ROW(del_item),      ROW(binary),       ROW(inplace),      ROW(unary),          ROW(compare),
    ROW(contains),    ROW(is_),          ROW(truth),         ROW(not_),         ROW(get_len),      ROW(call),           ROW(call_ex),
    ROW(method_func), ROW(method_self),  ROW(convert),       ROW(format),       ROW(get_iter),     ROW(tuple_item),     ROW(jitted_func),
    ROW(bind_method), ROW(super_attr),   ROW(waiting_slot),  ROW(begin_to_run), ROW(wait_at),      ROW(end_running),
#undef ROW
};

}  // namespace

BinaryFn inplace_operator(BinaryOp op) { return kInplace[static_cast<int>(op)]; }
bool exec_binary(const Step& s, Reg* r) { return binary(s, r); }
bool exec_unary(const Step& s, Reg* r) { return unary(s, r); }
bool exec_call(const Step& s, Reg* r) { return call(s, r); }

Exec exec_of(OpKind kind) {
  static constexpr auto kTable = by_kind(kRows, Exec{nullptr});
  const Exec exec = kTable[static_cast<size_t>(kind)];
  return exec != nullptr ? exec : exec_of_building(kind);
}

}  // namespace dalsegno::replay
