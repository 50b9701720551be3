// What a function's tree has learned about what pays (replay/policy.h), as it is kept between processes. Plain data; nothing that a result
// depends on, so it may be about another tree, or missing.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace dalsegno::store {

// Points of a place where recording was of no use; trace -1 is the function's entry.
struct KeptPenalty {
  int32_t trace = -1, op = -1, which = 0;
  int32_t points = 0;
  std::string reason;  // reason_name() of trace/reasons.h
  bool operator==(const KeptPenalty&) const = default;
};

// Which way was faster for calls with arguments of about these sizes.
struct KeptVerdict {
  int64_t sizes = 0;
  bool eager_wins = false;
  double replay_ns = 0, eager_ns = 0;  // nanoseconds a call
  bool operator==(const KeptVerdict&) const = default;
};

// Of how many of a function's traces machine code was made for the loop that begins with `trace`, and kept: of those with numbers below
// `below`, with at most so many steps.
struct KeptRegion {
  int32_t trace = 0, below = 0, most = 0;
  bool operator==(const KeptRegion&) const = default;
};

struct Experience {
  std::vector<KeptPenalty> penalties;
  std::vector<KeptVerdict> verdicts;
  bool operator==(const Experience&) const = default;
};

}  // namespace dalsegno::store
