// Settings of the segment runner, and where it keeps kernels between processes. All functions need the GIL.
#pragma once
#include <string>

#include "store/experience.h"

namespace dalsegno::replay {

// Kernels outside this process (the store). Called on the compile thread without the GIL, or on a caller's thread with it
// (background == false); never by two threads at once.
struct KernelCache {
  virtual ~KernelCache() = default;
  virtual bool get(const std::string& key, std::string* object) = 0;  // false: not there, or damaged
  virtual void put(const std::string& key, const std::string& object) = 0;
  // Of what machine code is there for a loop of a function (by its key).
  virtual void put_region(const std::string& function, const store::KeptRegion& region) = 0;
};

// Null: none. The cache must outlive its use: set_kernel_cache(nullptr) waits until no thread is inside it.
void set_kernel_cache(KernelCache* cache);

// kernels: compile and launch kernels at all; background: compile on a thread of our own, else on the caller's;
// threads: of one launch, 0 = number of cores.
void configure_kernels(bool kernels, bool background, int threads);

// Whether segments made from now on may use the cache: jit(store=False) keeps nothing on disk.
extern bool use_kernel_cache;

// Whether kernels are waiting to be compiled or loaded. Any thread.
bool kernels_under_way();
// How many have come so far, or failed: what was measured before is not how it will be. Wraps.
uint32_t kernels_that_came();

// So many kernels that no function uses any more stay loaded (256, unless this is called); half of them go when there are more. Returns how
// many it was.
size_t set_idle_kernels(size_t count);

// What machine code depends on beside its text: CPU, Halide, NumPy. Part of every key.
std::string kernel_environment();

}  // namespace dalsegno::replay
