// Ints modulo 2**64. What only goes through + - * & | ^ << - ~ to a constant mask below 2**64, or to the remainder of a power of two up to
// 2**64, is `wrapped`: computed modulo 2**64, which nobody can tell, since no slot shows it where the run may leave. What a mask of 64 bits
// gives is a `natural`. No Python.h here.
#pragma once
#include <optional>

#include "replay/typed/typed_trace.h"

namespace dalsegno::typed {

// `x & mask`, `mask & x` or `x % (mask + 1)`.
struct Masked {
  int32_t operand = 0;  // which input x is
  uint64_t mask = 0;
};
std::optional<Masked> masked_by(const Trace& trace, const Knowledge& known, const Op& op);
// Is it done as a mask of what is computed modulo 2**64?
inline bool is_masked(const OpForm& form) { return form.typed.operand == Rep::kWrapped && form.typed.result != Rep::kWrapped; }

}  // namespace dalsegno::typed
