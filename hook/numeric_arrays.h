// The standard library's array.array: the numbers that one holds, asked without a call.
#pragma once
#include <Python.h>

#include <cstddef>

namespace dalsegno::hook {

// As Modules/arraymodule.c has them, from 3.11 to 3.14.
struct NumericArrayKind {
  char typecode;
  int itemsize;
};
struct NumericArray {
  PyObject_VAR_HEAD char* items;
  Py_ssize_t allocated;
  const NumericArrayKind* kind;
};

// The typecode of an array.array that lives, or 0: its layout is another one than is taken to be here. Needs the GIL; leaves no exception.
char numeric_array_typecode(PyObject* array);

}  // namespace dalsegno::hook
