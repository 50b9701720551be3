// Where in each of many rows the greatest or the least element stands, of arrays as NumPy goes through them along an axis.
#pragma once
#include <cstdint>

#include "numpy/dtypes.h"
#include "replay/machine/cut.h"

namespace dalsegno::replay {

// Of equals the first; of floats the first NaN, where there is one (argmax and argmin in
// numpy/_core/src/multiarray/argfunc.dispatch.c.src). cut: along one axis, without rounds. The result has one position for each row. Not of
// complex numbers. Comparisons raise flags. No GIL is needed. False: NumPy, which turns the array around, is as fast; nothing is known
// then.
bool find_positions(DType dtype, bool largest, const Cut& cut, const char* from, int64_t* to);

}  // namespace dalsegno::replay
