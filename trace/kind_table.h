// Tables by op kind: rows in any order, looked up by index. A kind with two rows does not compile.
#pragma once
#include <array>
#include <cstddef>

#include "trace/trace.h"

namespace dalsegno {

template <typename T>
struct KindRow {
  OpKind kind;
  T value;
};

// `otherwise`: what kinds without a row have.
template <typename T, size_t N>
consteval std::array<T, static_cast<size_t>(OpKind::kCount)> by_kind(const KindRow<T> (&rows)[N], T otherwise) {
  std::array<T, static_cast<size_t>(OpKind::kCount)> table{};
  std::array<bool, static_cast<size_t>(OpKind::kCount)> has_row{};
  table.fill(otherwise);
  for (const KindRow<T>& row : rows) {
    const auto kind = static_cast<size_t>(row.kind);
    if (has_row[kind]) throw "two rows of one kind";
    has_row[kind] = true;
    table[kind] = row.value;
  }
  return table;
}

}  // namespace dalsegno
