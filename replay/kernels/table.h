// The process's kernels: one per text, compiled (or taken from the cache) in the background, and swapped in when ready.
// All functions need the GIL unless said otherwise. A kernel lives while somebody holds it; of those that nobody holds, the ones used last
// are kept loaded too (set_idle_kernels).
#pragma once
#include <Python.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "halide_gen/plan/assembler.h"
#include "halide_gen/plan/kernel.h"
#include "halide_gen/plan/plan.h"
#include "halide_gen/runtime/launch.h"
#include "replay/kernels/compile.h"
#include "replay/kernels/config.h"
#include "replay/segment/spec.h"

namespace dalsegno::replay {

struct Kernel final : CompileJob {
  enum State : int { kNew, kQueued, kReady, kFailed };
  Kernel() = default;
  ~Kernel() override;  // its code is unloaded before the next kernel is loaded
  Kernel(const Kernel&) = delete;
  void compile() override { compile_kernel(this); }

  std::string text;
  std::string symbol;
  halide_gen::Plan plan;
  std::vector<rt::LaunchStage> stages;  // code is filled in when it has been assembled, or the object loaded
  std::vector<std::vector<rt::LaunchRef>> refs;
  rt::LaunchKernel launch{};
  std::shared_ptr<const halide_gen::AssembledCode> assembled;
  std::atomic<int> state{kNew};
  bool keep = true;  // may be taken from and put into the cache
  bool from_cache = false;
  std::string failure;         // set before state becomes kFailed
  Library* library = nullptr;  // keeps the code loaded (loader.h)

  bool ready() const { return state.load(std::memory_order_acquire) == kReady; }
};

using LaunchFunction = int (*)(const rt::LaunchKernel*, const rt::Launch*);
// Set before the first kernel becomes ready.
LaunchFunction launcher();

// The kernel of a spec, and make_plan() of that spec or of one that differs in the layout only: made, and its compilation asked for, on the
// first call. Null if kernels are switched off.
std::shared_ptr<Kernel> find_kernel(const halide_gen::KernelSpec& spec, const halide_gen::Plan& plan, bool keep);

size_t count_kernels();  // made and not dropped

int launch_threads();

// Process-wide.
void wait_for_compilers();  // until background compilation has finished (GIL released while waiting)
extern uint64_t g_launches;
inline void count_launch() { ++g_launches; }
struct KernelCounters {
  uint64_t launches, compiled, loaded, assembled;
};
KernelCounters kernel_counters();

}  // namespace dalsegno::replay
