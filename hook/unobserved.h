// While a thread is watched: frames that C code runs, of generators and of functions that it calls back.
#pragma once
#include <Python.h>

#include "hook/hook.h"

namespace dalsegno::hook {

// From inside Watcher::before. On: the instruction that begins lets C code run frames of generators. They run unobserved and at full speed,
// until off is said, at the next instruction, or the frame is left. 3.11 traces the whole thread, which would make whatever runs in it
// several times slower; for later versions there is nothing to be done.
#if PY_VERSION_HEX < 0x030c0000
constexpr bool kWatchesThreads = true;
void let_frames_run(bool on);
#else
constexpr bool kWatchesThreads = false;
inline void let_frames_run(bool) {}
#endif

// While one lives, nothing that the watched thread runs is announced, whatever code it runs, and at full speed. (3.12 and later take the
// events off the watched code objects, which takes microseconds.) Nothing is being watched: no more than a look.
class Unobserved {
 public:
  Unobserved();
  ~Unobserved();
  Unobserved(const Unobserved&) = delete;

 private:
  const Watcher* watcher_;  // null: there was nobody
};

}  // namespace dalsegno::hook
