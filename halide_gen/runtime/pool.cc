#include "halide_gen/runtime/pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "halide_gen/runtime/flags.h"
#include "halide_gen/runtime/launch.h"
#include "halide_gen/runtime/signals_blocked.h"

namespace dalsegno::rt {
namespace {

constexpr int kPatience = 1000;                         // pauses before the core is offered to others
constexpr auto kLate = std::chrono::microseconds(100);  // a worker that ends so long behind the caller had no processor
constexpr auto kSpin = std::chrono::microseconds(200);  // longer costs other processes more than it gains

using Clock = std::chrono::steady_clock;

// Whether workers help. Where they have no processor of their own they take the caller's, or sleep on work that is theirs: a call of 0.2 ms
// took 1.2, in a process that may use one processor, or beside others that are busy on all. Then the caller works alone for a while.
class Company {
 public:
  bool helps() const { return alone_ == Clock::duration::zero() || Clock::now() >= until_; }
  void disturbed() {
    alone_ = std::clamp<Clock::duration>(2 * alone_, kLeast, kMost);
    until_ = Clock::now() + alone_;
    well_ = 0;
  }
  void helped() {
    if (alone_ != Clock::duration::zero() && ++well_ == kWell) alone_ = Clock::duration::zero();
  }

 private:
  static constexpr Clock::duration kLeast = std::chrono::milliseconds(10), kMost = std::chrono::seconds(1);
  static constexpr int kWell = 16;  // jobs one after the other

  Clock::duration alone_{};
  Clock::time_point until_{};
  int well_ = 0;
};

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
  int processor = -1;               // the caller's
  std::atomic<bool> shares{false};  // a worker was on it, too

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
    if (owner && threads > 1 && n > 1 && company_.helps()) {
      job.processor = sched_getcpu();
      job.helpers = start(std::min(threads, n) - 1);
      const Clock::time_point begin = Clock::now();
      publish(&job);
      job.work();
      const Clock::time_point done = Clock::now();
      retire(&job);
      const bool late = Clock::now() - done > std::max<Clock::duration>(kLate, (done - begin) / 2);
      late || job.shares.load() ? company_.disturbed() : company_.helped();
    } else {
      job.work();
    }
    return job.flags.load();
  }

  // Around forks: the workers are ended, so that nothing is lost in the child, and that Python, which warns of forks in processes with
  // other threads, has nothing to say that it would not say in eager. They start again with the next job.
  void before_fork() {
    busy_.lock();
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ending_ = true;
      generation_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
    ending_ = false;
  }
  void after_fork() { busy_.unlock(); }

 private:
  // As many workers as wanted, or as there can be: threads may be limited, and memory for their stacks.
  int start(int wanted) {
    if (static_cast<int>(workers_.size()) >= wanted) return wanted;
    const SignalsBlocked blocked;
    try {
      while (static_cast<int>(workers_.size()) < wanted) workers_.emplace_back([this] { serve(); });
    } catch (const std::exception&) {
    }
    return std::min(wanted, static_cast<int>(workers_.size()));
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

  bool ending() {
    std::lock_guard<std::mutex> lock(mutex_);
    return ending_;
  }

  Job* join() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (job_ == nullptr || job_->helpers == 0) return nullptr;
    --job_->helpers;
    if (sched_getcpu() == job_->processor) job_->shares = true;
    inside_.fetch_add(1, std::memory_order_relaxed);
    return job_;
  }

  void serve() {
    uint64_t seen = 0;
    for (;;) {
      seen = wait(seen);
      if (ending()) return;
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
  Company company_;   // guarded by busy_
  std::mutex mutex_;  // guards job_, helpers, ending_
  std::condition_variable wake_;
  Job* job_ = nullptr;
  std::atomic<uint64_t> generation_{0};
  std::atomic<int> inside_{0}, sleepers_{0};
  std::vector<std::thread> workers_;  // guarded by busy_
  bool ending_ = false;
};

// Never destroyed: workers may outlive static destructors.
Pool& pool() {
  static Pool* made = [] {
    static auto* p = new Pool;
    pthread_atfork([] { p->before_fork(); }, [] { p->after_fork(); }, [] { p->after_fork(); });
    return p;
  }();
  return *made;
}

}  // namespace

int parallel(int n, int threads, void (*task)(void*, int), void* context) { return pool().run(n, threads, task, context); }

}  // namespace dalsegno::rt
