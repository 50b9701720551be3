#include "replay/memory/kept_blocks.h"

#include <algorithm>
#include <iterator>

namespace dalsegno::replay {

KeptBlocks::Blocks::iterator KeptBlocks::smallest(size_t size) {
  auto found = kept_.end();
  for (auto b = kept_.begin(); b != kept_.end(); ++b)
    if (b->size >= size && (found == kept_.end() || b->size <= found->size)) found = b;
  return found;
}

// What lies side by side is one block, as young as the younger. (Not before it is needed: what is old is freed.)
void KeptBlocks::join() {
  std::sort(kept_.begin(), kept_.end(), [](const Block& a, const Block& b) { return a.memory < b.memory; });
  size_t last = 0;
  for (size_t i = 1; i < kept_.size(); ++i) {
    if (kept_[last].memory + kept_[last].size == kept_[i].memory) {
      kept_[last].size += kept_[i].size;
      kept_[last].since = std::max(kept_[last].since, kept_[i].since);
    } else {
      kept_[++last] = kept_[i];
    }
  }
  kept_.resize(std::min(kept_.size(), last + 1));
  std::sort(kept_.begin(), kept_.end(), [](const Block& a, const Block& b) { return a.since < b.since; });
}

KeptBlocks::Block KeptBlocks::take(size_t size) {
  auto found = smallest(size);
  if (found == kept_.end() && kept_bytes_ >= size) {
    join();
    found = smallest(size);
  }
  if (found == kept_.end()) return {nullptr, 0};
  Block taken = *found;
  if (taken.size - size >= least_) {
    found->memory += size;
    found->size -= size;
    taken.size = size;
  } else {
    kept_.erase(found);
  }
  kept_bytes_ -= taken.size;
  use(taken.size);
  return taken;
}

void KeptBlocks::keep(char* memory, size_t size, Clock::time_point now) {
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

bool KeptBlocks::pop_excess(Block* out, size_t most_kept) {
  const size_t most = most_at_once();
  most_kept = std::min(most_kept, most - std::min(most, in_use_));
  if (kept_.empty() || (kept_.size() <= kMostBlocks && kept_bytes_ <= most_kept)) return false;
  Block& oldest = kept_.front();
  const size_t excess = kept_bytes_ - std::min(kept_bytes_, most_kept);
  if (kept_.size() > kMostBlocks || oldest.size < excess + least_) return *out = pop_oldest(), true;
  oldest.size -= excess;
  kept_bytes_ -= excess;
  *out = {oldest.memory + oldest.size, excess, oldest.since};
  return true;
}

bool KeptBlocks::pop_aged(Clock::time_point limit, Block* out) {
  if (kept_.empty() || kept_.front().since > limit) return false;
  *out = pop_oldest();
  most_ = in_use_ + kept_bytes_;
  return true;
}

}  // namespace dalsegno::replay
