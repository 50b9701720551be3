// What we keep with a code object, as long as that lives. Needs the GIL.
#pragma once
#include <Python.h>

namespace dalsegno::recorder {

template <typename T>
class CodeExtra {
 public:
  // One object of this class serves the process: CPython has few such places. Null: nothing is kept there.
  T* get(PyCodeObject* code) const {
    void* kept = nullptr;
    if (index_ < 0) return nullptr;
#if PY_VERSION_HEX >= 0x030c0000
    const int status = PyUnstable_Code_GetExtra(reinterpret_cast<PyObject*>(code), index_, &kept);
#else
    const int status = _PyCode_GetExtra(reinterpret_cast<PyObject*>(code), index_, &kept);
#endif
    if (status < 0) PyErr_Clear();
    return static_cast<T*>(kept);
  }

  // False: there is no room, and it stays the caller's.
  bool keep(PyCodeObject* code, T* what) const {
    if (index_ < 0) return false;
#if PY_VERSION_HEX >= 0x030c0000
    const int status = PyUnstable_Code_SetExtra(reinterpret_cast<PyObject*>(code), index_, what);
#else
    const int status = _PyCode_SetExtra(reinterpret_cast<PyObject*>(code), index_, what);
#endif
    if (status < 0) PyErr_Clear();
    return status == 0;
  }

 private:
  static void release(void* what) { delete static_cast<T*>(what); }
#if PY_VERSION_HEX >= 0x030c0000
  const Py_ssize_t index_ = PyUnstable_Eval_RequestCodeExtraIndex(release);
#else
  const Py_ssize_t index_ = _PyEval_RequestCodeExtraIndex(release);
#endif
};

}  // namespace dalsegno::recorder
