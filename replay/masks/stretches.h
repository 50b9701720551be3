// Items where a mask is true: counted, taken, put, filled. With the processor's widest instructions, 64 bytes of a mask are one word of
// bits, and most of what is done depends on how many of them there are, not on where. No GIL needed. Another thread may change the mask
// meanwhile: nothing is read or written out of bounds then.
#pragma once
#include <cstdint>

namespace dalsegno::replay::masks {

// A byte is true unless it is 0. `step`: bytes from one to the next.
struct Mask {
  const char* at;
  int64_t step, n;
};

// As many items as the mask has bytes, `step` bytes apart; aligned or not. Of 1, 2, 4, 8 or 16 bytes each: is_known().
struct Items {
  char* at;
  int64_t step;
};

bool is_known(int64_t size);

// How many bytes are 1. `odd` is set where one is neither 0 nor 1: the count says nothing then.
int64_t count(const Mask& mask, bool* odd);
// Copies the items where the mask is true to `to`, one beside the other, `room` at most: how many. `to` is nobody else's.
int64_t take(const Mask& mask, int64_t size, Items from, char* to, int64_t room);
// Overwrites the items where the mask is true, and writes nothing else, by those of `from`, `left` at most: how many.
int64_t put(const Mask& mask, int64_t size, Items to, Items from, int64_t left);
// The same, by one value.
void fill(const Mask& mask, int64_t size, Items to, const char* value);

// For tests: not the best way that this processor has. False: it has none such, and nothing has changed.
enum class Way : uint8_t { kPlain, kNewer, kWide };
bool go(Way way);
Way best_way();

}  // namespace dalsegno::replay::masks
