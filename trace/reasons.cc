// Texts of the table of reasons. Any thread; the strings are static.
#include "trace/reasons.h"

#include <array>
#include <cstddef>

namespace dalsegno {
namespace {

struct Row {
  const char* name;
  const char* text;
  const char* remedy;
};

constexpr std::array kRows = {
#define X(name, text, remedy) Row{#name, text, remedy},
    DALSEGNO_REASONS(X)
#undef X
};

// A value read from outside may be out of range.
const Row& row(Reason reason) {
  static constexpr Row kUnknown{"unknown", "", ""};
  const auto i = static_cast<size_t>(reason);
  return i < kRows.size() ? kRows[i] : kUnknown;
}

}  // namespace

const char* reason_name(Reason reason) { return row(reason).name; }
std::optional<Reason> reason_named(std::string_view name) {
  for (size_t i = 0; i < kRows.size(); ++i)
    if (kRows[i].name == name) return static_cast<Reason>(i);
  return std::nullopt;
}
const char* reason_text(Reason reason) { return row(reason).text; }
const char* reason_remedy(Reason reason) { return row(reason).remedy; }

}  // namespace dalsegno
