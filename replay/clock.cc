#include "replay/clock.h"

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

Uncounted::Uncounted() : start_(thread_time()) {}
Uncounted::~Uncounted() { uncounted += thread_time() - start_; }

}  // namespace dalsegno::replay
