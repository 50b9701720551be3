// A trace as bytes and back. What is decoded is exactly what was encoded, or nothing: no byte sequence crashes the decoder, makes it
// read beyond its input, or use more memory than a small multiple of the input's size. Format: docs/store.md.
// No state; any thread. decode_trace() throws nothing but std::bad_alloc.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "trace/trace.h"

namespace dalsegno::store {

inline constexpr int kTraceVersion = 4;  // of the layout; to be raised with every change of the structs in trace.h

// Names this build's layout and tables (op kinds, array functions, reasons, dtypes), whose numbers the bytes hold. Part of every function
// key, so that builds with other tables keep traces of their own.
const std::string& format_id();

std::string encode_trace(const Trace& trace);
// Nothing if the bytes are no trace of this format_id(). The trace is not yet verified.
std::optional<Trace> decode_trace(std::string_view bytes);

}  // namespace dalsegno::store
