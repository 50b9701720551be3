// Private to hook/. The one recording that may go on in this process, shared by the two ways of observing: sys.monitoring (3.12 on,
// observe_monitoring.cc) and a trace function (3.11, observe_tracing.cc). Guarded by the GIL.
#pragma once
#include <vector>

#include "hook/frame_access.h"

namespace dalsegno::hook {

struct WatchState {
  Watcher* watcher = nullptr;        // null: nothing is being watched
  PyThreadState* thread = nullptr;   // the thread being watched
  std::vector<PyCodeObject*> codes;  // watched code objects (strong references)
  bool lost = false;                 // an event may have been missed
};

extern WatchState g_watch;

bool is_watched(const PyCodeObject* code);
// Calls the watcher, if this thread is the one being watched.
void announce(PyThreadState* thread, Frame* frame, int offset, int stack_depth);

// What differs between the versions. start: kOk, or why not (nothing has been changed then). arm: False if the code object cannot be
// watched.
WatchStatus start_events(PyThreadState* thread);
bool arm_code(PyCodeObject* code);
#if DALSEGNO_PY311
bool arm_frame(PyThreadState* thread, Frame* frame);  // later versions instrument the code object itself
#endif
// Takes everything back; false if events may have been missed.
bool stop_events(PyThreadState* thread);
// In a child: what was set up for a thread that is gone is taken back.
void forget_events(PyThreadState* thread);

// A frame has been rebuilt by resume and is about to run.
inline void announce_entered(PyThreadState* thread, Frame* frame) {
#if DALSEGNO_PY311
  if (g_watch.watcher != nullptr && g_watch.thread == thread && is_watched(code_of(frame))) arm_frame(thread, frame);
#endif
}

}  // namespace dalsegno::hook
