// Memory of large arrays in mappings of their own, outside the heap of malloc(). Blocks that are kept there would lie between what eager
// code asks for and the heap's end, where glibc gives each page back as soon as it is free: a wavelet transform that took 2.9 ms took 4.3
// to 7.4 beside its own replays. A block is a number of whole pages; parts of one and several that lie side by side are blocks, too.
// Functions may be called by any thread.
#pragma once
#include <cstddef>

namespace dalsegno::replay {

constexpr size_t kLeastMapped = 32 << 10;  // bytes of an array: what is smaller hardly ever moves the heap's end

// Bytes of a block for an array of `size` bytes, wherever in the first page it begins.
size_t block_for(size_t size);
// Zero; null: the system has none. `huge`: large ones ask for huge pages, as NumPy's own do.
char* map_block(size_t bytes, bool huge);
void unmap_block(char* block, size_t bytes);
// The block with its contents in another size, perhaps elsewhere; null: the system has no room, it is as it was.
char* resize_block(char* block, size_t bytes, size_t now);

// Have at least half of the memory's pages been given to the process? Others cost it when it touches them.
bool is_touched(void* memory, size_t bytes);
// The same, or had they when it was asked of late: it takes a microsecond to ask, and malloc() gives the same memory again and again. (It
// may have been given back to the system meanwhile; so that is asked anew after a few times.)
bool was_touched(void* memory, size_t bytes);

// Where in its first page the next array begins, 64-byte aligned: at sixteen places by turns. The same elements of several arrays, which
// kernels read together, would else all be in one set of the first-level cache.
size_t next_place();
char* block_of(void* array);
// False: no block begins there or ever has. True: one may.
bool may_be_mapped(const void* array);

}  // namespace dalsegno::replay
