#include "replay/clock.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <utility>

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

double page_time() {
  static const double measured = [] {
    constexpr size_t kPages = 33;
    void* memory = mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 0.0;
    std::array<double, kPages> times;
    auto before = std::chrono::steady_clock::now();
    for (size_t i = 0; i < kPages; ++i) {
      static_cast<volatile char*>(memory)[i * kPage] = 1;
      const auto now = std::chrono::steady_clock::now();
      times[i] = std::chrono::duration<double, std::nano>(now - std::exchange(before, now)).count();
    }
    munmap(memory, kPages * kPage);
    std::nth_element(times.begin(), times.begin() + kPages / 2, times.end());
    return times[kPages / 2];
  }();
  return measured;
}

Uncounted::Uncounted() : start_(thread_time()) {}
Uncounted::~Uncounted() { uncounted += thread_time() - start_; }

}  // namespace dalsegno::replay
