// Which blocks of memory that dead arrays leave are kept for arrays made next. A page that the system gives to a process for the first time
// costs it about as much as a kernel takes to fill several (hdiff on 64 x 64 x 60: 2.7 ms a call, of which 2.4 for pages), and glibc gives
// memory back as soon as there is more of it at the heap's end than twice the largest block. Not thread-safe; no memory is touched here.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace dalsegno::replay {

class KeptBlocks {
 public:
  using Clock = std::chrono::steady_clock;
  struct Block {
    char* memory;
    size_t size;
    Clock::time_point since{};
  };
  static constexpr size_t kMostBlocks = 64;
  static constexpr size_t kMostMore = 32 << 20;  // bytes (glibc keeps up to 64 MB at its heap's end: DEFAULT_MMAP_THRESHOLD_MAX)

  // A block is cut in two if no less than `least` bytes are left of it.
  explicit KeptBlocks(size_t least) : least_(least) {}

  // The smallest kept one of at least this size, the youngest of several, cut to it; where no single one is large enough, of what lies side
  // by side. The caller has .size bytes in use from now on. Else .memory is null.
  Block take(size_t size);
  // The caller has so many bytes from elsewhere in use.
  void use(size_t size) {
    in_use_ += size;
    most_ = std::max(most_, in_use_);
    peak_ = std::max(peak_, in_use_);
  }
  // One that is in use has another size now.
  void resize(size_t size, size_t now) {
    drop(size);
    use(now);
  }
  // `size` bytes are no longer in use.
  void drop(size_t size) { in_use_ -= std::min(in_use_, size); }
  // The same, and they are kept. May throw std::bad_alloc before anything is done.
  void keep(char* memory, size_t size, Clock::time_point now);
  // The oldest block or its end, if there is more than may be kept: what is kept and what is in use are together never more than twice what
  // was once in use, nor than kMostMore above it (arrays of several sizes do not find each other's memory); nor is more kept than
  // `most_kept`, nor are there more than kMostBlocks. To be freed by the caller.
  bool pop_excess(Block* out, size_t most_kept = SIZE_MAX);
  // The oldest block, if it has been kept since `limit` or longer; nor will there be as much again.
  bool pop_aged(Clock::time_point limit, Block* out);
  bool empty() const { return kept_.empty(); }
  size_t kept() const { return kept_bytes_; }

  // How much was in use at once since begin(), and is more than was then; what has begun before counts it, too.
  struct Measure {
    size_t start, outer;
  };
  Measure begin() { return {in_use_, std::exchange(peak_, in_use_)}; }
  size_t end(const Measure& m) {
    const size_t most = std::exchange(peak_, std::max(m.outer, peak_));
    return most - std::min(most, m.start);
  }

 private:
  using Blocks = std::vector<Block>;
  Blocks::iterator smallest(size_t size);
  void join();
  Block pop_oldest();
  size_t most_at_once() const { return most_ + std::min(most_, kMostMore); }

  const size_t least_;
  Blocks kept_;  // oldest first
  size_t in_use_ = 0, kept_bytes_ = 0;
  size_t most_ = 0;  // that was in use
  size_t peak_ = 0;  // since the latest begin()
};

}  // namespace dalsegno::replay
