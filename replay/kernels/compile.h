// Turns kernels' texts into loaded code: from the cache, or by LLVM or Halide (dalsegno._halide, imported when first needed), then through
// loader.h. Threads of our own, one for each kind of job, started at need, stopped before the interpreter is finalised, made anew after a
// fork.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "halide_gen/plan/assembler.h"
#include "halide_gen/plan/kernel.h"
#include "hook/error_aside.h"
#include "hook/hook.h"
#include "replay/kernels/config.h"

namespace dalsegno::replay {

struct Kernel;
struct Library;  // loader.h

enum class CompileKind : uint8_t {
  kKernel,
  kLoop,     // it is running while it waits: what was asked for last is done first
  kRefined,  // a loop's code once more; nobody waits
  kCount
};

// What a compile thread does, without the GIL.
struct CompileJob {
  virtual ~CompileJob() = default;
  virtual void compile() = 0;
  virtual CompileKind kind() const { return CompileKind::kKernel; }
  // Of what is not urgent: what has most is done first, what has none as yet may wait a little.
  virtual int64_t urgency() const { return 0; }
};

// The kernel's state becomes kReady or kFailed. With the GIL; it is released while Halide works.
void compile_now(Kernel* kernel);
// On one of the compile threads. With the GIL.
void compile_later(std::shared_ptr<CompileJob> job);
// The same, of what one of them is doing: without the GIL.
void compile_next(std::shared_ptr<CompileJob> job);

// Starts the threads again, if a fork has ended them while kernels were waiting.
void nudge_compiler();
// What both do, without the GIL.
void compile_kernel(Kernel* kernel);

// For tests: from now on kernels that are not assembled are compiled by Halide.
void compile_by_halide(bool only);
halide_gen::Vectors vectors();  // what kernels are assembled with, by the settings, on this processor
// True: the assembler could do it, and the kernel is ready.
bool assemble_now(const halide_gen::KernelSpec& spec, Kernel* kernel);

// Called before long work that nobody waits for, Halide's or LLVM's: from here on its thread gives way to the program's own. BLAS' threads
// wait for one another, so that one of them without a core holds up all. Not while it may still have to take the GIL, which others would
// wait for. What takes LLVM a few milliseconds gives way to nobody: beside threads that turn while they wait it would take ten times as
// long.
void give_way();
// dlopen(), on a thread that gives way: mapping Halide takes as long as its compiling does, and GIL and mutexes are taken behind it.
void* open_giving_way(const std::string& file);

// The cache, for any kind of machine code. Without the GIL or with it.
bool cached(const std::string& key, std::string* object);
void keep_in_cache(const std::string& key, const std::string& object);                    // with work_mutex()
void keep_region_in_cache(const std::string& function, const store::KeptRegion& region);  // the same
// Code that nobody has any more. To unload it takes the lock that compilers work under, which a caller must not wait for.
void unload_later(Library* library);
void unload_unused();  // with work_mutex()

// Held while the cache or the loader works, never while waiting for the GIL. A fork waits for it, so that the child finds them at rest.
std::mutex& work_mutex();
// The same while Halide, or LLVM for this kind of job, works: that takes long, and others do not wait for it. None of them is taken with
// another, or work_mutex(), held.
std::mutex& halide_mutex();
std::mutex& llvm_mutex(CompileKind kind);

// The GIL for a while; an exception of the caller's is kept. Without locks that somebody may hold while waiting for the GIL.
class WithGil {
 public:
  WithGil() : state_(PyGILState_Ensure()) { aside_.emplace(); }
  ~WithGil() {
    aside_.reset();
    PyGILState_Release(state_);
  }
  WithGil(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
  std::optional<hook::ErrorAside> aside_;
};

// Runs work() with the GIL released.
template <typename Work>
void without_gil(Work work) {
  PyThreadState* state = PyEval_SaveThread();
  work();
  const hook::ThreadGuard guard;
  PyEval_RestoreThread(state);
}

// How many kernels more (or fewer) the compile threads have been asked for.
void count_asked_for(int change);
bool compiles_in_background();

struct CompileCounters {
  uint64_t compiled, loaded, assembled;
};
CompileCounters compile_counters();

}  // namespace dalsegno::replay
