// What live iterators go through (trace/walk.h). Needs the GIL.
#pragma once
#include <Python.h>

#include "trace/walk.h"

namespace dalsegno::recorder {

// The type of the iterators over it; null where their layout is not known. An array's is over anything with __getitem__.
PyTypeObject* type_of_walk(Walked over);
PyTypeObject* type_of_holder(Holder holder);  // null for kNone
// The k-th iterator that `iterator` holds, which is of the holder's type and holds so many; borrowed.
PyObject* walked(PyObject* iterator, Holder holder, int k);
// May those that it holds be moved on one after the other? (zip(it, it) takes turns.)
bool walked_apart(PyObject* iterator, Holder holder, int n);
// What the iterator goes through: n() is 0 where its items are not had without it.
Walk walk_of_live(PyObject* iterator);

}  // namespace dalsegno::recorder
