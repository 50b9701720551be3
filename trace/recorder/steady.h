// Which names stand for the same plain value all the time (`math.pi`, a module's `SIZE = 100`). They are folded into traces as functions
// are; one that turns out to change is looked up at each replay from then on. Needs the GIL.
#pragma once
#include <Python.h>

namespace dalsegno::recorder {

// None, or an exact bool, int, float, complex number, text or tuple of such: nothing about it can change.
bool is_plain_value(PyObject* object);

// Has nobody been seen to change the name in this module's dict?
bool is_steady(PyObject* dict, PyObject* name);
// A code object stores it, or it was found to be another object than it was. The dict may be gone by now.
void note_unsteady(PyObject* dict, PyObject* name);

}  // namespace dalsegno::recorder
