#pragma once
#include <cstdint>

namespace dalsegno::native {

// What many places of a region need stands behind it once, as functions (ir_shared.cc).
enum class Shared : uint8_t {
  kBox,     // of a number that is kept in its own kind of box: a new reference, or null
  kFresh,   // the same of one that lasts
  kPutInt,  // an item of a list becomes an int: done? Nothing is, where it was the last reference to something else
  kRetire,  // the last reference to an int, a float or a complex number is dropped
  kKeep,    // the last reference to a box, which is kept if there is room: is it?
  kIntOf,   // the number in what may be an int, or kNoNumber
  kPut,     // an object takes the place of another one that nobody else holds: done? Nothing is, unless that is a number
};
constexpr const char* kNoNumber = "-9223372036854775808";

}  // namespace dalsegno::native
