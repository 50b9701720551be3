#include "replay/memory/mapped_blocks.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <iterator>

namespace dalsegno::replay {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = 2 << 20;
constexpr size_t kLeastHuge = 4 << 20;  // indicate_hugepages() of numpy/_core/src/multiarray/alloc.c
constexpr size_t kPlaces = 16;

std::atomic<uintptr_t> lowest = UINTPTR_MAX, highest = 0;  // where mappings have been

void note(const char* block, size_t bytes) {
  const auto from = reinterpret_cast<uintptr_t>(block);
  for (uintptr_t seen = lowest; from < seen && !lowest.compare_exchange_weak(seen, from);) {
  }
  for (uintptr_t seen = highest; from + bytes > seen && !highest.compare_exchange_weak(seen, from + bytes);) {
  }
}

}  // namespace

size_t block_for(size_t size) {
  const size_t unit = size < kLeastHuge ? kPage : kHugePage;
  return (size + kPage + unit - 1) / unit * unit;
}

char* map_block(size_t bytes, bool huge) {
  void* block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) return nullptr;
  if (huge && bytes >= kLeastHuge) madvise(block, bytes, MADV_HUGEPAGE);
  note(static_cast<char*>(block), bytes);
  return static_cast<char*>(block);
}

void unmap_block(char* block, size_t bytes) { munmap(block, bytes); }

char* resize_block(char* block, size_t bytes, size_t now) {
  void* moved = mremap(block, bytes, now, MREMAP_MAYMOVE);
  if (moved != MAP_FAILED) return note(static_cast<char*>(moved), now), static_cast<char*>(moved);
  char* copy = map_block(now, false);  // (what was mapped in parts cannot be moved as one)
  if (!copy) return nullptr;
  std::memcpy(copy, block, std::min(bytes, now));
  unmap_block(block, bytes);
  return copy;
}

bool is_touched(void* memory, size_t bytes) {
  constexpr size_t kAtOnce = 4096;  // pages
  unsigned char states[kAtOnce];
  char* const first = block_of(memory);
  const auto before = static_cast<size_t>(static_cast<char*>(memory) - first);
  const size_t all = (before + bytes + kPage - 1) / kPage;
  size_t count = 0;
  for (size_t page = 0; page < all; page += kAtOnce) {
    const size_t pages = std::min(kAtOnce, all - page);
    if (mincore(first + page * kPage, pages * kPage, states) != 0) return false;
    count += static_cast<size_t>(std::count_if(states, states + pages, [](unsigned char state) { return (state & 1) != 0; }));
  }
  return 2 * count >= all;
}

bool was_touched(void* memory, size_t bytes) {
  struct Answer {
    void* memory = nullptr;
    size_t bytes = 0;
    int uses = 0;
  };
  constexpr int kUses = 32;
  thread_local Answer answers[16];
  Answer& answer = answers[reinterpret_cast<uintptr_t>(memory) / kPage % std::size(answers)];
  if (answer.memory == memory && answer.bytes >= bytes && answer.uses > 0) return --answer.uses, true;
  if (!is_touched(memory, bytes)) return false;
  answer = {memory, bytes, kUses};
  return true;
}

size_t next_place() {
  static std::atomic<size_t> turn = 0;
  return turn.fetch_add(1, std::memory_order_relaxed) % kPlaces * (kPage / kPlaces);
}

char* block_of(void* array) { return static_cast<char*>(array) - reinterpret_cast<uintptr_t>(array) % kPage; }

bool may_be_mapped(const void* array) {
  const auto address = reinterpret_cast<uintptr_t>(array);
  return address >= lowest.load(std::memory_order_relaxed) && address < highest.load(std::memory_order_relaxed);
}

}  // namespace dalsegno::replay
