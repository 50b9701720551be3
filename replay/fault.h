// Switches of the replay layer that are read while a trace is lowered. Set under the GIL (dalsegno.config pushes them down).
#pragma once
#include <string>

namespace dalsegno::replay {

// Name of the planted fault, "" in real life. Tests plant one to see that the differential fuzzer finds it:
// "dropped_guard", "wrong_snapshot_slot", "wrong_resume_offset", "missed_alias" (here), "wrong_kernel_rule" (halide_gen).
extern std::string fault;
// False: array ops stay steps, no segments are made.
extern bool use_kernels;

}  // namespace dalsegno::replay
