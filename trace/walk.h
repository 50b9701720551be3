// What an iterator goes through step by step, where its items need no object: bytes, text, or several things at once (enumerate, zip). As
// the recorder saw it; whoever takes items so looks again each time. It stands in an iter_next's imm, behind the bit that says whether an
// item is expected. No Python.h here.
#pragma once
#include <cstdint>
#include <string>

#include "trace/array_fn.h"

namespace dalsegno {

// X(name, text)
#define DALSEGNO_WALKED(X)                                          \
  X(kNothing, "")                                                   \
  X(kCount, "count") /* enumerate's numbers */                      \
  X(kRange, "range")                                                \
  X(kList, "list")                                                  \
  X(kTuple, "tuple")                                                \
  X(kBytes, "bytes")                                                \
  X(kBytearray, "bytearray")                                        \
  X(kAscii, "ascii") /* text of nothing but ASCII, and any other */ \
  X(kText, "text")                                                  \
  X(kArray, "array") /* of one dimension */

enum class Walked : uint8_t {
#define X(name, text) name,
  DALSEGNO_WALKED(X)
#undef X
      kKinds
};

enum class Holder : uint8_t { kNone, kEnumerate, kZip };

constexpr int kMostWalked = 3;

struct Walk {
  Holder holder = Holder::kNone;
  Walked over[kMostWalked] = {};   // enumerate: first kCount
  DType dtypes[kMostWalked] = {};  // of arrays

  int n() const {
    int n = 0;
    while (n < kMostWalked && over[n] != Walked::kNothing) ++n;
    return n;
  }
  bool operator==(const Walk&) const = default;
};

// The immediate of an iter_next: 1: an item is expected.
constexpr bool expects_item(int32_t imm) { return (imm & 1) != 0; }
int32_t with_walk(int32_t imm, const Walk& walk);
Walk walk_of(int32_t imm);  // of what with_walk() has not made: n() is 0, or is_walk() says no
bool is_walk(const Walk& walk);
std::string walk_text(const Walk& walk);  // "" where n() is 0

}  // namespace dalsegno
