// What becomes of the exceptions of the C API where an object is looked for, and may well not be there.
#pragma once
#include <Python.h>

#include <new>

namespace dalsegno::replay {

// Drops the one that is set, if there is one. Where memory has run out std::bad_alloc goes on for it: nobody knows then what is there and
// what is not, and a look that found nothing would be taken for one that found something else. Needs the GIL.
inline void drop_error() {
  if (!PyErr_Occurred()) return;
  const bool memory = PyErr_ExceptionMatches(PyExc_MemoryError) != 0;
  PyErr_Clear();
  if (memory) throw std::bad_alloc();
}

}  // namespace dalsegno::replay
