#include "numpy/elide.h"

#include "numpy/api.h"

namespace dalsegno::numpy {
namespace {

bool g_elides = false;

// Of memory that is written: what is only read stays the one page of zeros, and whoever writes to it later, the first call, waits for a
// page and for all processors that run threads of this process to hear of it (15 us each).
constexpr const char* kProbe =
    "import numpy\n"
    "f = numpy.ones((512, 64), order='F')\n"
    "c = numpy.ones((512, 64))\n"
    "elided = ((f + f) * c).strides[0] == f.itemsize\n";

// The number protocol's functions in NumPy's number.c, in the order of BinaryOp.
constexpr int kEither = kElideLeft | kElideRight;
constexpr int kElidable[] = {
    kEither,     // add
    kEither,     // and_
    kElideLeft,  // floor_divide
    kElideLeft,  // lshift
    0,           // matmul
    kEither,     // multiply
    0,           // remainder
    kEither,     // or_
    kElideLeft,  // power: by some scalars, see elides_power
    kElideLeft,  // rshift
    kElideLeft,  // subtract
    kElideLeft,  // true_divide
    kEither,     // xor_
};

bool is_large_temporary(PyObject* array) {
  return PyArray_CheckExact(array) && is_temporary(array) && PyArray_NBYTES(reinterpret_cast<PyArrayObject*>(array)) >= kMinElidedBytes;
}

// can_elide_temp: an array of the same shape or a scalar, whose values fit.
bool can_elide(PyObject* into, PyObject* other) {
  if (!is_large_temporary(into) || (!PyArray_CheckExact(other) && !PyArray_CheckAnyScalar(other))) return false;
  auto* left = reinterpret_cast<PyArrayObject*>(into);
  auto* right = reinterpret_cast<PyArrayObject*>(PyArray_EnsureArray(Py_NewRef(other)));
  if (!right) return PyErr_Clear(), false;
  const bool fits =
      (PyArray_NDIM(right) == 0 || PyArray_SAMESHAPE(left, right)) && PyArray_CanCastArrayTo(right, PyArray_DESCR(left), NPY_SAFE_CASTING);
  Py_DECREF(right);
  return fits;
}

bool is_inexact(PyObject* array) {
  auto* a = reinterpret_cast<PyArrayObject*>(array);
  return PyArray_ISFLOAT(a) || PyArray_ISCOMPLEX(a);
}

// fast_scalar_power: square of any numbers, reciprocal and square root of floats.
bool elides_power(PyObject* base, PyObject* exponent) {
  if (!is_large_temporary(base)) return false;
  if (PyFloat_CheckExact(exponent)) return PyFloat_AS_DOUBLE(exponent) == 0.5 && is_inexact(base);
  if (!PyLong_CheckExact(exponent)) return false;
  int overflow = 0;
  const long power = PyLong_AsLongAndOverflow(exponent, &overflow);
  return power == 2 || (power == -1 && overflow == 0 && is_inexact(base));
}

}  // namespace

void init_elision() {
  PyObject* space = PyDict_New();
  if (!space) return PyErr_Clear();
  PyObject* done =
      PyDict_SetItemString(space, "__builtins__", PyEval_GetBuiltins()) < 0 ? nullptr : PyRun_String(kProbe, Py_file_input, space, space);
  g_elides = done && PyDict_GetItemString(space, "elided") == Py_True;
  Py_XDECREF(done);
  Py_DECREF(space);
  PyErr_Clear();
}

bool is_temporary(PyObject* array) {
  auto* a = reinterpret_cast<PyArrayObject*>(array);
  return Py_REFCNT(array) == 1 && PyArray_ISNUMBER(a) && PyArray_CHKFLAGS(a, NPY_ARRAY_OWNDATA | NPY_ARRAY_WRITEABLE) &&
         !PyArray_CHKFLAGS(a, NPY_ARRAY_WRITEBACKIFCOPY);
}

int elidable_operands(BinaryOp op) { return g_elides ? kElidable[static_cast<int>(op)] : 0; }

bool elides_unary() { return g_elides; }

int elided_operand(BinaryOp op, PyObject* left, PyObject* right, int dying) {
  dying &= elidable_operands(op);
  if (op == BinaryOp::power) return dying & kElideLeft && elides_power(left, right) ? kElideLeft : 0;
  if (op == BinaryOp::true_divide && !(PyArray_CheckExact(left) && is_inexact(left))) return 0;
  if (dying & kElideLeft && can_elide(left, right)) return kElideLeft;
  return dying & kElideRight && can_elide(right, left) ? kElideRight : 0;
}

bool elides_into(PyObject* operand) { return g_elides && is_large_temporary(operand); }

PyObject* apply_in_place(const char* ufunc, PyObject* array) {
  PyObject* function = PyObject_GetAttrString(module(), ufunc);
  PyObject* result = function ? PyObject_CallFunctionObjArgs(function, array, array, nullptr) : nullptr;
  Py_XDECREF(function);
  return result;
}

}  // namespace dalsegno::numpy
