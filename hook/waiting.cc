// Waiting for a frame to come to the head of a loop: what both ways (sys.monitoring, trace function) have in common.
#include "hook/watch_state.h"

namespace dalsegno::hook {

LoopWaiter* g_waiters = nullptr;

namespace {

template <typename Wanted>
LoopWaiter* find_waiter(Wanted&& wanted) {
  for (LoopWaiter* w = g_waiters; w != nullptr; w = w->outer())
    if (w->waiting() && wanted(*w)) return w;
  return nullptr;
}

}  // namespace

bool is_awaited(const PyCodeObject* code) {
  return find_waiter([code](const LoopWaiter& w) { return w.code() == code; }) != nullptr;
}

bool thread_waits(const PyThreadState* thread) {
  return find_waiter([thread](const LoopWaiter& w) { return w.thread() == thread; }) != nullptr;
}

LoopWaiter* waiter_of(const PyThreadState* thread, const Frame* frame) {
  return find_waiter([&](const LoopWaiter& w) { return w.thread() == thread && w.code() == code_of(frame) && w.frame() == frame; });
}

bool reach_loop(PyThreadState* thread, Frame* frame, LoopWaiter* waiter, int offset) {
  const int depth = used_slots(frame) - code_of(frame)->co_nlocalsplus;
  const FrameView view{frame, visible_frame(frame->previous), function_of(frame), code_of(frame), slots_of(frame), offset, depth};
  RunningFrame running(view);
  const OutsideEvent outside(thread);
  return waiter->at_loop(running);
}

LoopWaiter::LoopWaiter(PyCodeObject* code)
    : code_(reinterpret_cast<PyCodeObject*>(Py_NewRef(code))), thread_(PyThreadState_Get()), outer_(g_waiters) {
  g_waiters = this;
}

LoopWaiter::~LoopWaiter() {
  LoopWaiter** at = &g_waiters;  // those of other threads may have come since
  while (*at != nullptr && *at != this) at = &(*at)->outer_;
  if (*at == this) *at = outer_;
  Py_DECREF(code_);
}

bool LoopWaiter::wait() {
  if (waiting_) return true;
  if (thread_->tracing != 0 || thread_observed(thread_) || code_observed(code_)) return false;
  const ErrorAside aside;
  waiting_ = true;
  last_offset = -1;
  return waiting_ = arm_waiter(this);
}

void LoopWaiter::begun() {
  if (waiting_) arm_begun(this);
}

void LoopWaiter::stop_waiting() {
  if (!waiting_) return;
  const ErrorAside aside;
  waiting_ = false;
  disarm_waiter(this);
}

void forget_waiters(const PyThreadState* thread) {
  LoopWaiter** at = &g_waiters;
  while (*at != nullptr) {
    LoopWaiter* w = *at;
    if (w->thread() == thread) {
      at = &w->outer_;
    } else {
      w->stop_waiting();
      *at = w->outer_;
    }
  }
}

}  // namespace dalsegno::hook
