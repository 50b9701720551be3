// Functions of NumPy's that are views and operations: recorded as those.
#include <string_view>

#include "numpy/dtypes.h"
#include "trace/recorder/facts.h"
#include "trace/recorder/recorder.h"

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

}  // namespace dalsegno::recorder
