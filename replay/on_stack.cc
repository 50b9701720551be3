#include "replay/on_stack.h"

#include <algorithm>
#include <utility>

#include "replay/accounting.h"
#include "replay/door.h"
#include "trace/fault.h"

namespace dalsegno::replay {
namespace {

constexpr uint64_t kFewSteps = 150;  // what they save pays for entering a loop and leaving it: a microsecond or two
constexpr int kMostUseless = 6;      // entries in a row that did fewer, until the loop is left to the interpreter
constexpr int kMostIdle = 16;        // heads of loops that were not entered, one after the other, until the call stops waiting
constexpr int kMostFruitless = 3;    // recordings of a loop that yielded nothing

}  // namespace

// ---- recordings ------------------------------------------------------------------------------------------------------------

template <class Begin>
hook::WatchStatus Tree::InFrame::begin(PyFunctionObject* function, Exit* exit, const GilShared<Programs>& ran, Begin&& begin) {
  hook::WatchStatus status = hook::WatchStatus::kLost;
  or_lose([&] {
    Recording& recording = recording_.emplace(function, tree_.recorder_options());
    recording.exit = exit, recording.ran = ran, recording.codes = tree_.codes_;
    status = hook::watch_start(&recording.recorder);
    if (status != hook::WatchStatus::kOk) return;
    status = hook::WatchStatus::kLost;
    begin(recording);
    if (recording.recorder.watch()) status = hook::WatchStatus::kOk;
  });
  if (status != hook::WatchStatus::kOk) return recording_.reset(), status;  // stops watching, if it had begun
  tree_.recording_ = true;
  tree_.nested_ = 0;
  ++tree_.counters_.recordings;
  ++all_recordings_;
  return status;
}

hook::WatchStatus Tree::InFrame::record_entry(PyFunctionObject* function) {
  const bool fresh = or_lose([&] {
    if (!tree_.programs_->empty()) tree_.programs_ = GilShared<Programs>::make(), tree_.saved_ = 0;
  });
  if (!fresh) return hook::WatchStatus::kLost;
  return begin(function, nullptr, tree_.programs_, [](Recording& recording) { recording.recorder.begin_entry(); });
}

bool Tree::InFrame::record_exit(Exit* exit, FrameState* state, const GilShared<Programs>& ran) {
  return begin(reinterpret_cast<PyFunctionObject*>(state->functions.front()), exit, ran, [&](Recording& recording) {
           std::vector<PyFunctionObject*> functions;
           for (PyObject* f : state->functions) functions.push_back(reinterpret_cast<PyFunctionObject*>(f));
           recording.recorder.begin_exit(exit->owner->trace(), exit->op, exit->which, functions.data());
         }) == hook::WatchStatus::kOk;
}

void Tree::InFrame::record_loop(const hook::FrameView& view) {
  const Tree& t = tree_;
  const auto fruitless = t.fruitless_loops_.find(view.offset);
  const bool tried = fruitless != t.fruitless_loops_.end() && fruitless->second >= kMostFruitless;
  if (tried || !settings().record || static_cast<int>(t.programs_->size()) >= settings().max_traces) return;
  begin(view.function, nullptr, t.programs_, [&](Recording& recording) {
    recording.loop = view.offset;
    recording.recorder.begin_loop(view);
  });
}

void Tree::InFrame::entered(void* self, int index, void* frame) {
  auto& call = *static_cast<InFrame*>(self);
  if (call.recording_) call.recording_->recorder.entered(index, frame);
  if (index == 0 && !call.frame_) call.frame_ = frame, call.begun();
}

void Tree::InFrame::take_over() {
  if (!recording_) return;
  Recording& recording = *recording_;
  abandoned_ = recording.recorder.abandoned();
  if (!frame_) frame_ = recording.recorder.outermost();
  if (abandoned_ && recording.exit &&
      !recording.recorder.goes_through_now()) {  // another time it may be a call that does less: most of a recursion's do
    recording.exit->count = 0;
    recording.exit->patience *= 2;
  } else if (abandoned_) {
    if (recording.loop < 0 && !recording.exit)
      tree_.policy_.grown();  // what was measured of a recursion's inner calls tells nothing of the outer ones
  } else {
    tree_.recording_ = false;
    const bool entry = !recording.exit && recording.loop < 0;
    bool useful = true;
    const bool whole = or_lose([&] {
      if (entry || recording.ran == tree_.programs_) useful = tree_.install(recording.recorder, recording.exit, entry, recording.codes);
    });
    if (!whole) tree_.drop_halves();
    if (recording.loop >= 0 && !useful) or_lose([&] { ++tree_.fruitless_loops_[recording.loop]; });
  }
  recording_.reset();
}

// ---- loops -----------------------------------------------------------------------------------------------------------------

bool Tree::InFrame::may_enter() const {
  const Tree& t = tree_;
  if (t.recording_ || !settings().enabled || t.function_->func_code != t.code_ || reinterpret_cast<PyObject*>(code()) != t.code_)
    return false;
  if (!t.has_entry() || (settings().step_aside && t.policy_.under_eager())) return false;
  return !hook::thread_observed(thread()) && !hook::code_observed(code()) && hook::stack_left();
}

bool Tree::InFrame::at_loop(hook::RunningFrame& frame) noexcept {
  const hook::ThreadGuard guard;
  bool goes_on = true;
  or_lose([&] {
    if (recording_ && recording_->recorder.active()) return;
    take_over();
    if (++idle_ > kMostIdle) return stop_waiting();
    if (may_enter()) goes_on = try_loops(frame);
  });
  return goes_on;
}

bool Tree::InFrame::try_loops(hook::RunningFrame& frame) {
  const GilShared<Programs> keep = tree_.programs_;  // what runs may clear the tree
  int here = 0;
  bool useless = false;
  for (size_t i = 0; i < keep->size(); ++i) {  // and may add to it
    Program* program = (*keep)[i].get();
    const Snapshot* loop = program ? loop_of_one_frame(*program) : nullptr;
    if (!loop || loop->frames[0].offset != frame.view().offset) continue;
    ++here;
    if ((useless = tree_.useless_loops_[program->trace().data.number] >= kMostUseless)) break;
    PyObject* result = nullptr;
    Exit* exit = nullptr;
    FrameState state;
    Accounting accounting(tree_.counters_);
    const uint64_t before = g_machine_counters.steps;
    const Outcome outcome = enter_loop(*program, frame, &result, &exit, &state);
    if (outcome == Outcome::kRefused || outcome == Outcome::kTooDeep) continue;
    accounting.count();
    looped_ = true;
    idle_ = 0;
    ++tree_.counters_.loops_entered;
    judge(*program, g_machine_counters.steps - before);
    if (outcome == Outcome::kReturned) return result ? frame.go_on_returning(result) : frame.go_on_raising();
    return go_on(frame, exit, &state, keep);
  }
  if (!useless && frame.can_leave() && here < recorder::kMaxLoopsAtAPlace) record_loop(frame.view());
  return true;
}

void Tree::InFrame::judge(const Program& loop, uint64_t steps) {
  const auto found = tree_.useless_loops_.find(loop.trace().data.number);
  if (found == tree_.useless_loops_.end()) return;  // the tree has grown since
  // Native code counts no steps. A loop that has it was hot by turns.
  found->second = steps < kFewSteps && !has_native_code(loop) ? found->second + 1 : 0;
}

// From here on nothing may throw: the frame has to come back.
bool Tree::InFrame::go_on(hook::RunningFrame& frame, Exit* exit, FrameState* state, const GilShared<Programs>& ran) {
  bool grow = false, ahead = false;
  const hook::FrameImage& own = state->images.front();
  or_lose([&] {
    grow = tree_.grows_at(exit, *state, ran);
    ahead = tree_.loop_ahead(own, state->images.size() > 1);
  });
  if (grow) record_exit(exit, state, ran);
  if (!recording_ && !ahead) stop_waiting();
  const hook::FrameView& head = frame.view();
  if (planted(Fault::left_at_the_head) && state->images.size() == 1 && own.depth == head.stack_depth) state->images[0].offset = head.offset;
  return frame.go_on(state->images.data(), static_cast<int>(state->images.size()), std::exchange(state->raised, nullptr), entered, this);
}

}  // namespace dalsegno::replay
