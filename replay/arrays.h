// New arrays, whose memory is that of dead ones where it is large (replay/memory/kept_blocks.h). With the GIL.
#pragma once
#include "numpy/dtypes.h"

namespace dalsegno::replay {

// As PyArray_NewFromDescr() makes an exact ndarray that has its own memory, not written yet: of a dtype without objects, in C order where
// `strides` (bytes) is null. Null, without an exception, where there is no memory.
PyObject* new_array(DType dtype, int rank, const npy_intp* shape, const npy_intp* strides = nullptr);
PyObject* new_array(PyArray_Descr* descr, int rank, const npy_intp* shape, const npy_intp* strides = nullptr);

}  // namespace dalsegno::replay
