// The clock that calls are judged by: the thread's own, so that what else the machine does is not taken for slowness.
#pragma once

#include <cstdint>

namespace dalsegno::replay {

// Nanoseconds the calling thread has run, less what was Uncounted.
double thread_time();
constexpr int kPage = 4096;  // bytes
// Pages that the system has made for the calling thread (minor faults).
int64_t thread_faults();
// Nanoseconds that one takes, as measured once: 100 to 10,000, the most for a guest of a hypervisor.
double page_time();

// What the thread does while one lives is no call's: compiling on its caller's thread (the setting `background`), which is done once.
class Uncounted {
 public:
  Uncounted();
  ~Uncounted();
  Uncounted(const Uncounted&) = delete;

 private:
  const double start_;
};

}  // namespace dalsegno::replay
