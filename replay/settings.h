// The settings of the replay layer, as dalsegno.config pushes them down. Read and written under the GIL.
#pragma once
namespace dalsegno::replay {

struct Settings {
  bool enabled = true;  // not `disable`
  int hot_exit = 2;     // an exit left this often gets a side trace
  int max_ops = 20000;
  int max_depth = 20;
  int max_traces = 64;     // per function
  bool step_aside = true;  // call the plain function where replay was measured to be slower
  bool record = true;
  bool native = true;      // loops run as native code
  bool assemble = true;    // kernels, where the processor and the assembler can
  int vector_bits = 512;   // with vectors of at most so many
  bool refine = true;      // what is compiled quickly for a loop that waits is compiled once more
  int hot_loop = 200;      // turns of a loop before it is compiled
  bool kernels = true;     // false: array ops stay steps, no segments are made
  int inner_loops = 4000;  // elements, of all ops of a group together, and 525 an op, up to which NumPy's inner loops do it; 0: none
};
Settings& settings();

}  // namespace dalsegno::replay
