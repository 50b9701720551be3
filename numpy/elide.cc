#include "numpy/elide.h"

#include "numpy/api.h"

namespace dalsegno::numpy {
namespace {

bool g_elides = false;

constexpr const char* kProbe =
    "import numpy\n"
    "f = numpy.zeros((512, 64), order='F')\n"
    "c = numpy.zeros((512, 64))\n"
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
    0,           // power: for a scalar exponent alone, where the layout is the operand's anyway
    kElideLeft,  // rshift
    kElideLeft,  // subtract
    kElideLeft,  // true_divide
    kEither,     // xor_
};

bool can_elide(PyArrayObject* into, PyArrayObject* other) {
  return is_temporary(reinterpret_cast<PyObject*>(into)) && PyArray_NBYTES(into) >= kMinElidedBytes &&
         PyArray_CanCastArrayTo(other, PyArray_DESCR(into), NPY_SAFE_CASTING);
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

int elided_operand(BinaryOp op, PyObject* left, PyObject* right, int dying) {
  if (!PyArray_CheckExact(left) || !PyArray_CheckExact(right)) return 0;
  auto *a = reinterpret_cast<PyArrayObject*>(left), *b = reinterpret_cast<PyArrayObject*>(right);
  if (PyArray_NDIM(a) < 2 || !PyArray_SAMESHAPE(a, b)) return 0;
  dying &= elidable_operands(op);
  if (op == BinaryOp::true_divide && !PyArray_ISFLOAT(a) && !PyArray_ISCOMPLEX(a)) return 0;
  if (dying & kElideLeft && can_elide(a, b)) return kElideLeft;
  return dying & kElideRight && can_elide(b, a) ? kElideRight : 0;
}

}  // namespace dalsegno::numpy
