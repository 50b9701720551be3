// The one table DType <-> NumPy: type numbers, descriptors, scalar types, and what an array of given facts is. Needs the GIL, sets no
// exceptions.
#pragma once
#include "numpy/api.h"
#include "trace/trace.h"

namespace dalsegno::numpy {

int type_number(DType dtype);
PyArray_Descr* descriptor(DType dtype);  // borrowed; immortal
PyTypeObject* scalar_type(DType dtype);  // type of NumPy's scalars of the dtype; borrowed
// The dtype whose scalars have this very type. False: none that kernels know.
bool scalar_dtype(const PyTypeObject* type, DType* dtype);
inline bool is_scalar_type(const PyTypeObject* type) {
  DType ignored;
  return scalar_dtype(type, &ignored);
}

inline bool is_exact_array(PyObject* object) { return object && PyArray_CheckExact(object); }
// An exact ndarray, aligned, in native byte order, of a dtype that kernels know: fills facts, else false.
bool facts_of(PyObject* object, ArrayFacts* facts);
// True if facts_of() would give these.
bool has_facts(PyObject* object, const ArrayFacts& facts);

}  // namespace dalsegno::numpy
