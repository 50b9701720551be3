// For tests: traces that verify() accepts, small by hand or random by seed.
#pragma once
#include <random>
#include <utility>
#include <vector>

#include "trace/trace.h"

namespace dalsegno::testing {

// A trace, op by op.
class TraceBuilder {
 public:
  Trace trace;

  int32_t add(OpKind kind, const std::vector<ValueId>& inputs = {}, int32_t imm = 0) {
    Op op;
    op.kind = kind;
    op.imm = imm;
    op.first_input = static_cast<int32_t>(trace.inputs.size());
    op.n_inputs = static_cast<int32_t>(inputs.size());
    trace.inputs.insert(trace.inputs.end(), inputs.begin(), inputs.end());
    trace.ops.push_back(op);
    return static_cast<int32_t>(trace.ops.size()) - 1;
  }
  int32_t snapshot(const Snapshot& s) { return trace.snapshots.add(s, std::exchange(like, -1)); }
  int32_t like = -1;  // what the next one is written as a delta to
  Op& last() { return trace.ops.back(); }
};

// def job(x, w): `x * w + 1`, its sum guarded to be true, returned.
Trace small_trace();

// A well-formed trace with `ops` ops between parameters and end, of every kind, with awkward names and sources. Same seed, same trace.
Trace random_trace(std::mt19937_64& random, int ops);

}  // namespace dalsegno::testing
