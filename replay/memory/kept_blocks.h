// Which blocks of memory that dead arrays leave are kept for arrays made next. A page that the system gives to a process for the first time
// costs it about as much as a kernel takes to fill several (hdiff on 64 x 64 x 60: 2.7 ms a call, of which 2.4 for pages), and glibc gives
// memory back as soon as there is more of it at the heap's end than twice the largest block. Not thread-safe; no memory is touched here.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace dalsegno::replay {

class KeptBlocks {
 public:
  using Clock = std::chrono::steady_clock;
  struct Block {
    void* memory;
    size_t size;
    Clock::time_point since;
  };
  static constexpr size_t kMostBlocks = 64;

  // One of this very size that is kept, or null. Either way the caller has `size` bytes in use from now on.
  void* take(size_t size);
  // `size` bytes are no longer in use. (Arrays may have been resized meanwhile: no more than there are.)
  void drop(size_t size) { in_use_ -= std::min(in_use_, size); }
  // The same, and they are kept. May throw std::bad_alloc before anything is done.
  void keep(void* memory, size_t size, Clock::time_point now);
  // The oldest block, if there is more than may be kept: what is kept and what is in use are together never more than was once in use, as
  // eager, too, would have had it at once; nor are there more than kMostBlocks. To be freed by the caller.
  bool pop_excess(Block* out);
  // The oldest block, if it has been kept since `limit` or longer; nor will there be as much again.
  bool pop_aged(Clock::time_point limit, Block* out);
  bool empty() const { return kept_.empty(); }

 private:
  Block pop_oldest();

  std::vector<Block> kept_;  // oldest first
  size_t in_use_ = 0, kept_bytes_ = 0;
  size_t most_ = 0;  // that was in use
};

}  // namespace dalsegno::replay
