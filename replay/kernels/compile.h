// Turns kernels' texts into loaded code: from the cache, or by Halide (dalsegno._halide, imported when first needed), then through
// loader.h. One thread of our own, started at need, stopped before the interpreter is finalised, made anew after a fork.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "hook/hook.h"
#include "replay/kernels/config.h"

namespace dalsegno::replay {

struct Kernel;

// What the compile thread does, without the GIL.
struct CompileJob {
  virtual ~CompileJob() = default;
  virtual void compile() = 0;
};

// The kernel's state becomes kReady or kFailed. With the GIL; it is released while Halide works.
void compile_now(Kernel* kernel);
// On the compile thread.
void compile_later(std::shared_ptr<CompileJob> job);

// Starts the thread again, if a fork has ended it while kernels were waiting.
void nudge_compiler();
// What both do, without the GIL.
void compile_kernel(Kernel* kernel);

// The cache, for any kind of machine code. Without the GIL or with it.
bool cached(const std::string& key, std::string* object);
void keep_in_cache(const std::string& key, const std::string& object, const std::string& text);  // with work_mutex()
// Code that nobody has any more. To unload it takes the lock that compilers work under, which a caller must not wait for.
void unload_later(void* library);
void unload_unused();  // with work_mutex()

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
bool compiles_in_background();

struct CompileCounters {
  uint64_t compiled, loaded;
};
CompileCounters compile_counters();

}  // namespace dalsegno::replay
