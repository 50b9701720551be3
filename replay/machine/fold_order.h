// The order of what a fold has found the keys of. Part of fold.cc.
#pragma once
#include <Python.h>

#include <cstdint>
#include <vector>

#include "replay/machine/fold_value.h"

namespace dalsegno::replay::folds {

// Numbers of one kind, texts, or tuples of such: which of them comes first, and so on, those that are equal as they stand. False: they
// cannot be compared, or it matters in which order they are (NaN).
bool sort(const std::vector<Slot>& keys, bool reverse, std::vector<int32_t>* order);
// Of a list of so many items.
void put_in_order(PyObject* list, const std::vector<int32_t>& order);

}  // namespace dalsegno::replay::folds
