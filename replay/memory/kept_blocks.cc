#include "replay/memory/kept_blocks.h"

#include <algorithm>
#include <iterator>

namespace dalsegno::replay {

KeptBlocks::Block KeptBlocks::take(size_t size, size_t largest) {
  auto found = std::find_if(kept_.rbegin(), kept_.rend(), [&](const Block& b) { return b.size == size; });
  if (found == kept_.rend() && largest > size) {
    const size_t most = std::min(largest, most_ - std::min(most_, in_use_));
    for (auto b = kept_.rbegin(); b != kept_.rend(); ++b) {
      if (b->size > size && b->size <= most && (found == kept_.rend() || b->size < found->size)) found = b;
    }
  }
  Block taken{nullptr, size};
  if (found != kept_.rend()) {
    taken = *found;
    kept_.erase(std::next(found).base());
    kept_bytes_ -= taken.size;
  }
  use(taken.size);
  return taken;
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
  if (kept_.empty() || (kept_.size() <= kMostBlocks && kept_bytes_ + in_use_ <= most_at_once())) return false;
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
