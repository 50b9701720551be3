#include "replay/memory/mapped_blocks.h"

#include <sys/mman.h>

#include <atomic>
#include <bit>
#include <cstdint>

namespace dalsegno::replay {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = 2 << 20;
constexpr size_t kLeastHuge = 4 << 20;  // indicate_hugepages() of numpy/_core/src/multiarray/alloc.c
constexpr size_t kPlaces = 16;

std::atomic<size_t> mapped = 0;
std::atomic<uintptr_t> lowest = UINTPTR_MAX, highest = 0;  // where mappings have been

size_t round_up(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }

// Of the mapping: the block begins somewhere in its first page.
size_t length_of(size_t room) { return round_up(room + kPage, room < kLeastHuge ? kPage : kHugePage); }
char* start_of(void* memory) { return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(memory) / kPage * kPage); }

void note(const char* start, size_t length) {
  const auto from = reinterpret_cast<uintptr_t>(start);
  for (uintptr_t seen = lowest; from < seen && !lowest.compare_exchange_weak(seen, from);) {
  }
  for (uintptr_t seen = highest; from + length > seen && !highest.compare_exchange_weak(seen, from + length);) {
  }
}

}  // namespace

size_t room_for(size_t size) { return round_up(size, std::bit_floor(size) / 8); }

void* map_block(size_t room, bool huge) {
  static std::atomic<size_t> made = 0;
  const size_t length = length_of(room);
  void* start = MAP_FAILED;
  if (++mapped <= kMostMapped) start = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return --mapped, nullptr;
  if (huge && room >= kLeastHuge) madvise(start, length, MADV_HUGEPAGE);
  note(static_cast<char*>(start), length);
  return static_cast<char*>(start) + made.fetch_add(1, std::memory_order_relaxed) % kPlaces * (kPage / kPlaces);
}

void unmap_block(void* memory, size_t room) {
  munmap(start_of(memory), length_of(room));
  --mapped;
}

void* resize_block(void* memory, size_t room, size_t new_room) {
  char* start = start_of(memory);
  void* moved = mremap(start, length_of(room), length_of(new_room), MREMAP_MAYMOVE);
  if (moved == MAP_FAILED) return nullptr;
  note(static_cast<char*>(moved), length_of(new_room));
  return static_cast<char*>(moved) + (static_cast<char*>(memory) - start);
}

bool may_be_mapped(const void* memory) {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  return address >= lowest.load(std::memory_order_relaxed) && address < highest.load(std::memory_order_relaxed);
}

}  // namespace dalsegno::replay
