#include "replay/segment/rolls.h"

#include <algorithm>

#include "trace/fault.h"

namespace dalsegno::replay {
namespace {

constexpr size_t kMostBoxes = 81;  // of four operands along each of four axes, or eight rolled ones in two: 25

// The axis of the iteration, innermost first, for an axis of the results; -1: of one element.
int loop_axis(const Layout& layout, int axis) {
  if (layout.shape[axis] == 1) return -1;
  int found = 0;
  for (int d = layout.rank - 1; d > axis; --d) found += layout.shape[d] != 1;
  return found;
}

}  // namespace

std::optional<RolledBoxes> rolled_boxes(const Layout& layout, const SegmentSpec& spec, const std::vector<KernelSource>& sources) {
  RolledBoxes made;
  made.whole_ = layout;
  for (int d = 0; d < layout.loop_rank; ++d) made.cuts_[d] = {0, layout.extents[d]};
  for (const KernelSource& source : sources) {
    auto& moved = made.moved_.emplace_back();
    made.scalar_.push_back(source.scalar);
    moved.fill(0);
    for (const Shift& shift : source.shifts) {
      const int d = loop_axis(layout, shift.axis + layout.rank - spec.inputs[static_cast<size_t>(source.input)].rank);
      if (d < 0 || layout.inputs[source.input].at[d] == 0) continue;  // of one element, which moves nowhere
      const int64_t n = layout.extents[d];
      moved[static_cast<size_t>(d)] = (shift.by % n + n) % n;
      made.cuts_[d].push_back(moved[static_cast<size_t>(d)]);
    }
  }
  size_t boxes = 1;
  for (int d = 0; d < layout.loop_rank; ++d) {
    std::vector<int64_t>& cuts = made.cuts_[d];
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    boxes *= cuts.size() - 1;
  }
  if (boxes > kMostBoxes) return {};
  return made;
}

int64_t RolledBoxes::offset(int source, const rt::LaunchOperand& operand, const size_t* at) const {
  int64_t elements = 0;
  if (source >= 0 && scalar_[static_cast<size_t>(source)]) return 0;
  for (int d = 0; d < whole_.loop_rank; ++d) {
    int64_t first = cuts_[d][at[d]];
    const int64_t moved = source < 0 ? 0 : moved_[static_cast<size_t>(source)][static_cast<size_t>(d)];
    if (moved != 0) first = first - moved + (first < moved && !planted(Fault::lost_turn) ? whole_.extents[d] : 0);
    if (first < 0) first = 0;
    elements += first * operand.strides[d];
  }
  return elements * operand.size;
}

}  // namespace dalsegno::replay
