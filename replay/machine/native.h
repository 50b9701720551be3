// What the files native*.cc share. Internal to the machine.
#pragma once
#include "replay/machine/run.h"
#include "replay/native/region.h"

namespace dalsegno::replay {

constexpr size_t kMostNativeSteps = 3000;  // of a region

// -- native_region.cc
const native::Layout& native_layout();
std::vector<const void*> native_addresses();  // in the order of native::Address
// The plan by which a side trace of the step may be part of the same function, or -1.
int32_t side_plan(native::Do what, const Step& s);
// Does a side trace, or one that hangs on it, lead to a loop?
bool comes_back(const ProgramImpl& side);
// iter() of what gives an iterator without running code, but for a collection that making it may begin (hook::collections).
bool makes_quiet_iterator(const Step& s);
// The loop, the loops it leads to, and the side traces that may be part of its function, of the traces with numbers below `below`, the
// nearest first while there is room (Native::most); what the function refers to goes into `native`.
native::Region describe(ProgramImpl& root, Native* native, size_t below);

}  // namespace dalsegno::replay
