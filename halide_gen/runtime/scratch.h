// Memory that a thread's kernels work in.
#pragma once
#include <cstddef>
#include <cstdlib>

namespace dalsegno::rt {

inline constexpr size_t kAlign = 64;

// Of the calling thread, by PerThread; grows, and is freed with the thread.
class Scratch {
 public:
  ~Scratch() { std::free(memory_); }
  char* get(size_t bytes) {
    if (bytes > size_) {
      std::free(memory_);
      memory_ = static_cast<char*>(std::aligned_alloc(kAlign, (bytes + kAlign - 1) / kAlign * kAlign));
      size_ = memory_ ? bytes : 0;
    }
    return memory_;
  }

 private:
  char* memory_ = nullptr;
  size_t size_ = 0;
};

}  // namespace dalsegno::rt
