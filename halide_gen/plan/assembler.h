// Machine code for a kernel's expression stages within microseconds, by an assembler (Xbyak) alone; LLVM takes milliseconds for the same
// expressions (llvm_text.h). One pass over the values in order, a register each (Poletto, Sarkar, Linear Scan Register Allocation, TOPLAS
// 1999, with values instead of intervals); rows by whole vectors, and what is left of a row so that nothing is computed, and no flag
// raised, where no element is. Any thread.
#pragma once
#include <cstdint>
#include <memory>

#include "halide_gen/plan/plan.h"

namespace dalsegno::halide_gen {

class AssembledCode {
 public:
  virtual ~AssembledCode() = default;
  // Called as the functions of compiled kernels are. Null for stages that are NumPy's loops.
  virtual int (*stage(size_t i) const)(void** arguments) = 0;
};

// Instructions of vectors, each with those before it.
enum class Vectors : uint8_t { kNone, kAvx2, kAvx512 };
Vectors processor_vectors();
// By these, which the processor must have. Null: kNone, or some expression is not covered.
std::shared_ptr<const AssembledCode> assemble(const KernelSpec& spec, const Plan& plan, Vectors by);

}  // namespace dalsegno::halide_gen
