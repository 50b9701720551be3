// NumPy's elision of temporaries (numpy/_core/src/multiarray/temp_elide.c): `t + x` is computed into t where t is a large array that
// nothing but the interpreter's stack holds. What can be seen of it: no fresh memory is touched, and the result has t's memory layout, not
// the one the operands would give (also where the other operand is a scalar: strides of axes of one element). NumPy looks at the C stack
// and elides for the interpreter alone, so replay does it in NumPy's stead. The GIL is held.
#pragma once
#include <Python.h>

#include <cstdint>

#include "trace/trace.h"

namespace dalsegno::numpy {

inline constexpr int64_t kMinElidedBytes = 256 << 10;
inline constexpr int kElideLeft = 1, kElideRight = 2;  // a mask of operands

// Asks the interpreter, once: does NumPy elide for its code?
void init_elision();

// An array that nothing but one register refers to, of numbers, that owns its data and may be written: a candidate, if it is large.
bool is_temporary(PyObject* array);
// Which of its operands an operator may be computed into, if they are temporaries: a mask; 0 where this interpreter never elides.
int elidable_operands(BinaryOp op);
// The same of unary operators and abs().
bool elides_unary();
// kElideLeft or kElideRight if NumPy would compute `left op right` into that operand, else 0. `dying`: mask of those that nothing but one
// stack slot held. Either may be a scalar. Sets no exception.
int elided_operand(BinaryOp op, PyObject* left, PyObject* right, int dying);
// Would NumPy compute an unary operator on this dying operand, or its abs(), into it?
bool elides_into(PyObject* operand);
// ufunc(array, out=array)
PyObject* apply_in_place(const char* ufunc, PyObject* array);

}  // namespace dalsegno::numpy
