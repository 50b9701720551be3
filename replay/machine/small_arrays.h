// What steps that do small arrays at once (steps_array.cc, steps_made.cc) have in common.
#pragma once
#include <initializer_list>

#include "halide_gen/runtime/flags.h"
#include "numpy/dtypes.h"
#include "numpy/errstate.h"
#include "replay/arrays.h"
#include "replay/machine/run.h"
#include "replay/machine/scalars.h"
#include "trace/fault.h"

namespace dalsegno::replay {

// An exact array of one of these dtypes.
inline PyArrayObject* operand_among(std::initializer_list<DType> dtypes, PyObject* o, DType* dtype) {
  if (!o || !PyArray_CheckExact(o)) return nullptr;
  auto* a = reinterpret_cast<PyArrayObject*>(o);
  for (const DType known : dtypes) {
    if (!numpy::is_plain(PyArray_DESCR(a), known)) continue;
    *dtype = known;
    return PyArray_ISALIGNED(a) ? a : nullptr;
  }
  return nullptr;
}

// Of a dtype that has such loops.
inline PyArrayObject* small_operand(PyObject* o, DType* dtype) {
  return operand_among({DType::kFloat64, DType::kInt64, DType::kFloat32, DType::kInt32}, o, dtype);
}

inline char* data_of(PyObject* array) { return PyArray_BYTES(reinterpret_cast<PyArrayObject*>(array)); }

// What the loops have left, their flags being these. Consumes `made`.
inline PyObject* unless_raised(PyObject* made, int raised = rt::all_raised()) {
  if (raised != 0 && !planted(Fault::ignored_flags) && !numpy::errstate_ignores(raised)) Py_CLEAR(made);
  return made;
}

// A double of NumPy's; null, without an exception, where there is no memory.
inline PyObject* new_double(double number) {
  Reg made{};
  made.f = number;
  PyObject* boxed = box_numpy(typed::Rep::kNpFloat64, made);
  if (!boxed) PyErr_Clear();
  return boxed;
}

// Of n elements, `step` bytes apart, of an array's memory, which it keeps, from `first` on. Null, with an exception.
inline PyObject* new_view(PyObject* array, DType dtype, npy_intp n, npy_intp step, npy_intp first) {
  auto* whole = reinterpret_cast<PyArrayObject*>(array);
  auto* descr = reinterpret_cast<PyArray_Descr*>(Py_NewRef(reinterpret_cast<PyObject*>(numpy::descriptor(dtype))));
  PyObject* made = PyArray_NewFromDescr(&PyArray_Type, descr, 1, &n, &step, PyArray_BYTES(whole) + first, PyArray_FLAGS(whole), nullptr);
  if (made && PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(made), Py_NewRef(array)) < 0) Py_CLEAR(made);
  return made;
}

// The core strides are those that NumPy gives its loop (PyUFunc_GeneralizedFunctionInternal): 0 along an axis of one element, or none.
inline npy_intp core_stride(npy_intp extent, npy_intp stride) { return extent == 1 ? 0 : stride; }

// Of a subscript. Null: NumPy has to do it.
inline const Step* made_or_got(PyObject* made, const Step* s, Reg* r, Machine& m) {
  if (!made) [[unlikely]]
    return step_get_item(s, r, m);
  r[s->dst].o = made;
  return go_on(s + 1, r, m);
}

// False: NumPy has to store it.
inline const Step* stored_or_set(bool stored, const Step* s, Reg* r, Machine& m) {
  static const StepFn kReplacing = step_exec_replacing(OpKind::set_item);
  if (stored) return go_on(s + 1, r, m);
  return s->linked ? step_exec_linked(s, r, m) : kReplacing(s, r, m);
}

// Null: NumPy has to do it.
inline const Step* made_or_called(PyObject* made, const Step* s, Reg* r, Machine& m) {
  if (!made) [[unlikely]]
    return s->linked ? step_exec_linked(s, r, m) : step_exec(s, r, m);
  r[s->dst].o = made;
  return go_on(s + 1, r, m);
}

}  // namespace dalsegno::replay
