// Where loop traces start: a place and the types of its variables.
#pragma once
#include <Python.h>

#include <utility>
#include <vector>

#include "trace/recorder/live_trace.h"

namespace dalsegno::recorder {

// A place in the program: code object and instruction of every frame, outermost first; last, which slots are bound. Borrowed pointers.
using AnchorKey = std::vector<std::pair<PyCodeObject*, int>>;

// Exact types of the slots of all frames in order (function, locals, stack); null: not known, or nothing there. Borrowed.
using SlotTypes = std::vector<PyTypeObject*>;

// Loop traces for different types of the variables at one place, at most. The next one goes to the first, whatever its types.
inline constexpr int kMaxLoopsAtAPlace = 4;

// The place a snapshot of a trace stands at.
AnchorKey anchor_of(const LiveTrace& trace, const Snapshot& at);
// Does a loop trace take slots of these types? Its guards on the types of its parameters say so.
bool takes(const LiveTrace& loop, const SlotTypes& types);

}  // namespace dalsegno::recorder
