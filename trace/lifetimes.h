// The part of verify() that knows of `release`: a register whose value was released is empty, and the machine reads it unchecked.
#pragma once
#include <string>

#include "trace/trace.h"

namespace dalsegno {

// "" or what is wrong: a value is released twice, or used by an op or by a snapshot after its release. REQUIRES: everything else verify()
// asks.
std::string verify_lifetimes(const Trace& trace);

}  // namespace dalsegno
