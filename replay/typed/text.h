// The canonical text of a typed trace: all that code is generated from, and nothing else (no lines, no sources of objects, no addresses).
// The same trace with the same knowledge gives the same text in every process, so its digest is the key of the code in a store; a
// generator in another thread or process reads it back. No Python.h here.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "replay/typed/typed_trace.h"

namespace dalsegno::typed {

std::string to_text(const TypedTrace& typed);

struct OwnedTrace {
  std::unique_ptr<Trace> trace;  // without what is for people, and without names and sources of objects
  TypedTrace typed;              // of it
};
// Nothing: it is no such text, or of another version. Neither trace has been verified: use verify() of both.
std::optional<OwnedTrace> from_text(const std::string& text);

}  // namespace dalsegno::typed
