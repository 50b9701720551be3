// For stretches.cc and wide.h: how a mask is gone through, and what is done with its words in plain C++. `Work` has all(first, n), for
// items that are all wanted, and some(first, word, n), for up to 64 of which those with a bit in the word are.
#pragma once
#include <algorithm>
#include <bit>
#include <cstring>

#include "replay/masks/stretches.h"

namespace dalsegno::replay::masks {

constexpr int64_t kWord = 64, kWords = 4;  // mask bytes that become a word of bits, and words that are looked at together
constexpr int64_t kFew = 4, kMost = 61;    // items of 64: no more are done without a branch, more by eights
constexpr uint64_t kAll = ~uint64_t{0};

struct Sixteen {
  uint64_t a, b;
};

template <class T>
T item(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
void set(char* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

// The highest bit of each byte that is not 0 is set, and the product brings them together.
inline uint64_t bits_of_eight(const char* m) {
  constexpr uint64_t kLow = 0x7f7f7f7f7f7f7f7f;
  const auto bytes = item<uint64_t>(m);
  const uint64_t high = (((bytes & kLow) + kLow) | bytes) & ~kLow;
  return (high >> 7) * 0x0102040810204080 >> 56;
}

// A bit for each of n <= 64 bytes that is not 0.
inline uint64_t bits_of(const char* m, int64_t step, int64_t n) {
  uint64_t word = 0;
  int64_t i = 0;
  if (step == 1)
    for (; i + 8 <= n; i += 8) word |= bits_of_eight(m + i) << i;
  for (; i < n; ++i) word |= static_cast<uint64_t>(m[i * step] != 0) << i;
  return word;
}

// Always inline: it is compiled for the instructions that its caller may use. Bits::word() is bits_of() for 64 neighbours,
// Bits::less() for some.
template <class Bits, class Work>
[[gnu::always_inline]] inline void walk(const Mask& mask, Work& work) {
  int64_t first = 0, full = 0;  // that many before `first` are all wanted, and have not been done yet
  for (; mask.step == 1 && first + kWord * kWords <= mask.n; first += kWord * kWords) {  // most masks are all true or false over stretches
    uint64_t words[kWords], any = 0, all = kAll;
#pragma GCC unroll 4
    for (int64_t i = 0; i < kWords; ++i) words[i] = Bits::word(mask.at + first + i * kWord), any |= words[i], all &= words[i];
    if (all == kAll) {
      full += kWord * kWords;
      continue;
    }
    if (full != 0) work.all(first - full, full), full = 0;
    if (any == 0) continue;
    for (int64_t i = 0; i < kWords; ++i) work.some(first + i * kWord, words[i], kWord);
  }
  if (full != 0) work.all(first - full, full);
  for (; first < mask.n; first += kWord) {
    const int64_t n = std::min(mask.n - first, kWord);
    const char* m = mask.at + first * mask.step;
    work.some(first, mask.step != 1 ? bits_of(m, mask.step, n) : n == kWord ? Bits::word(m) : Bits::less(m, n), n);
  }
}

// A word with few gaps: eight items at once are done without looking.
template <class Work>
[[gnu::always_inline]] inline void by_eights(Work& work, int64_t first, uint64_t word) {
  for (int64_t i = first; word != 0; i += 8, word >>= 8) {
    if ((word & 0xff) == 0xff) {
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) work.one(i + j);
      continue;
    }
    for (uint64_t bits = word & 0xff; bits != 0; bits &= bits - 1) work.one(i + std::countr_zero(bits));
  }
}

template <class T>
struct Take {
  Items from;
  char* to;
  int64_t room;

  [[gnu::always_inline]] void all(int64_t first, int64_t n) {
    const char* at = from.at + first * from.step;
    n = std::min(n, room);
    if (from.step == sizeof(T)) {
      std::memcpy(to, at, static_cast<size_t>(n) * sizeof(T));
    } else {
      for (int64_t i = 0; i < n; ++i) set(to + i * static_cast<int64_t>(sizeof(T)), item<T>(at + i * from.step));
    }
    to += n * static_cast<int64_t>(sizeof(T)), room -= n;
  }

  [[gnu::always_inline]] void one(int64_t i) { set(to, item<T>(from.at + i * from.step)), to += sizeof(T); }

  // Takes kFew, whatever is wanted: behind those that are, the first item of all follows, and is overwritten by the next that is taken.
  // False: more are wanted, or there is no room.
  [[gnu::always_inline]] bool few(int64_t first, uint64_t word, int64_t many) {
    if (many > kFew || room < kFew) return false;
    const char* at = from.at + first * from.step;
#pragma GCC unroll 4
    for (int64_t i = 0; i < kFew; ++i, word &= word - 1)
      set(to + i * static_cast<int64_t>(sizeof(T)), item<T>(at + std::countr_zero(word) % kWord * from.step));
    to += many * static_cast<int64_t>(sizeof(T)), room -= many;
    return true;
  }

  [[gnu::always_inline]] void some(int64_t first, uint64_t word, int64_t n) {
    const int64_t many = std::popcount(word);
    if (few(first, word, many)) return;
    if (word == kAll) return all(first, kWord);
    if (many > kMost && room >= many) {
      by_eights(*this, first, word);
      room -= many;
      return;
    }
    const char* at = from.at + first * from.step;
    if (many > kWord / 2 && room > many) {  // then every item is copied, and how far the result has come depends on the mask
      for (; n > 0; --n, at += from.step, word >>= 1) set(to, item<T>(at)), to += (word & 1) * sizeof(T);
      room -= many;
      return;
    }
    for (; word != 0 && room > 0; word &= word - 1, --room, to += sizeof(T)) set(to, item<T>(at + std::countr_zero(word) * from.step));
  }
};

template <class T>
struct Put {
  Items to;
  const char* from;
  int64_t step, left;

  [[gnu::always_inline]] void all(int64_t first, int64_t n) {
    char* at = to.at + first * to.step;
    n = std::min(n, left);
    if (to.step == sizeof(T) && step == sizeof(T)) {
      std::memcpy(at, from, static_cast<size_t>(n) * sizeof(T));
    } else {
      for (int64_t i = 0; i < n; ++i) set(at + i * to.step, item<T>(from + i * step));
    }
    from += n * step, left -= n;
  }

  [[gnu::always_inline]] void one(int64_t i) { set(to.at + i * to.step, item<T>(from)), from += step; }

  [[gnu::always_inline]] void some(int64_t first, uint64_t word, int64_t) {
    if (word == kAll) return all(first, kWord);
    if (std::popcount(word) > kMost && left >= kWord) {
      by_eights(*this, first, word);
      left -= std::popcount(word);
      return;
    }
    char* at = to.at + first * to.step;
    for (; word != 0 && left > 0; word &= word - 1, --left, from += step) set(at + std::countr_zero(word) * to.step, item<T>(from));
  }
};

template <class T>
struct Fill {
  Items to;
  T value;

  [[gnu::always_inline]] void all(int64_t first, int64_t n) {
    char* at = to.at + first * to.step;
    if (to.step == sizeof(T)) {
      for (int64_t i = 0; i < n; ++i) set(at + i * static_cast<int64_t>(sizeof(T)), value);
    } else {
      for (int64_t i = 0; i < n; ++i) set(at + i * to.step, value);
    }
  }

  [[gnu::always_inline]] void one(int64_t i) { set(to.at + i * to.step, value); }

  [[gnu::always_inline]] void some(int64_t first, uint64_t word, int64_t) {
    if (word == kAll) return all(first, kWord);
    if (std::popcount(word) > kMost) return by_eights(*this, first, word);
    char* at = to.at + first * to.step;
    for (; word != 0; word &= word - 1) set(at + std::countr_zero(word) * to.step, value);
  }
};

}  // namespace dalsegno::replay::masks
