// np.errstate, asked from C.
#pragma once
#include "halide_gen/runtime/launch.h"
#include "numpy/api.h"

namespace dalsegno::numpy {

bool init_errstate();  // by numpy::init(); false with an exception set
// Does np.errstate ignore every one of these flags (rt::kInvalid ...) in this thread now? Leaves a set exception alone.
bool errstate_ignores(int flags);

}  // namespace dalsegno::numpy
