// Observing the instructions of running code: what both ways (sys.monitoring, trace function) have in common.
#include <algorithm>
#include <utility>

#include "hook/unobserved.h"
#include "hook/watch_state.h"

namespace dalsegno::hook {

WatchState g_watch;
std::vector<WatchState> g_resting;

bool watches(const PyThreadState* thread) { return g_watch.watcher != nullptr && g_watch.thread == thread && !g_watch.paused; }

bool is_watched(const PyCodeObject* code) {
  return !g_watch.paused && std::find(g_watch.codes.begin(), g_watch.codes.end(), code) != g_watch.codes.end();
}

void announce(PyThreadState* thread, Frame* frame, int offset, int stack_depth) {
  if (!watches(thread)) return;
  const FrameView view{frame, visible_frame(frame->previous), function_of(frame), code_of(frame), slots_of(frame), offset, stack_depth};
  g_watch.watcher->before(view);
}

namespace {

constexpr size_t kMostResting = 8;

// Lets the recording under way rest, so that another one may begin in what it calls.
bool rest(PyThreadState* thread) {
  if (g_resting.size() == kMostResting) return false;
  g_resting.reserve(g_resting.size() + 1);
  std::vector<Frame*> marked = marked_frames(thread);
  if (!g_watch.paused && !pause_events(thread)) return false;
  g_watch.marked = std::move(marked);
  g_resting.push_back(std::exchange(g_watch, {}));
  return true;
}

// The one that rests goes on, unless somebody has paused it before.
void go_on() {
  if (g_resting.empty()) return;
  g_watch = std::move(g_resting.back());
  g_resting.pop_back();
  mark_frames(std::exchange(g_watch.marked, {}));
  if (!g_watch.paused && !go_on_with_events(g_watch.thread)) g_watch.lost = true;
}

}  // namespace

WatchStatus watch_start(Watcher* watcher) {
  PyThreadState* thread = PyThreadState_Get();
  if (g_watch.watcher != nullptr && g_watch.thread != thread) return WatchStatus::kBusy;
  if (is_traced(thread) || thread->tracing != 0) return WatchStatus::kTraced;
  ErrorAside aside;
  if (g_watch.watcher != nullptr && !rest(thread)) return WatchStatus::kBusy;
  const WatchStatus status = start_events(thread);
  if (status != WatchStatus::kOk) return go_on(), status;
  g_watch.watcher = watcher;
  g_watch.thread = thread;
  g_watch.lost = false;
  return WatchStatus::kOk;
}

bool watch_code(PyCodeObject* code) {
  if (g_watch.watcher == nullptr) return false;
  if (is_watched(code)) return true;
  g_watch.codes.reserve(g_watch.codes.size() + 1);  // may throw, so before anything is changed
  ErrorAside aside;
  if (!arm_code(code)) return false;
  Py_INCREF(code);
  g_watch.codes.push_back(code);
  return true;
}

WatchStatus watch_stop(const Watcher* watcher) {
  if (watcher != nullptr && g_watch.watcher == watcher) return watch_stop();
  const auto is_this = [watcher](const WatchState& w) { return w.watcher == watcher; };
  const auto found = std::find_if(g_resting.begin(), g_resting.end(), is_this);
  if (found == g_resting.end()) return WatchStatus::kOk;
  ErrorAside aside;
  const WatchState ended = std::move(*found);
  g_resting.erase(found);
  end_resting(ended.thread);
  for (PyCodeObject* code : ended.codes) Py_DECREF(code);
  return WatchStatus::kLost;
}

WatchStatus watch_stop() {
  if (g_watch.watcher == nullptr) return WatchStatus::kOk;
  ErrorAside aside;  // the recorded function may have raised
  PyThreadState* thread = g_watch.thread;
  g_watch.watcher = nullptr;  // from here on nothing is announced, whatever the calls below do
  const bool complete = stop_events(thread) && !g_watch.lost;
  const std::vector<PyCodeObject*> codes = std::exchange(g_watch, {}).codes;
  go_on();
  for (PyCodeObject* code : codes) Py_DECREF(code);
  return complete ? WatchStatus::kOk : WatchStatus::kLost;
}

Unobserved::Unobserved() : watcher_(watching() && !g_watch.paused ? g_watch.watcher : nullptr) {
  ErrorAside aside;
  if (watcher_ != nullptr && !pause_events(g_watch.thread)) watcher_ = nullptr;
  g_watch.paused |= watcher_ != nullptr;
}

Unobserved::~Unobserved() {
  if (watcher_ == nullptr || !watching(watcher_)) return;
  ErrorAside aside;
  g_watch.paused = false;
  if (!go_on_with_events(g_watch.thread)) g_watch.lost = true;
}

bool forget_watch_after_fork() {
  PyThreadState* thread = PyThreadState_Get();
  forget_waiters(thread);
  if (g_watch.watcher == nullptr || g_watch.thread == thread) return false;
  ErrorAside aside;
  do {
    g_watch.watcher = nullptr;
    g_watch.thread = thread;  // the other one is gone
    forget_events(thread);
    for (PyCodeObject* code : g_watch.codes) Py_DECREF(code);
    g_watch = {};
    if (!g_resting.empty()) g_watch = std::move(g_resting.back()), g_resting.pop_back();
  } while (g_watch.thread != nullptr);
  return true;
}

bool watching(const Watcher* watcher) { return watching() && g_watch.watcher == watcher; }
bool watching() { return g_watch.watcher != nullptr && g_watch.thread == PyThreadState_Get(); }

}  // namespace dalsegno::hook
