// abs(z) < r of complex numbers: most are so far from r that their squares tell.
#pragma once
#include "numpy/loops.h"
#include "trace/array_fn.h"

namespace dalsegno::replay {

// Of z (complex128) and r (float64): what NumPy's loops for abs() and the comparison give one after the other, flags included. Its function
// is null where there is none: another comparison, or a processor without AVX2. Needs the GIL; the loop does not.
numpy::InnerLoop magnitude_loop(ArrayFn compare);

}  // namespace dalsegno::replay
