#include "replay/policy.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "numpy/api.h"
#include "replay/clock.h"
#include "replay/kernels/config.h"

namespace dalsegno::replay {
namespace {

// ---- sizes -------------------------------------------------------------------------------------------------------------------

// Half the number of bits: sizes up to four times as large share it; what is small is all the same.
uint32_t bucket(uint64_t size) { return size < 64 ? 0 : static_cast<uint32_t>(std::bit_width(size)) / 2; }

// Of an int, roughly: without a call, which would cost more than all the rest.
uint64_t magnitude(PyLongObject* number) {
#if PY_VERSION_HEX >= 0x030c0000
  const auto digits = static_cast<int64_t>(number->long_value.lv_tag >> 3);
  const digit* value = number->long_value.ob_digit;
#else
  const int64_t digits = std::abs(Py_SIZE(number));
  const digit* value = number->ob_digit;
#endif
  if (digits <= 1) return digits ? value[0] : 0;
  return digits == 2 ? value[0] | uint64_t{value[1]} << PyLong_SHIFT : std::numeric_limits<uint64_t>::max();
}

uint64_t array_size(PyObject* object) {
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  uint64_t size = 1;
  for (int d = 0; d < PyArray_NDIM(array); ++d) size *= static_cast<uint64_t>(PyArray_DIM(array, d));
  return size;
}

uint64_t size_of(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type == &PyArray_Type) return array_size(object);
  if (type == &PyFloat_Type) return 0;
  if (type == &PyLong_Type) return magnitude(reinterpret_cast<PyLongObject*>(object));
  if (type == &PyList_Type || type == &PyTuple_Type || type == &PyBytes_Type) return static_cast<uint64_t>(Py_SIZE(object));
  if (type == &PyUnicode_Type) return static_cast<uint64_t>(PyUnicode_GET_LENGTH(object));
  if (type == &PyDict_Type) return static_cast<uint64_t>(reinterpret_cast<PyDictObject*>(object)->ma_used);
  return 0;
}

// ---- verdicts ----------------------------------------------------------------------------------------------------------------

constexpr double kLoses = 1.02;        // replay this much slower is replay that loses
constexpr double kClear = 1.25;        // a ratio that noise does not make
constexpr double kLong = 200e3;        // nanoseconds: a call that can be judged by itself
constexpr double kPlain = 1.5;         // a ratio that memory to be made, or code that has not run for a while, does not make either,
constexpr double kPlainly = 10e6;      // in a call of so many nanoseconds
constexpr double kTold = 1e6;          // nanoseconds: a recording that tells how long an eager call takes
constexpr double kClock = 1600;        // nanoseconds a timed call costs beside its own
constexpr double kShare = 64;          // looking costs at most this part of what is run
constexpr double kProvisional = 20e6;  // nanoseconds a provisional verdict for eager lasts
constexpr int64_t kFewest = 8, kMost = int64_t{1} << 22;
constexpr int kMostStreak = 10;
constexpr int kPatient = 6;        // pairs until replay loses that has only been cold
constexpr double kFault = 10e3;    // nanoseconds a page costs (a guest of a hypervisor may pay as much)
constexpr double kCold = 0.1;      // a call is cold where pages are this part of it
constexpr double kEarly = 3;       // eager calls, in times what an early replay has lost; from the third one on twice as many each time
constexpr double kMostEarly = 64;  // calls
constexpr int kUnsettled = 24;     // calls that may pass before the tree is as it will be

int pairs_needed(double nanoseconds) { return nanoseconds < 20e3 ? 5 : nanoseconds < 1e6 ? 3 : 2; }

}  // namespace

uint32_t sizes_of(PyObject* const* args, Py_ssize_t count) {
  uint32_t sizes = 0;
  for (Py_ssize_t i = 0; i < count; ++i) sizes = sizes * 37 + bucket(size_of(args[i]));
  return sizes;
}

bool Lane::timed(Way way, Took took, bool provisional) {
  note(way, took);
  if (asks_eager_ && way == Way::kTimeEager) {
    asks_eager_ = false;
    if (!took.cold) early_eager_ = std::min(early_eager_, took.nanoseconds);
    return false;
  }
  double& best = way == Way::kTimeReplay ? replay : eager;
  if (turn_ < 2 || took.nanoseconds < best) {
    best = took.nanoseconds;
    (way == Way::kTimeReplay ? replay_cold_ : eager_cold_) = took.cold;
  }
  if (++turn_ == 1 && !judged_ && early_eager_ != kUnknown) eager = early_eager_, turn_ = 2;
  if (skips_eager()) return wait(recording_, replay, provisional), true;
  if (loses_plainly(way, took) || wins_plainly(way)) return judge(provisional), true;
  if (turn_ % 2 != 0 || !decided()) return false;
  judge(provisional);
  return true;
}

// Replay is so much faster than the call that recorded that an eager call need not be waited for.
bool Lane::skips_eager() {
  if (judged_ || turn_ != 1 || recording_ == kUnknown || recording_ < std::max(8 * replay, kTold)) return false;
  eager_wins = false, judged_ = true, turn_ = 0;
  return true;
}

// Slower even than the call that recorded.
bool Lane::loses_plainly(Way way, Took took) const {
  return !judged_ && way == Way::kTimeReplay && recording_ != kUnknown && recording_ >= kTold && !took.cold &&
         took.nanoseconds > kClear * recording_;
}

// With kernels that eager calls have already been timed against, while they were being compiled.
bool Lane::wins_plainly(Way way) const {
  return awaits_kernels() && way == Way::kTimeReplay && turn_ == 1 && eager >= kLong && kClear * replay < eager;
}

void Lane::note(Way way, Took took) {
  if (way == Way::kTimeReplay && first_.nanoseconds == 0) first_ = took;
  if (way == Way::kTimeEager) eager_memory_ = took.memory;
}

bool Lane::timed_early(Way way, Took took, bool provisional) {
  note(way, took);
  if (loses_plainly(way, took)) return timed(way, took, provisional);
  if (way == Way::kTimeReplay) wait_early(took);
  return false;
}

void Lane::wait_early(Took took) {
  if (took.cold || took.nanoseconds < kLong) return;
  const double known = std::min(early_eager_, eager_before_);
  asks_eager_ = known == kUnknown || kClear * took.nanoseconds > known;  // (where replay wins nothing, an eager call costs nothing)
  if (known == kUnknown || took.nanoseconds < kClear * known) return;
  eager_wins = true;
  const double lost = kEarly * (took.nanoseconds / known - 1) * static_cast<double>(int64_t{1} << std::max(early_losses_ - 1, 0));
  left = static_cast<int64_t>(std::min(std::ceil(lost), kMostEarly));
  early_losses_ = std::min(early_losses_ + 1, kMostStreak);
}

bool Lane::decided() const {
  const int pairs = turn_ / 2;
  const double fast = std::min(replay, eager), slow = std::max(replay, eager);
  if (slow == replay && replay_cold_ && !eager_cold_ && pairs < kPatient) return false;
  if (pairs >= pairs_needed(fast)) return true;
  if (slow == replay && slow > kPlain * fast && fast >= kPlainly) return true;
  if (eager > kClear * eager_before_) return false;  // a garbage collection, say: that replay was faster may be luck
  // (The first replay after eager calls finds none of the memory that it will find later: of large arrays every page is made anew.)
  return slow > kClear * fast && pairs >= (fast >= kLong && fast == replay ? 1 : 2);
}

void Lane::judge(bool provisional) {
  if (eager == kUnknown) eager = recording_;
  const bool wins = replay > kLoses * eager;
  streak_ = judged_ && wins == eager_wins && !provisional ? std::min(streak_ + 1, kMostStreak) : 0;
  eager_wins = wins, judged_ = true, provisional_ = provisional;
  eager_before_ = eager;
  const double pairs = std::max(turn_ / 2, 1);
  turn_ = 0;
  wait(pairs * (std::abs(replay - eager) + kClock), std::min(replay, eager), provisional);
}

void Lane::wait(double cost, double each, bool provisional) {
  double calls = kShare * cost / std::max(each, 1.0) * static_cast<double>(int64_t{1} << streak_);
  if (provisional && eager_wins) calls = std::min(calls, kProvisional / std::max(each, 1.0));  // (kernels make replay no slower)
  left = std::clamp(static_cast<int64_t>(std::min(calls, 1e9)), kFewest, kMost);
}

void Lane::remember(bool eager_won, double replay_ns, double eager_ns) {
  replay = replay_ns, eager = eager_ns, eager_wins = eager_won, judged_ = true;
  const double fast = std::min(replay, eager);
  wait(pairs_needed(fast) * (std::abs(replay - eager) + kClock), fast, false);
}

void Lane::reset() {
  Lane fresh(sizes);
  fresh.eager_before_ = eager_before_;
  fresh.recording_ = recording_, fresh.early_eager_ = early_eager_, fresh.first_ = first_, fresh.paced = paced;
  fresh.eager_memory_ = eager_memory_, fresh.early_losses_ = early_losses_;
  *this = fresh;
}

store::Pace Lane::pace(bool useless, bool early) const {
  // Replay's part of eager's time where it is not known: nothing was judged; it was, but kernels, code or pages were still to come; it
  // lost, though they were kept. (Not 1: it is loaded before that is known for good, and that is part of the cost.)
  constexpr double kHoped = 0.8, kHopedOfKernels = 0.4, kHardly = 0.99;
  constexpr double kRecorded = 0.5;  // eager's part of the recording
  if (eager == kUnknown && recording_ == kUnknown) return {};
  const double shortest = eager == kUnknown ? kRecorded * recording_ : lasting() ? eager : std::min(eager, recording_);
  if (useless) return {0, sizes, static_cast<float>(shortest), static_cast<float>(shortest), 0};
  // (A replay that won though it made pages is yet faster where they are there.)
  const bool known = replay != kUnknown && lasting() && (eager_wins || !replay_cold_);
  const double hoped = !judged_ ? kHoped : eager_wins && !early ? kHardly : kHopedOfKernels;
  const double replayed = known ? replay : std::min(hoped * shortest, replay);
  return {0, sizes, static_cast<float>(shortest), static_cast<float>(replayed), static_cast<float>(first_takes_more(replayed))};
}

// Nanoseconds that the first replay of a process takes more than later ones, less what a first eager call takes more: it has to have all of
// its memory made, and replays need less of it.
double Lane::first_takes_more(double replayed) const {
  if (first_.nanoseconds == 0) return 0;
  const double more = eager_memory_ ? static_cast<double>(first_.memory) - static_cast<double>(*eager_memory_) : 0;
  const auto made = static_cast<double>(first_.pages);
  const double page = more == 0 && made == 0 ? 0 : page_time();
  return std::max(first_.nanoseconds - page * made - replayed, 0.0) + page * more / kPage;
}

Lane* Policy::find_lane(uint32_t sizes) {
  if (within_ > 0) return &inner_;
  if (lane_ && lane_->sizes == sizes) return lane_;
  const auto found = lanes_.find(sizes);
  if (found != lanes_.end()) return &found->second;
  if (lanes_.size() >= kLanes) return &lanes_.rbegin()->second;
  return &lanes_.emplace(sizes, Lane(sizes)).first->second;
}

Way Policy::next(PyObject* const* args, Py_ssize_t count) {
  if (under_) return *under_;
  lane_ = find_lane(sizes_of(args, count));
  if (lane_->awaits_kernels() && !kernels_under_way()) lane_->kernels_are_there();
  const Way way = is_part_of_measurement(*lane_) ? Way::kReplay : lane_->next();
  aside_ = way == Way::kEager ? lane_ : nullptr;
  return way;
}

// ---- before the store has been read ------------------------------------------------------------------------------------------

// The first call is no later than an eager one. Where few calls pay, the second one knows more.
int64_t Policy::calls_to_put_off(double cost, double replay_ns, double eager_ns) {
  constexpr double kSure = 1.5;  // what is known is of another process, which had been running for a while
  constexpr double kSoon = 12;   // calls
  constexpr double kPart = 24;   // it is to be this part of what the calls take
  if (!(eager_ns > 0) || !(replay_ns > 0) || !(cost > 0)) return 0;
  const double gain = std::max(eager_ns - replay_ns, 0.0);
  if (kSure * cost <= gain) return 0;
  return cost <= kSoon * gain ? 1 : static_cast<int64_t>(std::min(std::ceil(kPart * cost / eager_ns), 1e6));
}

void Policy::put_off(uint32_t sizes, int64_t calls) {
  if (calls <= 0 || lanes_.size() >= kLanes) return;
  Lane& lane = *find_lane(sizes);
  lane.eager_wins = true, lane.left = calls;
}

bool Policy::is_put_off(PyObject* const* args, Py_ssize_t count) {
  const auto found = lanes_.find(sizes_of(args, count));
  if (found == lanes_.end() || found->second.left <= 0) return false;
  aside_ = lane_ = &found->second;
  --lane_->left;
  return true;
}

void Policy::recorded(PyObject* const* args, Py_ssize_t count, Took took) {
  find_lane(sizes_of(args, count))->recorded(took);
  pace_news_ = true;
}

void Policy::grown() {
  for (auto& [sizes, lane] : lanes_) lane.reset();
  inner_.reset();
  aside_ = nullptr;
}

void Policy::forget() {
  lanes_.clear();
  inner_ = Lane(0);
  lane_ = aside_ = nullptr;
  penalties_.clear();
  entry_given_up_ = false;
  entry_wait_ = 0;
  unsettled_ = 0;
  ++generation_;
}

// ---- one timed call ----------------------------------------------------------------------------------------------------------

Policy::Timing::Timing(Policy& policy, Way way)
    : policy_(policy),
      under_(policy, way == Way::kTimeReplay ? Way::kReplay : Way::kEager),
      lane_(policy.lane_),
      way_(way),
      generation_(policy.generation_),
      came_(kernels_that_came()),
      start_(thread_time()),
      faults_(thread_faults()) {
  g_timed_replays += way == Way::kTimeReplay;
}

bool Policy::Timing::ended(bool settled) {
  const double nanoseconds = thread_time() - start_;
  const int64_t pages = thread_faults() - faults_;
  const Took took{nanoseconds, kFault * static_cast<double>(pages) > kCold * nanoseconds, pages, memory_.end()};
  if (policy_.generation_ != generation_) return false;
  policy_.lane_ = lane_;
  const bool was_lasting = lane_->lasting(), eager_won = lane_->eager_wins;
  if (way_ == Way::kTimeReplay) lane_->came = came_;
  const bool provisional = kernels_under_way() || lane_->came != kernels_that_came();
  const bool early = !settled && policy_.unsettled_ < kUnsettled;
  policy_.unsettled_ += early;
  const bool judged = early ? lane_->timed_early(way_, took, provisional) : lane_->timed(way_, took, provisional);
  policy_.news_ |= lane_->lasting() && (!was_lasting || lane_->eager_wins != eager_won);
  policy_.pace_news_ |= policy_.news_ || (judged && (!lane_->paced || lane_->eager_wins != eager_won));
  lane_->paced |= judged;
  return judged;
}

// ---- places ------------------------------------------------------------------------------------------------------------------

namespace {

constexpr bool is_kept(Reason reason) { return reason != Reason::too_many_traces && reason != Reason::lost; }
constexpr int kMostRaised = 11;

uint32_t after_exceptions(int times) { return uint32_t{1} << 2 * std::clamp(times, 0, kMostRaised); }

}  // namespace

void Policy::punish(Place place, int points, Reason reason) {
  Penalty& penalty = penalties_[place];
  const int most = reason == Reason::exception ? kMostRaised * kRaised : kGivenUp;  // there what follows may yet be recorded
  penalty.points = std::max(penalty.points, std::min(penalty.points + points, most));
  penalty.reason = reason;
  news_ |= is_kept(reason);
  if (place != Place{}) return;
  entry_given_up_ = penalty.points >= kGivenUp;
  if (reason == Reason::exception) entry_wait_ = after_exceptions(penalty.points / kRaised - 1) - 1;
}

void Policy::pardon(Place place) {
  if (penalties_.erase(place) != 0) news_ = true;
}

uint32_t Policy::patience(Place exit) const {
  const auto found = penalties_.find(exit);
  if (found == penalties_.end()) return 1;
  const Penalty& penalty = found->second;
  if (penalty.points >= kGivenUp) return 0;
  return penalty.reason == Reason::exception ? after_exceptions(penalty.points / kRaised) : 1;
}

// ---- between processes -------------------------------------------------------------------------------------------------------

store::Experience Policy::experience() const {
  store::Experience all;
  for (const auto& [place, penalty] : penalties_)
    if (is_kept(penalty.reason)) all.penalties.push_back({place.trace, place.op, place.which, penalty.points, reason_name(penalty.reason)});
  for (const auto& [sizes, lane] : lanes_)
    if (lane.lasting()) all.verdicts.push_back({sizes, lane.eager_wins, lane.replay, lane.eager});
  return all;
}

std::vector<store::Pace> Policy::paces(bool early) const {
  std::vector<store::Pace> all;
  for (const auto& [sizes, lane] : lanes_)
    if (const store::Pace pace = lane.pace(entry_given_up_, early); pace.eager_ns > 0) all.push_back(pace);
  return all;
}

void Policy::remember(const store::Experience& experience) {
  grown();  // what was put off is so no more
  for (const store::KeptPenalty& kept : experience.penalties) {
    const std::optional<Reason> reason = reason_named(kept.reason);
    if (reason && is_kept(*reason)) punish({kept.trace, kept.op, kept.which}, kept.points, *reason);
  }
  for (const store::KeptVerdict& kept : experience.verdicts)
    if (lanes_.size() < kLanes && kept.replay_ns > 0 && kept.eager_ns > 0)
      find_lane(static_cast<uint32_t>(kept.sizes))->remember(kept.eager_wins, kept.replay_ns, kept.eager_ns);
  news_ = false;
}

}  // namespace dalsegno::replay
