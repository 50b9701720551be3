#include "replay/background.h"

#include <pthread.h>
#include <sys/resource.h>

#include <atomic>
#include <utility>

namespace dalsegno::replay {
namespace {

std::atomic<int> g_callers_processor{-1};
thread_local const cpu_set_t* own_given = nullptr;  // to one of ours

}  // namespace

void lower_priority() {
  constexpr int kNiceness = 10;
  if (getpriority(PRIO_PROCESS, 0) < kNiceness) setpriority(PRIO_PROCESS, 0, kNiceness);
  const sched_param none = {};  // as a batch job it takes no running thread's place when it has waited for the disk
  if (sched_getscheduler(0) == SCHED_OTHER) sched_setscheduler(0, SCHED_BATCH, &none);
  sched_yield();  // the caller's place, if it was that
}

void note_caller() { g_callers_processor.store(sched_getcpu(), std::memory_order_relaxed); }

cpu_set_t own_processors() {
  if (own_given) return *own_given;
  cpu_set_t all;
  CPU_ZERO(&all);
  sched_getaffinity(0, sizeof all, &all);  // (none are known where it fails, and nothing is changed)
  return all;
}

void Place::keep_off_caller(const cpu_set_t& given) {
  const int own = g_callers_processor.load(std::memory_order_relaxed);
  kept_off_ = false;
  given_ = given, own_given = &given_;
  if (own < 0 || own >= CPU_SETSIZE) return;
  cpu_set_t others = given_;
  CPU_CLR(own, &others);
  kept_off_ = CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0;
}

void Place::lift(std::thread::native_handle_type thread) {
  if (std::exchange(kept_off_, false)) pthread_setaffinity_np(thread, sizeof given_, &given_);
}

}  // namespace dalsegno::replay
