// What the files native*.cc share. Internal to the machine.
#pragma once
#include "replay/machine/run.h"
#include "replay/native/region.h"

namespace dalsegno::replay {

constexpr size_t kMostNativeSteps = 800;  // of a region: what LLVM compiles in a tenth of a second

// -- native_region.cc
const native::Layout& native_layout();
std::vector<const void*> native_addresses();  // in the order of native::Address
// iter() of what gives an iterator without running code, but for a collection that making it may begin (hook::collections).
bool makes_quiet_iterator(const Step& s);
// The loop, the loops it leads to, and the side traces that may be part of its function, of the traces with numbers below `below`, the
// nearest first while there is room (Native::most); what the function refers to goes into `native`.
native::Region describe(ProgramImpl& root, Native* native, size_t below);

// -- native_sides.cc
// Does it leave where its object is not of the class that was recorded?
bool asks_for_class(const Step& s);
// The plan by which a side trace of the step may be part of the same function, or -1.
int32_t side_plan(native::Do what, const Step& s);
// Does a side trace, or one that hangs on it, lead to a loop?
bool comes_back(const ProgramImpl& side);

// -- native_frame.cc
// What a native function's frame leads back to.
struct Running {
  Machine* m;
  const Native* native;
  int32_t base;  // of the registers of the loop it begins with
  Reg* r;
  const NativePlace* places;
  const Py_ssize_t* collections;  // Machine::collections
  const Step* next = nullptr;
  bool no_memory = false;
};
// What the frame's functions need beside what a run is told of (native.cc).
void fill(native::Frame* frame, Running* running);
void drop_spares(native::Frame* frame);
// The machine's registers are those of a block.
void turn_to(Running& running, size_t block);
// The step with this number, its program being the one that runs. (Where a side trace's constants are loaded so are those around it.)
const Step* turn_to(native::Frame& frame, Running& running, int32_t number);
// The machine goes on with the registers where they were.
void turn_back(const Running& running);
bool worlds_hold(const Native& native);
// Steps to be done one at a time.
void make_alone(Native& native);

}  // namespace dalsegno::replay
