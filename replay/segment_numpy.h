// NumPy's C API for the segment runner: import, inner loops, element types, errstate. Everything needs the GIL.
#pragma once
#include <Python.h>

#define PY_ARRAY_UNIQUE_SYMBOL dalsegno_segment_ARRAY_API
#define PY_UFUNC_UNIQUE_SYMBOL dalsegno_segment_UFUNC_API
#ifndef DALSEGNO_SEGMENT_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#endif
#ifndef NPY_NO_DEPRECATED_API
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#endif
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>

#include <string>

#include "halide_gen/runtime/launch.h"
#include "trace/array_fn.h"

namespace dalsegno::replay {

// False, without an exception, if NumPy cannot be used.
bool numpy_ready();
int type_number(DType dtype);
PyArray_Descr* descriptor(DType dtype);  // borrowed
PyTypeObject* scalar_type(DType dtype);  // type of NumPy's scalars of the dtype; borrowed

struct InnerLoop {
  rt::LoopFunction function = nullptr;  // null: NumPy has no such loop
  void* data = nullptr;
};
InnerLoop inner_loop(ArrayFn fn, DType loop, DType result);

// Does np.errstate ignore every one of these flags (rt::kInvalid ...) now?
bool errstate_ignores(int flags);
std::string numpy_version();

}  // namespace dalsegno::replay
