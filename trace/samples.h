// For tests: traces that verify() accepts, small by hand or random by seed.
#pragma once
#include <random>

#include "trace/trace.h"

namespace dalsegno::testing {

// def job(x, w): `x * w + 1`, its sum guarded to be true, returned.
Trace small_trace();

// A well-formed trace with `ops` ops between parameters and end, of every kind, with awkward names and sources. Same seed, same trace.
Trace random_trace(std::mt19937_64& random, int ops);

}  // namespace dalsegno::testing
