// NumPy's elision of temporaries (numpy/_core/src/multiarray/temp_elide.c): `t + x` is computed into t where t is a large array that
// nothing but the interpreter's stack holds. All that can be seen of it is the result's memory layout: t's, not the one the operands would
// give. NumPy looks at the C stack and elides for the interpreter alone, so replay does it in NumPy's stead. The GIL is held.
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
// kElideLeft or kElideRight if NumPy would compute `left op right` into that operand, else 0. `dying`: mask of those that nothing but one
// stack slot held. Operands of one dimension or none, where nothing can be seen of it, give 0.
int elided_operand(BinaryOp op, PyObject* left, PyObject* right, int dying);

}  // namespace dalsegno::numpy
