#include "replay/persist/writer.h"

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "halide_gen/runtime/signals_blocked.h"
#include "replay/background.h"
#include "replay/door.h"
#include "replay/forks.h"
#include "replay/persist/store.h"

namespace dalsegno::replay {
namespace {

struct Job {
  std::function<void()> run;
  Job* next = nullptr;
};

// Jobs on their way from one thread to another, which neither waits for.
class Handover {
 public:
  void put(Job* job) {
    job->next = top_.load(std::memory_order_relaxed);
    while (!top_.compare_exchange_weak(job->next, job, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }
  Job* take_all() { return top_.exchange(nullptr, std::memory_order_acquire); }  // the last one put first

 private:
  std::atomic<Job*> top_{nullptr};
};

// The thread has a low priority: where it is interrupted, it may be for milliseconds. So a call that leaves something to it takes no lock
// that it holds, and destroys what calls have made for jobs (else it would hold the lock of their memory).
class Writer {
 public:
  void add(std::function<void()> run) {
    destroy_done();
    auto job = std::make_unique<Job>(std::move(run));
    ++undone_;
    incoming_.put(job.release());
    if (running_) return wake();
    std::unique_lock lock(mutex_);
    start(lock);
  }

  void wait() {
    std::unique_lock lock(mutex_);
    if (running_) place_.lift(thread_.native_handle());
    for (start(lock); undone_ > 0; start(lock)) idle_.wait(lock);
    destroy_done();
  }

  bool busy() const { return undone_ > 0; }

  // Ends the thread once its job is done, until resume().
  void pause() {
    std::thread ended;
    {
      std::lock_guard lock(mutex_);
      if (++paused_ > 1 || !running_) return;
      running_ = false;
      ended.swap(thread_);
      wake();
    }
    ended.join();
  }

  // The thread starts with the next job: Python counts threads after its hooks have run.
  void resume() {
    std::lock_guard lock(mutex_);
    if (paused_ > 0) --paused_;
    idle_.notify_all();
  }

 private:
  void start(std::unique_lock<std::mutex>& lock) {
    if (undone_ == 0 || draining_ || paused_ > 0) return;
    if (running_) return wake();  // (it may have been started meanwhile, and have found nothing)
    try {
      const SignalsBlocked blocked;
      thread_ = std::thread([this, given = own_processors()] { serve(given); });
      running_ = true;
    } catch (const std::system_error&) {  // no more threads, or no memory for one
      draining_ = true;
      lock.unlock();
      while (do_next()) {
      }
      lock.lock();
      draining_ = false;
    }
  }

  void wake() {
    ++calls_;
    calls_.notify_one();
  }

  void serve(const cpu_set_t& given) {
    be_ready_to_throw();
    {
      std::lock_guard lock(mutex_);
      place_.keep_off_caller(given);
    }
    lower_priority();
    while (paused_ == 0) {
      const unsigned calls = calls_;
      if (do_next()) continue;
      if (undone_ == 0 && paused_ == 0) calls_.wait(calls);
    }
  }

  // By the thread, or by a caller while there is none. Nobody waits for the disk behind the last job.
  bool do_next() {
    if (!jobs_) {  // in the order in which they came
      for (Job *job = incoming_.take_all(), *next = nullptr; job; job = next) next = std::exchange(job->next, std::exchange(jobs_, job));
      if (!jobs_) return false;
    }
    Job* job = std::exchange(jobs_, jobs_->next);
    or_lose(job->run);  // a miss for the next process
    done_.put(job);
    if (--undone_ > 0) return true;
    {
      std::lock_guard lock(mutex_);
      idle_.notify_all();
      if (running_) place_.lift(thread_.native_handle());
    }
    or_lose([] { process_store().sync(); });
    return true;
  }

  void destroy_done() {
    for (Job* job = done_.take_all(); job;) delete std::exchange(job, job->next);
  }

  Handover incoming_, done_;
  Job* jobs_ = nullptr;         // taken from incoming_, of who does them
  std::atomic<int> undone_{0};  // of all that were added
  std::atomic<unsigned> calls_{0};
  std::mutex mutex_;  // of what follows
  std::condition_variable idle_;
  std::thread thread_;
  Place place_;  // its
  std::atomic<bool> running_{false};
  bool draining_ = false;  // a caller does the work
  std::atomic<int> paused_{0};
};

Writer* g_writer = nullptr;  // never destroyed: its thread may outlive main()

Writer& writer() {
  if (!g_writer) g_writer = new Writer;
  return *g_writer;
}

}  // namespace

void prepare_writer() {
  static const bool registered = [] {
    pthread_atfork(nullptr, nullptr, [] { g_writer = nullptr; });  // the parent's thread does the parent's jobs
    around_python_forks({[] { writer().pause(); }, [] { writer().resume(); }, [] { writer().resume(); }});
    return true;
  }();
  (void)registered;
  writer();
}

void write_later(std::function<void()> job) {
  note_caller();
  prepare_writer();
  writer().add(std::move(job));
}

void wait_for_writer() { writer().wait(); }

bool writing() { return g_writer && g_writer->busy(); }

}  // namespace dalsegno::replay
