// Private to hook/. The recordings that go on in this process, shared by the two ways of observing: sys.monitoring (3.12 on,
// observe_monitoring.cc) and a trace function (3.11, observe_tracing.cc). All are of one thread; those around the innermost one rest until
// that has ended. Guarded by the GIL.
#pragma once
#include <vector>

#include "hook/frame_access.h"

namespace dalsegno::hook {

struct WatchState {
  Watcher* watcher = nullptr;        // null: nothing is being watched
  PyThreadState* thread = nullptr;   // the thread being watched
  std::vector<PyCodeObject*> codes;  // watched code objects (strong references)
  bool lost = false;                 // an event may have been missed
  bool paused = false;               // its events are off
  std::vector<Frame*> marked;        // while it rests: frames with events of their own (3.11)
};

extern WatchState g_watch;                 // the innermost one
extern std::vector<WatchState> g_resting;  // those around it, outermost first

// Is the thread watched, and are the events on? Those of this code object?
bool watches(const PyThreadState* thread);
bool is_watched(const PyCodeObject* code);
// Calls the watcher, if this thread is the one being watched.
void announce(PyThreadState* thread, Frame* frame, int offset, int stack_depth);

// What differs between the versions. start: kOk, or why not (nothing has been changed then). arm: False if the code object cannot be
// watched.
WatchStatus start_events(PyThreadState* thread);
bool arm_code(PyCodeObject* code);
// Between the two calls the thread is not observed. False: it is not any more, or was not.
bool pause_events(PyThreadState* thread);
bool go_on_with_events(PyThreadState* thread);
// The frames of the thread that are observed one by one, and those observed once more (3.11).
std::vector<Frame*> marked_frames(PyThreadState* thread);
void mark_frames(const std::vector<Frame*>& frames);
// Takes everything back; false if events may have been missed.
bool stop_events(PyThreadState* thread);
// The same of one that rests.
void end_resting(PyThreadState* thread);
// The thread is traced or profiled by others.
bool is_traced(const PyThreadState* thread);
// In a child: what was set up for a thread that is gone is taken back.
void forget_events(PyThreadState* thread);

// ---- frames waited for at loops (waiting.cc) ------------------------------------------------------------------------------------

extern LoopWaiter* g_waiters;  // innermost first, of all threads
bool is_awaited(const PyCodeObject* code);
bool thread_waits(const PyThreadState* thread);
// In a child: those of other threads are gone.
void forget_waiters(const PyThreadState* thread);
// The waiter for this frame, or null.
LoopWaiter* waiter_of(const PyThreadState* thread, const Frame* frame);
// The frame has jumped back to `offset`, and its evaluator takes what it finds there afterwards. False: an exception is set.
bool reach_loop(PyThreadState* thread, Frame* frame, LoopWaiter* waiter, int offset);

// What differs between the versions: events for a waiter, which is (no longer) in the list as one that waits.
bool arm_waiter(LoopWaiter* waiter);
void arm_begun(LoopWaiter* waiter);  // its frame is known now
void disarm_waiter(LoopWaiter* waiter);
// While one lives, what runs inside an event of ours is not inside an event.
class OutsideEvent {
 public:
  explicit OutsideEvent(PyThreadState* thread);
  ~OutsideEvent();
  OutsideEvent(const OutsideEvent&) = delete;

 private:
  PyThreadState* thread_;
  int tracing_, what_;
};

// A frame has been rebuilt by resume and is about to run: it is observed by those who observe now.
void announce_entered(PyThreadState* thread, Frame* frame);

}  // namespace dalsegno::hook
