#include "replay/persist/writer.h"

#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "halide_gen/runtime/signals_blocked.h"
#include "replay/background.h"
#include "replay/door.h"
#include "replay/forks.h"
#include "replay/persist/store.h"

namespace dalsegno::replay {
namespace {

class Writer {
 public:
  void add(std::function<void()> job) {
    std::unique_lock lock(mutex_);
    jobs_.push_back(std::move(job));
    start(lock);
  }

  void wait() {
    std::unique_lock lock(mutex_);
    if (running_) place_.lift(thread_.native_handle());
    for (start(lock); !jobs_.empty(); start(lock)) idle_.wait(lock);
  }

  // Ends the thread once its job is done, until resume().
  void pause() {
    std::thread ended;
    {
      std::lock_guard lock(mutex_);
      if (++paused_ > 1 || !running_) return;
      running_ = false;
      ended.swap(thread_);
      wake_.notify_all();
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
    if (jobs_.empty() || draining_) return;
    if (!running_ && paused_ == 0) {
      try {
        const SignalsBlocked blocked;
        thread_ = std::thread([this, given = own_processors()] { serve(given); });
        running_ = true;
      } catch (const std::system_error&) {  // no more threads, or no memory for one
        draining_ = true;
        while (!jobs_.empty()) do_first(lock);
        draining_ = false;
      }
    }
    wake_.notify_all();
  }

  void serve(const cpu_set_t& given) {
    be_ready_to_throw();
    std::unique_lock lock(mutex_);
    place_.keep_off_caller(given);
    lock.unlock();
    lower_priority();
    lock.lock();
    while (paused_ == 0) {
      if (jobs_.empty()) {
        wake_.wait(lock);
      } else {
        do_first(lock);
      }
    }
  }

  // It stays in the queue until it is done: wait() waits for it, but nobody for the disk behind the last one.
  void do_first(std::unique_lock<std::mutex>& lock) {
    const std::function<void()>& job = jobs_.front();
    lock.unlock();
    or_lose(job);  // a miss for the next process
    lock.lock();
    jobs_.pop_front();
    if (!jobs_.empty()) return;
    idle_.notify_all();
    lock.unlock();
    or_lose([] { process_store().sync(); });
    lock.lock();
    if (running_) place_.lift(thread_.native_handle());
  }

  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::thread thread_;
  Place place_;  // its
  std::deque<std::function<void()>> jobs_;
  bool running_ = false;
  bool draining_ = false;  // a caller does the work
  int paused_ = 0;
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

}  // namespace dalsegno::replay
