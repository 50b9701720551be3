// The unboxed registers that an instruction reads or writes natively.
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

}  // namespace dalsegno::native
