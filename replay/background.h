// How background threads keep out of the way of the callers they work for. Where no processor is idle (the workers of BLAS wait for work by
// turning, for 100 ms after NumPy has been imported), the scheduler gives a thread that has just been started or woken its turn, whatever
// its priority: the caller it took the processor from waits for 2 to 4 ms, longer than many a first call takes.
#pragma once
#include <sched.h>

#include <thread>

namespace dalsegno::replay {

// Of the calling thread, for good. (On Linux niceness belongs to threads.)
void lower_priority();

// Called by who leaves something to the background: the processor it is on is its own.
void note_caller();

// The processors that the calling thread may use; one of ours, that keeps off a caller's, those that it was given. Asked by who starts a
// thread, which begins where that one is.
cpu_set_t own_processors();

// The processors a background thread may use: at first not the caller's, if there are others. With the lock of its owner, which it
// outlives.
class Place {
 public:
  void keep_off_caller(const cpu_set_t& given);  // the calling thread; given: own_processors() of who started it
  // It may use all that it was given: it has had its first turn, or the caller waits for it.
  void lift(std::thread::native_handle_type thread);

 private:
  cpu_set_t given_{};
  bool kept_off_ = false;
};

}  // namespace dalsegno::replay
