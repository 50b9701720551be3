// What dicts, what is derived from them, and sets do without running code of the user's. Asked by silent.cc, each time anew.
#pragma once
#include "replay/machine/step.h"
#include "trace/trace.h"

namespace dalsegno::replay {

constexpr Py_ssize_t kMostKeys = 32;  // of a set: to look through more takes longer than to show frames

enum class Does { kGet, kSet, kDelete, kContains, kLength };

// Does the object's class that as dicts do, or OrderedDicts?
bool does_as_dicts(PyObject* o, Does what);
// A key that is there; one that is missing makes a value where that runs no code.
bool gets_from_dict(PyObject* dict, PyObject* key);
bool replaces_quietly(PyObject* dict, PyObject* key);

// Are two sets compared and joined without code of the user's? (What is taken out of one in place may die.)
bool are_sets(PyObject* a, PyObject* b);
bool joins_sets(BinaryOp op);

}  // namespace dalsegno::replay
