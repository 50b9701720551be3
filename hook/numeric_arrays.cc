#include "hook/numeric_arrays.h"

#include "hook/error_aside.h"

namespace dalsegno::hook {

// What an array says of itself through the buffer protocol.
char numeric_array_typecode(PyObject* array) {
  ErrorAside aside;
  Py_buffer shown;
  if (PyObject_GetBuffer(array, &shown, PyBUF_FORMAT | PyBUF_ND) != 0) return PyErr_Clear(), 0;
  const auto* a = reinterpret_cast<const NumericArray*>(array);
  const bool alike = shown.ndim == 1 && shown.shape[0] == Py_SIZE(array) && shown.format != nullptr && shown.format[0] != 0 &&
                     shown.format[1] == 0 && (Py_SIZE(array) == 0 || shown.buf == a->items) && a->kind->typecode == shown.format[0] &&
                     a->kind->itemsize == shown.itemsize;
  PyBuffer_Release(&shown);
  return alike ? a->kind->typecode : 0;
}

}  // namespace dalsegno::hook
