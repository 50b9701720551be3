// What is worth trying: replay or eager for a call, and where recordings are given up. One per tree; needs the GIL.
//
// Calls: replay and eager are timed by turns, a pair or a few, and the faster way is taken until it pays to look again. What looking costs
// (the slower way's time over the faster one's) is at most a 64th of what has been run since, and half of that each time the verdict stays.
// So calls of milliseconds are judged after two or three of them, short ones after ten. A call that the system made memory for, where calls
// of the other way found theirs, says little: it is looked at again before it loses (`Took`). Sizes of arguments count: calls whose arrays,
// containers and ints have about the same sizes share a verdict (a lane). Both ways give the same results: only the clock (replay/clock.h)
// sees it.
//
// Places: an entry or an exit that proves useless gets points with a reason; at kGivenUp nothing is tried there any more.
#pragma once
#include <Python.h>

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "replay/arrays.h"
#include "store/experience.h"
#include "store/pace.h"
#include "trace/reasons.h"

namespace dalsegno::replay {

// A number that is the same for arguments of about the same sizes: powers of four of arrays', containers' and ints' sizes.
uint32_t sizes_of(PyObject* const* args, Py_ssize_t count);

// ---- calls -------------------------------------------------------------------------------------------------------------------

enum class Way : uint8_t { kReplay, kEager, kTimeReplay, kTimeEager };

// What a timed call took. `cold`: a good part of that, making pages, as memory was given back to the system since the calls before it.
struct Took {
  double nanoseconds;
  bool cold = false;
  int64_t pages = 0;  // the system made
  size_t memory = 0;  // bytes of large arrays at once
};

// Calls with arguments of about the same sizes.
class Lane {
 public:
  explicit Lane(uint32_t sizes) : sizes(sizes) {}

  Way next() {
    if (asks_eager_) return Way::kTimeEager;
    if (left > 0) return --left, eager_wins ? Way::kEager : Way::kReplay;
    return turn_ % 4 == 0 || turn_ % 4 == 3 ? Way::kTimeReplay : Way::kTimeEager;  // (what alternates otherwise must not side with one)
  }
  // A timed call has ended. `provisional`: kernels are still being compiled, so the verdict will not last. True: there is a verdict now.
  bool timed(Way way, Took took, bool provisional);
  // The same for a call after which the tree will be another. There is a verdict only if replay is slower than even recording was. But an
  // eager call is timed, and where replay is slower, eager ones follow until they have taken three times what it lost, and more each time.
  bool timed_early(Way way, Took took, bool provisional);
  // The call that recorded took so long: no eager call takes longer.
  void recorded(Took took) { recording_ = took.nanoseconds, eager_memory_ = took.memory; }
  // Eager was faster while kernels were being compiled. Once they are there, that is looked at again at once.
  bool awaits_kernels() const { return provisional_ && eager_wins; }
  void kernels_are_there() { left = 0; }
  // The tree has grown: what was measured is not so any more.
  void reset();
  // An earlier process has judged.
  void remember(bool eager_won, double replay_ns, double eager_ns);
  bool lasting() const { return judged_ && !provisional_; }
  // As far as it is known; eager_ns 0: not at all. `useless`: there is nothing to be replayed. `early`: this process has recorded, so
  // kernels and code that were still being made when eager won may win yet; where they had been kept, and were being loaded, that is as it
  // will be.
  store::Pace pace(bool useless, bool early) const;

  uint32_t sizes;
  bool eager_wins = false;
  int64_t left = 0;                            // calls until the next one is timed
  double replay = kUnknown, eager = kUnknown;  // nanoseconds: the least of this measurement
  bool paced = false;                          // has been judged since the process began, if provisionally
  uint32_t came = 0;                           // kernels, when its latest timed replay began

 private:
  static constexpr double kUnknown = std::numeric_limits<double>::max();
  void note(Way way, Took took);
  double first_takes_more(double replayed) const;
  bool decided() const;
  bool skips_eager();
  void wait_early(Took took);
  bool wins_plainly(Way way) const;
  bool loses_plainly(Way way, Took took) const;
  void judge(bool provisional);
  void wait(double cost, double each, bool provisional);

  int turn_ = 0;    // timed calls of this measurement
  int streak_ = 0;  // verdicts of the same kind before this one
  bool judged_ = false, provisional_ = false;
  bool replay_cold_ = false, eager_cold_ = false;  // the least of this measurement
  double recording_ = kUnknown;
  double eager_before_ = kUnknown;  // as the latest verdict found it
  Took first_{0};                   // the first timed replay, which makes kernels and measures; of 0 nanoseconds: there was none
  std::optional<size_t> eager_memory_;
  bool asks_eager_ = false;        // an early replay has been timed
  double early_eager_ = kUnknown;  // the least of the eager calls that were timed for one
  int early_losses_ = 0;           // such replays that lost, since the function was first called
};

// ---- places ------------------------------------------------------------------------------------------------------------------

struct Place {
  int32_t trace = -1, op = -1, which = 0;  // an exit; as it stands: the function's entry
  auto operator<=>(const Place&) const = default;
};
struct Penalty {
  int points = 0;
  Reason reason = Reason::none;
};
constexpr int kGivenUp = 100;
constexpr int kRaised = 9;  // a recording that an exception ended before anything useful: the next call need not raise it

class Policy {
 public:
  // Replay or eager? Both of the following are asked with the same arguments.
  Way next(PyObject* const* args, Py_ssize_t count);
  // While one lives, calls of the same function go this way, unasked: what a recursion costs is judged by its outermost call.
  class Under {
   public:
    Under(Policy& policy, Way way) : policy_(policy), outermost_(!policy.under_) {
      if (outermost_) policy.under_ = way;
    }
    ~Under() {
      if (outermost_) policy_.under_.reset();
    }
    Under(const Under&) = delete;

   private:
    Policy& policy_;
    const bool outermost_;
  };
  bool under_eager() const { return under_ == Way::kEager; }
  // While one lives a call is recorded: what a recursion calls within it is shorter, and tells nothing about the call itself.
  class Within {
   public:
    explicit Within(Policy& policy) : policy_(policy) { ++policy_.within_; }
    ~Within() {
      if (--policy_.within_ == 0) policy_.lane_ = policy_.aside_ = nullptr;
    }
    Within(const Within&) = delete;

   private:
    Policy& policy_;
  };
  // The short way: true if the verdict for such arguments is "eager" and it is not time to look again.
  bool aside(PyObject* const* args, Py_ssize_t count) {
    if (!aside_ || aside_->left <= 0 || aside_->awaits_kernels() || under_) return false;
    if (sizes_of(args, count) != aside_->sizes) return false;
    --aside_->left;
    return true;
  }

  // Calls with arguments of these sizes are run eagerly, so many of them, before anything else is known: remember() ends that. How many pay
  // for what it costs (nanoseconds) to know more, and to load what wins, none if that is won back by the first.
  void put_off(uint32_t sizes, int64_t calls);
  bool is_put_off(PyObject* const* args, Py_ssize_t count);
  static int64_t calls_to_put_off(double cost, double replay_ns, double eager_ns);

  // May a call made by a replay be replayed without further question?
  bool goes_on() {
    if (under_) return under_ == Way::kReplay;
    if (lane_ && is_part_of_measurement(*lane_)) return true;
    return lane_ && !lane_->eager_wins && lane_->left > 0 && (--lane_->left, true);
  }

  // Times one call.
  class Timing {
   public:
    Timing(Policy& policy, Way way);
    ~Timing() { g_timed_replays -= way_ == Way::kTimeReplay; }
    Timing(const Timing&) = delete;
    // `settled`: nothing was recorded, and nothing will be at the exits that were taken. Until then a few calls do not count.
    // True: there is a new verdict, eager_wins() says which.
    bool ended(bool settled);

   private:
    Policy& policy_;
    Under under_;
    Lane* lane_;  // not to be used if the generation has changed
    Way way_;
    uint64_t generation_;
    uint32_t came_;
    double start_;
    int64_t faults_;
    MemoryMeasured memory_;
  };
  // Within a replay that is being timed calls of other functions are replayed, too, and not timed, unless eager is known to win: else what
  // is measured would be how those were measured.
  static bool is_part_of_measurement(const Lane& lane) { return g_timed_replays > 0 && !(lane.eager_wins && lane.lasting()); }
  bool eager_wins() const { return lane_ && lane_->eager_wins; }
  const Lane* lane() const { return lane_; }  // of the latest call
  void recorded(PyObject* const* args, Py_ssize_t count, Took took);
  void grown();  // the tree has another trace

  void punish(Place place, int points, Reason reason);
  void pardon(Place place);  // something useful was recorded there
  const std::map<Place, Penalty>& penalties() const { return penalties_; }
  // What an exit's count must reach to be recorded, in hot_exits: 4 times as much for each exception that ended a recording; 0: never.
  uint32_t patience(Place exit) const;
  bool entry_given_up() const { return entry_given_up_; }
  // Whether the call that asks is to be recorded.
  bool entry_due() { return entry_wait_ == 0 || (--entry_wait_, false); }

  void forget();

  // ---- between processes. What settings and the moment decided is not kept.
  store::Experience experience() const;
  void remember(const store::Experience& experience);
  bool take_news() { return std::exchange(news_, false); }  // whether experience() has changed since this was last asked
  // For a later process's put_off(); `function` and `load_ns` are not set. `early`: as in Lane::pace().
  std::vector<store::Pace> paces(bool early) const;
  bool take_pace_news() { return std::exchange(pace_news_, false); }

 private:
  static constexpr size_t kLanes = 6;  // arguments of further sizes share the last one
  Lane* find_lane(uint32_t sizes);

  static inline int g_timed_replays = 0;  // under way, of all functions

  std::map<uint32_t, Lane> lanes_;
  Lane inner_{0};  // calls within one that is recorded
  int within_ = 0;
  Lane* lane_ = nullptr;
  Lane* aside_ = nullptr;     // the latest call's, if its verdict is "eager"
  std::optional<Way> under_;  // kReplay or kEager
  int unsettled_ = 0;
  uint64_t generation_ = 0;  // of lanes_
  std::map<Place, Penalty> penalties_;
  bool entry_given_up_ = false;
  uint32_t entry_wait_ = 0;  // calls
  bool news_ = false, pace_news_ = false;
};

}  // namespace dalsegno::replay
