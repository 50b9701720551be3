// Which items need no reference of their own. No Python.h here.
#pragma once
#include "replay/typed/typed_trace.h"

namespace dalsegno::typed {

// Marks the items (Mode::kItem) that nothing between their birth and their release can make their container drop: what stands between
// runs no code, stores no object and drops no reference but numbers'. `xs[i] + ys[j]` then counts no references. What the last op that
// takes the item does to it first is to take a reference.
void find_borrowed(TypedTrace& typed);

}  // namespace dalsegno::typed
