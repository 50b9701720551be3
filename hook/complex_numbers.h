// The interpreter's arithmetic of a complex number (c) and a real one (r), since 3.14: as pycore_complexobject.h declares it.
#pragma once
#include <Python.h>

#if PY_VERSION_HEX >= 0x030e0000
extern "C" {
Py_complex _Py_cr_sum(Py_complex, double);
Py_complex _Py_cr_diff(Py_complex, double);
Py_complex _Py_rc_diff(double, Py_complex);
Py_complex _Py_cr_prod(Py_complex, double);
Py_complex _Py_cr_quot(Py_complex, double);
Py_complex _Py_rc_quot(double, Py_complex);
}
#endif
