// Observing the instructions of running code: what both ways (sys.monitoring, trace function) have in common.
#include <algorithm>

#include "hook/unobserved.h"
#include "hook/watch_state.h"

namespace dalsegno::hook {

WatchState g_watch;

bool is_watched(const PyCodeObject* code) { return std::find(g_watch.codes.begin(), g_watch.codes.end(), code) != g_watch.codes.end(); }

void announce(PyThreadState* thread, Frame* frame, int offset, int stack_depth) {
  if (g_watch.watcher == nullptr || g_watch.thread != thread) return;
  const FrameView view{frame, visible_frame(frame->previous), function_of(frame), code_of(frame), slots_of(frame), offset, stack_depth};
  g_watch.watcher->before(view);
}

WatchStatus watch_start(Watcher* watcher) {
  if (g_watch.watcher != nullptr) return WatchStatus::kBusy;
  PyThreadState* thread = PyThreadState_Get();
  if (is_traced(thread) || thread->tracing != 0) return WatchStatus::kTraced;
  ErrorAside aside;
  const WatchStatus status = start_events(thread);
  if (status != WatchStatus::kOk) return status;
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

WatchStatus watch_stop() {
  if (g_watch.watcher == nullptr) return WatchStatus::kOk;
  ErrorAside aside;  // the recorded function may have raised
  PyThreadState* thread = g_watch.thread;
  g_watch.watcher = nullptr;  // from here on nothing is announced, whatever the calls below do
  const bool complete = stop_events(thread) && !g_watch.lost;
  std::vector<PyCodeObject*> codes;
  codes.swap(g_watch.codes);
  g_watch.thread = nullptr;
  for (PyCodeObject* code : codes) Py_DECREF(code);
  return complete ? WatchStatus::kOk : WatchStatus::kLost;
}

Unobserved::Unobserved() : watcher_(watching() ? g_watch.watcher : nullptr) {
  ErrorAside aside;
  if (watcher_ != nullptr && !pause_events(g_watch.thread)) watcher_ = nullptr;
}

Unobserved::~Unobserved() {
  if (!watching(watcher_)) return;
  ErrorAside aside;
  if (!go_on_with_events(g_watch.thread)) g_watch.lost = true;
}

bool forget_watch_after_fork() {
  PyThreadState* thread = PyThreadState_Get();
  forget_waiters(thread);
  if (g_watch.watcher == nullptr || g_watch.thread == thread) return false;
  ErrorAside aside;
  g_watch.watcher = nullptr;
  g_watch.thread = thread;  // the other one is gone
  forget_events(thread);
  std::vector<PyCodeObject*> codes;
  codes.swap(g_watch.codes);
  g_watch.thread = nullptr;
  for (PyCodeObject* code : codes) Py_DECREF(code);
  return true;
}

bool watching(const Watcher* watcher) { return watching() && g_watch.watcher == watcher; }
bool watching() { return g_watch.watcher != nullptr && g_watch.thread == PyThreadState_Get(); }

}  // namespace dalsegno::hook
