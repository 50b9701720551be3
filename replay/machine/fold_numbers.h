// NumPy's numbers in folds: np.float64, np.int64 and np.bool, which elements of arrays of such dtypes are taken as. What raises a flag of
// the processor's that np.errstate does not ignore is refused as the fold ends, so that the warning is NumPy's. Part of fold.cc.
#pragma once
#include <Python.h>

#include "numpy/api.h"
#include "replay/machine/fold_value.h"

namespace dalsegno::replay::folds {

// A fold begins: none of NumPy's numbers has been seen.
void forget_flags();
// One of NumPy's numbers, or operations, is seen.
void heed_flags();
// It ends: has nothing been raised that NumPy would tell of?
bool flags_are_quiet();

// Of an array's memory; false: of another dtype, or byte order.
bool element(PyArrayObject* array, const char* at, Slot* out);
// array[index] with a position for each axis; false: it is no exact array, or not of so many axes, or out of bounds.
bool array_item(PyObject* array, const Slot* const* index, int n, Slot* out);

inline bool give_numpy(Slot* to, double f) { return to->tag = Slot::kNpFloat, to->f = f, to->object = nullptr, true; }

// Where one of them, at least, is NumPy's: what NumPy gives without a word.
bool numpy_binary(BinaryOp op, const Slot& a, const Slot& b, Slot* out);

}  // namespace dalsegno::replay::folds
