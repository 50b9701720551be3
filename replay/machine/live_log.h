// Which object registers own a reference, as a program goes on.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace dalsegno::replay {

// The changes in order, written down once: an exit plan names a point among them, so that all plans together are linear in the program.
class LiveLog {
 public:
  void begins(int32_t reg) {
    if (static_cast<size_t>(reg) >= owned_.size()) owned_.resize(static_cast<size_t>(reg) + 1);
    owned_[reg] = true;
    changes_.push_back(reg);
  }
  // False: it owned nothing.
  bool ends(int32_t reg) {
    if (reg < 0 || static_cast<size_t>(reg) >= owned_.size() || !owned_[reg]) return false;
    owned_[reg] = false;
    changes_.push_back(~reg);
    return true;
  }
  int32_t now() const { return static_cast<int32_t>(changes_.size()); }

  // The registers that owned a reference then, in the order in which they began to.
  std::vector<int32_t> at(int32_t point) const {
    std::vector<int32_t> regs;
    std::unordered_map<int32_t, size_t> place;
    for (int32_t i = 0; i < point; ++i) {
      const int32_t change = changes_[i];
      if (change >= 0) {
        place[change] = regs.size();
        regs.push_back(change);
      } else {
        regs[place[~change]] = -1;
      }
    }
    std::erase(regs, -1);
    return regs;
  }

 private:
  std::vector<int32_t> changes_;  // a register, or ~register where it ends
  std::vector<bool> owned_;       // now, by register
};

}  // namespace dalsegno::replay
