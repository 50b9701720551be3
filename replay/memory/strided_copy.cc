#include "replay/memory/strided_copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

namespace dalsegno::replay {
namespace {

constexpr int kMostAxes = 32;
constexpr intptr_t kShortRow = 8;  // items: copying a row at once costs more than its items do one by one
constexpr intptr_t kTile = 16;     // items a side: two to four cache lines of what is read across

struct Axis {
  intptr_t size, from, to;
};

// The innermost one last. -1: there is nothing to be copied.
int arrange(const CopiedSpace& space, const char** from, char** to, Axis* axes) {
  int n = 0;
  for (int d = 0; d < space.rank; ++d) {
    if (space.shape[d] == 0) return -1;
    if (space.shape[d] == 1) continue;
    Axis axis{space.shape[d], space.from_strides[d], space.to_strides[d]};
    if (axis.to < 0) {
      *from += (axis.size - 1) * axis.from, *to += (axis.size - 1) * axis.to;
      axis.from = -axis.from, axis.to = -axis.to;
    }
    int at = n++;
    for (; at > 0 && axes[at - 1].to < axis.to; --at) axes[at] = axes[at - 1];
    axes[at] = axis;
  }
  int last = 0;
  for (int k = 1; k < n; ++k) {
    const Axis& inner = axes[k];
    Axis& outer = axes[last];
    if (outer.from == inner.from * inner.size && outer.to == inner.to * inner.size) {
      outer = {outer.size * inner.size, inner.from, inner.to};
    } else {
      axes[++last] = inner;
    }
  }
  return n == 0 ? 0 : last + 1;
}

template <class Move>
void row(const char* from, char* to, const Axis& axis, const Move& move) {
  for (intptr_t i = 0; i < axis.size; ++i) move(to + i * axis.to, from + i * axis.from);
}

template <class Move>
void tiles(const char* from, char* to, const Axis& outer, const Axis& inner, const Move& move) {
  for (intptr_t i = 0; i < outer.size; i += kTile) {
    const intptr_t rows = std::min(kTile, outer.size - i);
    for (intptr_t j = 0; j < inner.size; j += kTile) {
      const Axis part{std::min(kTile, inner.size - j), inner.from, inner.to};
      for (intptr_t r = i; r < i + rows; ++r) row(from + r * outer.from + j * inner.from, to + r * outer.to + j * inner.to, part, move);
    }
  }
}

template <class Move>
void copy_axes(const char* from, char* to, const Axis* axes, int n, intptr_t item, bool one_by_one, const Move& move) {
  if (n == 2 && axes[1].size <= kShortRow) {
    for (intptr_t i = 0; i < axes[0].size; ++i) row(from + i * axes[0].from, to + i * axes[0].to, axes[1], move);
  } else if (n > 2 || (n == 2 && (one_by_one || std::abs(axes[0].from) >= std::abs(axes[1].from)))) {
    for (intptr_t i = 0; i < axes[0].size; ++i)
      copy_axes(from + i * axes[0].from, to + i * axes[0].to, axes + 1, n - 1, item, one_by_one, move);
  } else if (n == 2) {
    tiles(from, to, axes[0], axes[1], move);
  } else if (axes[0].from == item && axes[0].to == item && !one_by_one) {
    copy_bytes(to, from, static_cast<size_t>(axes[0].size * item));
  } else {
    row(from, to, axes[0], move);
  }
}

template <size_t kSize>
auto mover() {
  return [](char* to, const char* from) { std::memcpy(to, from, kSize); };
}

}  // namespace

void copy_bytes(char* to, const char* from, size_t n) {
  constexpr size_t kPiece = 63 * 32, kMost = 512 << 10;
  while (n > kPiece && n <= kMost) {
    size_t piece = kPiece;
    asm("" : "+r"(piece));  // (else GCC does it by `rep movsq`)
    std::memcpy(to, from, piece);
    to += piece, from += piece, n -= piece;
  }
  std::memcpy(to, from, n);
}

void copy_strided(const char* from, char* to, const CopiedSpace& space, bool one_by_one) {
  Axis axes[kMostAxes] = {};
  const int n = arrange(space, &from, &to, axes);
  if (n < 0) return;
  const auto with = [&](const auto& move) {
    if (n == 0) return move(to, from);
    copy_axes(from, to, axes, n, static_cast<intptr_t>(space.item), one_by_one, move);
  };
  switch (space.item) {
    case 1:
      return with(mover<1>());
    case 2:
      return with(mover<2>());
    case 4:
      return with(mover<4>());
    case 8:
      return with(mover<8>());
    case 16:
      return with(mover<16>());
    default:
      return with([&](char* t, const char* f) { std::memcpy(t, f, space.item); });
  }
}

void copy_rolled(const char* from, char* to, const intptr_t* shape, const intptr_t* by, int rank, size_t item) {
  size_t step = item;
  for (int d = 1; d < rank; ++d) step *= static_cast<size_t>(shape[d]);
  const auto n = static_cast<size_t>(shape[0]), moved = static_cast<size_t>(by[0]);
  if (rank == 1) {
    copy_bytes(to + moved * step, from, (n - moved) * step);
    copy_bytes(to, from + (n - moved) * step, moved * step);
    return;
  }
  for (size_t i = 0; i < n; ++i) copy_rolled(from + i * step, to + (i + moved) % n * step, shape + 1, by + 1, rank - 1, item);
}

}  // namespace dalsegno::replay
