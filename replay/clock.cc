#include "replay/clock.h"

#include <sys/resource.h>

#include <ctime>

namespace dalsegno::replay {
namespace {

thread_local double uncounted = 0;

}  // namespace

double thread_time() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) - uncounted;
}

int64_t thread_faults() {
  rusage usage;
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_minflt : 0;
}

Uncounted::Uncounted() : start_(thread_time()) {}
Uncounted::~Uncounted() { uncounted += thread_time() - start_; }

}  // namespace dalsegno::replay
