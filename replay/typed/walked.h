// What iterators go through step by step (trace/walk.h): whose items come unboxed. Part of infer().
#pragma once
#include "replay/typed/typed_trace.h"

namespace dalsegno::typed {

// Gives the iter_next i, and the ops that take its tuple apart, their forms, if all its items are numbers or texts. The tuple is to be
// taken apart at once: its old items die when the next ones come, which nobody can tell of those. expected: per value, what guards on its
// type ask for.
bool form_walk(TypedTrace& typed, ValueId i, const std::vector<Rep>& expected);

}  // namespace dalsegno::typed
