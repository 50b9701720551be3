// np.roll without a copy. Along an axis of n elements that were moved by s, what belongs to place i lies at i - s, or, for i < s, at
// i - s + n: two straight pieces. So an iteration whose operands are rolled is done in boxes, cut along each axis where some operand begins
// anew; within a box every operand is a plain view. A stencil on a torus is one large box, with thin ones at its edges.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "halide_gen/runtime/launch.h"
#include "replay/segment/casts.h"
#include "replay/segment/layout.h"

namespace dalsegno::replay {

class RolledBoxes {
 public:
  // Calls launch() with each box's extents, the operands' `data` being where it begins.
  template <class Launch>
  void run(rt::LaunchOperand* in, int n_in, rt::LaunchOperand* out, int n_out, const Launch& launch) const {
    char *first_in[rt::kMaxOperands], *first_out[rt::kMaxOperands];
    for (int k = 0; k < n_in; ++k) first_in[k] = in[k].data;
    for (int k = 0; k < n_out; ++k) first_out[k] = out[k].data;
    size_t at[kMaxLayoutRank] = {};
    for (;;) {
      Layout box = whole_;
      box.size = 1;
      for (int d = 0; d < box.loop_rank; ++d) box.size *= box.extents[d] = cuts_[d][at[d] + 1] - cuts_[d][at[d]];
      for (int k = 0; k < n_in; ++k) in[k].data = first_in[k] + offset(k, in[k], at);
      for (int k = 0; k < n_out; ++k) out[k].data = first_out[k] + offset(-1, out[k], at);
      launch(box);
      int d = 0;
      for (; d < box.loop_rank && ++at[d] + 1 == cuts_[d].size(); ++d) at[d] = 0;
      if (d == box.loop_rank) return;
    }
  }

 private:
  friend std::optional<RolledBoxes> rolled_boxes(const Layout&, const SegmentSpec&, const std::vector<KernelSource>&);
  int64_t offset(int source, const rt::LaunchOperand& operand, const size_t* at) const;

  Layout whole_;
  std::vector<int64_t> cuts_[kMaxLayoutRank];               // along each axis of the iteration, with its ends
  std::vector<std::array<int64_t, kMaxLayoutRank>> moved_;  // per source and axis: 0 up to the extent
  std::vector<bool> scalar_;
};

// Of a layout made for rolls. None: there would be too many.
std::optional<RolledBoxes> rolled_boxes(const Layout& layout, const SegmentSpec& spec, const std::vector<KernelSource>& sources);

}  // namespace dalsegno::replay
