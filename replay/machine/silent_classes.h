// What C code of the interpreter's does with classes and their instances without running any of the user's, as long as they inherit it:
// attributes of classes and of super(), lengths and iterators of what is derived from list and tuple, comparison by identity, and values of
// types written in C that hold nothing else (Decimal, date, timedelta). It may raise. Asked by silent.cc, each time anew.
#pragma once
#include "replay/machine/step.h"

namespace dalsegno::replay {

// get_attr: what a class gives of its own (type_getattro() of Objects/typeobject.c), what super() gives of the classes behind the one that
// asks (super_getattro()), and what is decided by a slot, by a named tuple's item, or by a static method.
bool gets_attribute(const Step& s, const Reg* r);
// Will super(of, object) bind what it gives to the object?
bool makes_super(PyObject* of, PyObject* object);

bool inherits_length(PyObject* o);    // from list or tuple
bool inherits_items(PyObject* o);     // from list or tuple: o[i] with an int or a slice
bool inherits_iterator(PyObject* o);  // from list, tuple, dict, a set or a view of a dict, or is an iterator in C
bool is_always_true(PyObject* o);     // has neither a truth value nor a length of its own
bool compares_by_identity(PyObject* o);

// An instance of a type in C that is computed with, compared and dropped without running any other code.
bool is_value_in_c(PyObject* o);
// Does a call of the class without arguments make an instance that runs no code of the user's?
bool makes_bare_instances(PyTypeObject* type);
// super().__init__ where that is object's.
bool is_bare_init(PyObject* callee);

}  // namespace dalsegno::replay
