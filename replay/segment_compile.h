// Turns kernels' texts into loaded code: from the cache, or by Halide (dalsegno._halide, imported when first needed), then through
// dalsegno._loader. One thread of our own, started at need, stopped before the interpreter is finalised, made anew after a fork.
#pragma once
#include <cstdint>

#include "replay/segment_kernels.h"

namespace dalsegno::replay {

// The kernel's state becomes kReady or kFailed. With the GIL; it is released while Halide works.
void compile_now(Kernel* kernel);
// The same, on the compile thread.
void compile_later(Kernel* kernel);

struct CompileCounters {
  uint64_t compiled, loaded;
};
CompileCounters compile_counters();

}  // namespace dalsegno::replay
