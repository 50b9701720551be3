// What instructions do with registers natively: the unboxed ones that they read or write, and those that they put an object into.
#pragma once
#include <cstdint>
#include <vector>

#include "replay/native/region.h"

namespace dalsegno::native {

using typed::Bits;
using typed::bits_of;

struct Use {
  int32_t reg;
  Bits bits;
  bool written;
};
std::vector<Use> uses_of(const Instr& in);
// Does it put an object that stands somewhere already into dst?
bool gives_object(Do what);

}  // namespace dalsegno::native
