// NumPy's C API, imported once for the whole library (api.cc). Everything in this folder needs the GIL.
#pragma once
#include <Python.h>

#include <string>
#ifndef NPY_NO_DEPRECATED_API
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#endif
#define PY_ARRAY_UNIQUE_SYMBOL dalsegno_numpy_array_api
#define PY_UFUNC_UNIQUE_SYMBOL dalsegno_numpy_ufunc_api
#ifndef DALSEGNO_IMPORT_NUMPY
#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#endif
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>

namespace dalsegno::numpy {

// Imports the API and what the layer asks NumPy's Python modules for. Called once, when the extension module is loaded, before anything
// else of this folder. False with an exception set.
bool init();
PyObject* module();     // numpy; borrowed
std::string version();  // "" if NumPy does not say

}  // namespace dalsegno::numpy
