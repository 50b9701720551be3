// NumPy's C API, one import for the whole library (facts.cc imports it).
#pragma once
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL dalsegno_recorder_array_api
#define PY_UFUNC_UNIQUE_SYMBOL dalsegno_recorder_ufunc_api
#ifndef DALSEGNO_IMPORT_ARRAY
#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#endif
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>
