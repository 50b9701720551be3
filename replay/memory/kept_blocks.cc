#include "replay/memory/kept_blocks.h"

#include <algorithm>
#include <iterator>

namespace dalsegno::replay {

void* KeptBlocks::take(size_t size) {
  in_use_ += size;
  most_ = std::max(most_, in_use_);
  const auto found = std::find_if(kept_.rbegin(), kept_.rend(), [&](const Block& b) { return b.size == size; });
  if (found == kept_.rend()) return nullptr;
  void* memory = found->memory;
  kept_.erase(std::next(found).base());
  kept_bytes_ -= size;
  return memory;
}

void KeptBlocks::keep(void* memory, size_t size, Clock::time_point now) {
  kept_.push_back({memory, size, now});
  drop(size);
  kept_bytes_ += size;
}

KeptBlocks::Block KeptBlocks::pop_oldest() {
  const Block oldest = kept_.front();
  kept_.erase(kept_.begin());
  kept_bytes_ -= oldest.size;
  return oldest;
}

bool KeptBlocks::pop_excess(Block* out) {
  if (kept_.empty() || (kept_.size() <= kMostBlocks && kept_bytes_ + in_use_ <= most_)) return false;
  *out = pop_oldest();
  return true;
}

bool KeptBlocks::pop_aged(Clock::time_point limit, Block* out) {
  if (kept_.empty() || kept_.front().since > limit) return false;
  *out = pop_oldest();
  most_ = in_use_ + kept_bytes_;
  return true;
}

}  // namespace dalsegno::replay
