#include "halide_gen/runtime/pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "halide_gen/runtime/flags.h"
#include "halide_gen/runtime/launch.h"

namespace dalsegno::rt {
namespace {

constexpr int kPatience = 1000;                         // pauses before the core is offered to others
constexpr auto kSpin = std::chrono::microseconds(200);  // longer costs other processes more than it gains

inline void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

struct Job {
  void (*task)(void*, int) = nullptr;
  void* context = nullptr;
  int n = 0;
  ControlWord control = 0;
  int helpers = 0;           // workers that may still join
  std::atomic<int> next{0};  // task to be claimed
  std::atomic<int> flags{0};

  void work() {
    int seen = 0;
    for (int i; (i = next.fetch_add(1, std::memory_order_relaxed)) < n;) {
      set_control_word(control);
      task(context, i);
      seen |= raised();
    }
    flags.fetch_or(seen, std::memory_order_relaxed);
  }
};

class Pool {
 public:
  int run(int n, int threads, void (*task)(void*, int), void* context) {
    Job job;
    job.task = task, job.context = context, job.n = n, job.control = control_word();
    std::unique_lock<std::mutex> owner(busy_, std::try_to_lock);
    if (owner && threads > 1 && n > 1) {
      job.helpers = std::min(threads, n) - 1;
      start(job.helpers);
      publish(&job);
      job.work();
      retire(&job);
    } else {
      job.work();
    }
    return job.flags.load();
  }

  // In the child of a fork the worker threads are gone, and locks may have been held by them.
  void forget() { new (this) Pool(); }

 private:
  void start(int wanted) {
    while (static_cast<int>(started_) < wanted) {
      std::thread([this] { serve(); }).detach();
      ++started_;
    }
  }

  void publish(Job* job) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      job_ = job;
      generation_.fetch_add(1, std::memory_order_release);
    }
    if (sleepers_.load() > 0) wake_.notify_all();
  }

  // No worker may join any more; those inside finish their tasks.
  void retire(Job* job) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      job_ = nullptr;
    }
    for (int i = 0; inside_.load(std::memory_order_acquire) > 0; ++i) {
      if (i < kPatience) {
        relax();
      } else {
        std::this_thread::yield();  // the worker may be waiting for this very core
      }
    }
  }

  Job* join() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (job_ == nullptr || job_->helpers == 0) return nullptr;
    --job_->helpers;
    inside_.fetch_add(1, std::memory_order_relaxed);
    return job_;
  }

  void serve() {
    uint64_t seen = 0;
    for (;;) {
      seen = wait(seen);
      if (Job* job = join()) {
        job->work();
        inside_.fetch_sub(1, std::memory_order_release);
      }
    }
  }

  uint64_t wait(uint64_t seen) {
    const auto until = std::chrono::steady_clock::now() + kSpin;
    for (int i = 0;; ++i) {
      const uint64_t now = generation_.load(std::memory_order_acquire);
      if (now != seen) return now;
      relax();
      if (i % 64 == 63 && std::chrono::steady_clock::now() > until) break;
    }
    std::unique_lock<std::mutex> lock(mutex_);
    sleepers_.fetch_add(1);
    wake_.wait(lock, [&] { return generation_.load() != seen; });
    sleepers_.fetch_sub(1);
    return generation_.load();
  }

  std::mutex busy_;   // held by the thread whose job it is
  std::mutex mutex_;  // guards job_, helpers
  std::condition_variable wake_;
  Job* job_ = nullptr;
  std::atomic<uint64_t> generation_{0};
  std::atomic<int> inside_{0}, sleepers_{0};
  int started_ = 0;
};

// Never destroyed: workers may outlive static destructors.
Pool& pool() {
  alignas(Pool) static unsigned char memory[sizeof(Pool)];
  static Pool* made = [] {
    Pool* p = new (memory) Pool();
    pthread_atfork(nullptr, nullptr, [] { reinterpret_cast<Pool*>(memory)->forget(); });
    return p;
  }();
  return *made;
}

}  // namespace

int parallel(int n, int threads, void (*task)(void*, int), void* context) { return pool().run(n, threads, task, context); }

}  // namespace dalsegno::rt
