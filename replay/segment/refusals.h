// Data that keep raising flags are left to NumPy for a while, ever longer: what is done before flags are seen is lost each time.
#pragma once
#include <algorithm>

namespace dalsegno::replay {

class Refusals {
 public:
  // Is this call left to NumPy?
  bool refuse() { return left_ > 0 && (--left_, true); }
  void flagged() {
    if (++streak_ >= 3) left_ = 1 << std::min(streak_, 10);
  }
  void went_well() { streak_ = 0; }

 private:
  int streak_ = 0;  // calls, one after the other, that a flag came up in
  int left_ = 0;    // calls to be refused
};

}  // namespace dalsegno::replay
