// Memory of large arrays in mappings of their own, outside the heap of malloc(). Blocks that are kept there would lie between what eager
// code asks for and the heap's end, where glibc gives each page back as soon as it is free: a wavelet transform that took 2.9 ms took 4.3
// to 7.4 beside its own replays. Functions may be called by any thread.
#pragma once
#include <cstddef>

namespace dalsegno::replay {

constexpr size_t kLeastMapped = 32 << 10;  // bytes: what is smaller hardly ever moves the heap's end

constexpr size_t kMostMapped = 16384;  // blocks at once (a process may have 65,530 mappings: vm.max_map_count)

// What a block for `size` bytes (at least kLeastMapped) has room for: one of eight steps to the next power of two, so that arrays of about
// one size find each other's memory. What is not written costs addresses only.
size_t room_for(size_t size);
// `room` bytes (of room_for()), zero, 64-byte aligned; null: the system has none, or there are kMostMapped. Blocks begin at sixteen places
// of a page by turns: the same elements of several arrays, which kernels read together, would else all be in one set of the first-level
// cache. `huge`: large ones ask for huge pages, as NumPy's own do.
void* map_block(size_t room, bool huge);
void unmap_block(void* memory, size_t room);
// The block with its contents in another size (of room_for()), perhaps elsewhere; null: the system has no room, it is as it was.
void* resize_block(void* memory, size_t room, size_t new_room);
// False: it is not of map_block(). True: it may be.
bool may_be_mapped(const void* memory);

}  // namespace dalsegno::replay
