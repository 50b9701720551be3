// np.errstate, and what Python does with the warnings that NumPy gives by it, asked from C.
#pragma once
#include "halide_gen/runtime/launch.h"
#include "numpy/api.h"

namespace dalsegno::numpy {

bool init_errstate();  // by numpy::init(); false with an exception set
// Does np.errstate ignore every one of these flags (rt::kInvalid ...) in this thread now? Leaves a set exception alone.
bool errstate_ignores(int flags);
// Those of all flags that it does not ignore.
int watched_flags();
// Can nobody tell, while a warning of any flag is given, what arrays hold: are flags ignored or warned of, does no filter make an exception
// of the warning, and does only code of the standard library's show it? May err to the other side. Leaves a set exception alone.
bool warns_unseen();
// Warns as NumPy does behind the loop of a ufunc of this name. False with an exception set.
bool warn_of(const char* ufunc, int flags);

}  // namespace dalsegno::numpy
