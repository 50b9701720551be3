// Machine code for a kernel's expression stages within microseconds, by an assembler (Xbyak) alone: what runs until LLVM has compiled the
// same expressions, which takes milliseconds (llvm_text.h). One pass over the values in order, a register each (Poletto, Sarkar, Linear
// Scan Register Allocation, TOPLAS 1999, with values instead of intervals); rows by whole vectors, and what is left of a row by one under a
// mask, so that nothing is computed, and no flag raised, where no element is. Processors with AVX-512 only. Any thread.
#pragma once
#include <memory>

#include "halide_gen/plan/plan.h"

namespace dalsegno::halide_gen {

class AssembledCode {
 public:
  virtual ~AssembledCode() = default;
  // Called as the functions of compiled kernels are. Null for stages that are NumPy's loops.
  virtual int (*stage(size_t i) const)(void** arguments) = 0;
};

bool processor_suits_assembler();
// Null: it does not, or some expression is not covered.
std::shared_ptr<const AssembledCode> assemble(const KernelSpec& spec, const Plan& plan);

}  // namespace dalsegno::halide_gen
