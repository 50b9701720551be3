// Turns kernels' texts into loaded code: from the cache, or by Halide (dalsegno._halide, imported when first needed), then through
// loader.h. One thread of our own, started at need, stopped before the interpreter is finalised, made anew after a fork.
#pragma once
#include <cstdint>
#include <mutex>

#include "hook/hook.h"
#include "replay/kernels/table.h"

namespace dalsegno::replay {

// The kernel's state becomes kReady or kFailed. With the GIL; it is released while Halide works.
void compile_now(Kernel* kernel);
// The same, on the compile thread.
void compile_later(std::shared_ptr<Kernel> kernel);

// Starts the thread again, if a fork has ended it while kernels were waiting.
void nudge_compiler();
// What both do, without the GIL.
void compile_kernel(Kernel* kernel);

// Held while Halide or the cache works, never while waiting for the GIL. A fork waits for it, so that the child finds both at rest.
std::mutex& work_mutex();

// Runs work() with the GIL released.
template <typename Work>
void without_gil(Work work) {
  PyThreadState* state = PyEval_SaveThread();
  work();
  const hook::ThreadGuard guard;
  PyEval_RestoreThread(state);
}

// How many kernels more (or fewer) the compile thread has been asked for.
void count_asked_for(int change);

struct CompileCounters {
  uint64_t compiled, loaded;
};
CompileCounters compile_counters();

}  // namespace dalsegno::replay
