// Does replay pay? Now and then a few calls are timed, replay and eager by turns; where eager is the faster one, the tree steps aside
// for a while, and then measures again. Both ways give the same results, so nobody sees it but the clock.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>

namespace dalsegno::replay {

class Pace {
 public:
  enum class Way : uint8_t { kReplay, kEager, kTimeReplay, kTimeEager };

  // How the next call is to be made.
  Way next() {
    if (aside_ > 0) {
      if (--aside_ == 0) left_ = kCalls;  // measure again
      return Way::kEager;
    }
    if (left_ == 0 && --until_ > 0) [[likely]]
      return Way::kReplay;
    if (left_ == 0) left_ = kCalls;
    return left_ % 2 == 0 ? Way::kTimeReplay : Way::kTimeEager;
  }

  // A timed call has ended.
  void timed(Way way, std::chrono::nanoseconds took) {
    auto& best = way == Way::kTimeReplay ? replay_ : eager_;
    best = std::min(best, took);
    if (--left_ > 0) return;
    bool loses = replay_.count() > eager_.count() + eager_.count() / 50;
    aside_ = loses ? period_ : 0;
    until_ = period_ = std::min(period_ * 4, kLongest);
    replay_ = eager_ = std::chrono::nanoseconds::max();
  }

  bool aside() const { return aside_ > 0; }
  // The tree has grown: what was measured is not so any more.
  void reset() { *this = Pace(); }

 private:
  static constexpr int64_t kFirst = 512;  // replays before the first measurement
  static constexpr int64_t kLongest = int64_t{1} << 20;
  static constexpr int kCalls = 10;  // of a measurement, half of them each way
  int64_t until_ = kFirst;
  int64_t period_ = kFirst;
  int64_t aside_ = 0;
  int left_ = 0;
  std::chrono::nanoseconds replay_ = std::chrono::nanoseconds::max(), eager_ = std::chrono::nanoseconds::max();
};

}  // namespace dalsegno::replay
