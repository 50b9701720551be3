// What folds add up of arrays, without those that come between. Part of fold.cc.
#pragma once
#include <Python.h>

#include "replay/machine/fold_arrays.h"

namespace dalsegno::replay::folds {

// start + all[0] + all[1] ..., or (there is none) 0 + all[0] + all[1] ...: of one dtype and shape, in C order; of truth values it is an
// array of int64. New reference; null, without an exception: refused.
PyObject* sum_of(const Summands& summands);

}  // namespace dalsegno::replay::folds
