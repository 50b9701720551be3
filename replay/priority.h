// Background threads give way: where there are fewer processors than threads (BLAS' workers wait for work by turning), one that is started
// at an ordinary priority takes the place of the caller that has started it, for milliseconds.
#pragma once
#include <sched.h>
#include <sys/resource.h>

namespace dalsegno::replay {

// Of the calling thread: on Linux niceness belongs to threads.
inline void lower_priority() {
#if defined(__linux__)
  constexpr int kNiceness = 10;
  if (getpriority(PRIO_PROCESS, 0) < kNiceness) setpriority(PRIO_PROCESS, 0, kNiceness);
  const sched_param none = {};  // as a batch job it takes no running thread's place when it has waited for the disk
  if (sched_getscheduler(0) == SCHED_OTHER) sched_setscheduler(0, SCHED_BATCH, &none);
  sched_yield();  // the caller's place, if it was that
#endif
}

}  // namespace dalsegno::replay
