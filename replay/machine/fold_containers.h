// What folds ask of containers, modules and objects. Nothing runs code of the user's; false: not known, or it would raise.
#pragma once
#include <Python.h>

#include "replay/machine/fold_value.h"

namespace dalsegno::replay::folds {

// 1: *value is what the dict has there, borrowed; a set has the key. 0: it has not. -1: that is not known.
int find(PyObject* dict, PyObject* key, PyObject** value);
int value_at(PyObject* dict, const Slot& key, Slot* out);                // the same
bool attribute(const Slot& of, PyObject* name, Slot* out);               // a module's
bool item(const Slot& a, const Slot& b, Slot* out);                      // a[b]
bool pair_item(const Slot& a, const Slot& b, const Slot& c, Slot* out);  // a[b, c]
bool contains(const Slot& x, const Slot& in, bool* out);                 // x in `in`
bool same(const Slot& a, const Slot& b, bool* out);                      // a is b

}  // namespace dalsegno::replay::folds
