// What each op kind must carry beside its inputs: the one table verify() and the lowering's assumptions rest on. No Python.h.
// A kind without a row does not compile.
#pragma once
#include <climits>
#include <cstdint>

#include "trace/trace.h"

namespace dalsegno {

enum Needs : uint8_t {
  kNothing = 0,
  kObject = 1,         // op.object
  kObject2 = 2,        // op.object2
  kName = 4,           // op.name
  kFacts = 8,          // op.facts
  kSnapshot = 16,      // op.snapshot: it leaves, or raises in the ordinary course of things
  kExitSnapshot = 32,  // op.exit_snapshot (no other kind may have one)
  kImmObject = 64,     // op.imm is an index into Trace::objects
};

struct OpRule {
  OpKind kind;
  uint8_t needs;
  int32_t imm_low = INT32_MIN;  // op.imm lies in [imm_low, imm_high]
  int32_t imm_high = INT32_MAX;
  int32_t min_inputs = 0;  // where the op table says "varies"
  int32_t max_inputs = INT32_MAX;
};

// The row of a kind, which must be in range.
const OpRule& op_rule(OpKind kind);

}  // namespace dalsegno
