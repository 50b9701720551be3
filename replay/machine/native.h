// What the files native*.cc share. Internal to the machine.
#pragma once
#include "replay/machine/program.h"
#include "replay/native/region.h"

namespace dalsegno::replay {

constexpr size_t kMostNativeSteps = 3000;

// -- native_region.cc
const native::Layout& native_layout();
// The loop and the side traces that may be part of its function; what the function refers to goes into `native`.
native::Region describe(ProgramImpl& root, Native* native);

}  // namespace dalsegno::replay
