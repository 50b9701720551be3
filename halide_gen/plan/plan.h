// Cuts a kernel into stages: groups of Halide expressions, and NumPy's own inner loops. Values that pass between stages lie in
// cache-sized scratch tiles. The compiler (one function per expression stage) and the launcher follow the same plan.
#pragma once
#include <cstdint>
#include <vector>

#include "halide_gen/plan/kernel.h"

namespace dalsegno::halide_gen {

struct Ref {
  enum Kind : uint8_t { kInput, kOutput, kScratch } kind = kInput;
  uint8_t dtype = 0;   // DType
  uint8_t size = 0;    // bytes of an element
  uint8_t scalar = 0;  // an input passed by value
  int32_t index = 0;   // which input, output (in order of ops) or scratch slot
  bool operator==(const Ref&) const = default;
};

struct Stage {
  int loop_op = -1;          // the op whose inner loop it is; -1: an expression stage
  std::vector<int> ops;      // expression stage: ops computed here, in order
  std::vector<int> sources;  // values read: op index, or ~input; same order as `reads`
  std::vector<Ref> reads;
  std::vector<int> results;  // ops stored; same order as `writes`
  std::vector<Ref> writes;
};

struct Plan {
  std::vector<Stage> stages;
  int scratch_slots = 0;
  int tile = 0;                 // elements of a scratch tile; 0: no tiles, one expression stage over the whole iteration
  bool loops = false;           // has NumPy loops
  bool guards_invalid = false;  // an "invalid" flag must leave even where errstate ignores it
};

Plan make_plan(const KernelSpec& spec);

}  // namespace dalsegno::halide_gen
