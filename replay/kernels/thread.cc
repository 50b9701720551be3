// The threads that compile: started at need, stopped before the interpreter is finalised and around forks.
#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <new>
#include <thread>
#include <utility>

#include "halide_gen/runtime/signals_blocked.h"
#include "replay/background.h"
#include "replay/door.h"
#include "replay/forks.h"
#include "replay/kernels/compile.h"
#include "replay/kernels/loader.h"

namespace dalsegno::replay {
namespace {

thread_local bool to_give_way = false;  // it is the compile thread of what is not urgent, and has not

bool less_urgent(const std::shared_ptr<CompileJob>& a, const std::shared_ptr<CompileJob>& b) { return a->urgency() < b->urgency(); }

class CompileThread {
 public:
  explicit CompileThread(CompileKind kind) : kind_(kind) {}

  void add(std::shared_ptr<CompileJob> k) {
    std::lock_guard<std::mutex> lock(mutex_);
    kind_ == CompileKind::kLoop ? queue_.push_front(std::move(k)) : queue_.push_back(std::move(k));
    added_ = std::chrono::steady_clock::now();
    count_asked_for(1);
    start();
  }

  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (running_) place_.lift(thread_.native_handle());
    ++waiting_;
    wake_.notify_all();
    while (!stopped_ && (!queue_.empty() || current_ != nullptr)) {
      if (!start() && current_ == nullptr && paused_ == 0) {
        compile_first(lock);  // there can be no thread: here, then
      } else {
        idle_.wait(lock);
      }
    }
    --waiting_;
  }

  // No kernel is started any more; waits for the one in work.
  void stop() {
    std::unique_lock<std::mutex> lock(mutex_);
    stopped_ = true;
    idle_.wait(lock, [&] { return current_ == nullptr; });
    idle_.notify_all();
  }

  // Ends the thread, until resume(): a module imported by half would stay so in a child, and Python warns of forks in processes that
  // have other threads, where in eager there are none.
  void pause() {
    std::thread ended;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (++paused_ > 1 || !running_) return;
      running_ = false;
      ended.swap(thread_);
      wake_.notify_all();
    }
    ended.join();
  }
  // The thread starts with the next nudge(): Python counts threads after its hooks have run.
  void resume() {
    std::lock_guard<std::mutex> lock(mutex_);
    --paused_;
    idle_.notify_all();
  }
  void nudge() {
    std::lock_guard<std::mutex> lock(mutex_);
    start();
  }

  // Around forks that Python does not know of, too.
  void before_fork() { mutex_.lock(); }
  void after_fork_parent() { mutex_.unlock(); }
  // The thread is gone, if there was one; what it was doing is done again.
  void after_fork_child() {
    new (&wake_) std::condition_variable();
    new (&idle_) std::condition_variable();
    new (&thread_) std::thread();
    running_ = false;
    waiting_ = 0;
    if (current_) queue_.push_front(current_);
    current_ = nullptr;
    mutex_.unlock();
  }

 private:
  // With mutex_ held. False if there can be no thread now: what waits is tried again with the next kernel.
  bool start() {
    if (queue_.empty() || stopped_ || paused_ > 0) return running_;
    if (!running_) {
      try {
        const SignalsBlocked blocked;
        thread_ = std::thread([this, given = own_processors()] { serve(given); });
        running_ = true;
      } catch (const std::exception&) {
        return false;
      }
    }
    wake_.notify_one();
    return true;
  }

  void compile_first(std::unique_lock<std::mutex>& lock) {
    const auto next = kind_ == CompileKind::kRefined ? std::max_element(queue_.begin(), queue_.end(), less_urgent) : queue_.begin();
    current_ = *next;
    queue_.erase(next);
    lock.unlock();
    current_->compile();
    count_asked_for(-1);
    lock.lock();
    current_ = nullptr;
    idle_.notify_all();
  }

  void serve(const cpu_set_t& given) {
    be_ready_to_throw();
    to_give_way = kind_ != CompileKind::kLoop;
    std::unique_lock<std::mutex> lock(mutex_);
    place_.keep_off_caller(given);
    while (paused_ == 0) {
      if (queue_.empty() || stopped_) {
        if (running_) place_.lift(thread_.native_handle());
        wake_.wait(lock);
        continue;
      }
      if (!puts_off(lock)) compile_first(lock);
    }
  }

  // Nothing is urgent, and nobody waits for it: in a moment, then.
  bool puts_off(std::unique_lock<std::mutex>& lock) {
    constexpr auto kMoment = std::chrono::milliseconds(10), kLongest = std::chrono::milliseconds(150);
    if (kind_ != CompileKind::kRefined || waiting_ > 0) return false;
    const auto urgent = [](const std::shared_ptr<CompileJob>& job) { return job->urgency() > 0; };
    if (std::any_of(queue_.begin(), queue_.end(), urgent) || std::chrono::steady_clock::now() - added_ > kLongest) return false;
    wake_.wait_for(lock, kMoment);
    return true;
  }

  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::thread thread_;
  int waiting_ = 0;                                // in wait()
  std::chrono::steady_clock::time_point added_{};  // the newest
  Place place_;                                    // its
  std::deque<std::shared_ptr<CompileJob>> queue_;
  std::shared_ptr<CompileJob> current_;
  const CompileKind kind_;
  bool running_ = false, stopped_ = false;
  int paused_ = 0;
};

PyObject* stop_at_exit(PyObject*, PyObject*);
PyMethodDef stop_method = {"stop_compiling", stop_at_exit, METH_NOARGS, nullptr};

// module.name(*arguments, **keywords); all references are stolen, errors dropped.
void call(const char* module_name, const char* name, PyObject* arguments, PyObject* keywords) {
  PyObject* module = PyImport_ImportModule(module_name);
  PyObject* function = module ? PyObject_GetAttrString(module, name) : nullptr;
  Py_XDECREF(function && arguments ? PyObject_Call(function, arguments, keywords) : nullptr);
  Py_XDECREF(function);
  Py_XDECREF(module);
  Py_XDECREF(arguments);
  Py_XDECREF(keywords);
  PyErr_Clear();
}

// Never destroyed: their threads may outlive static destructors. Made with the GIL.
using CompileThreads = std::array<CompileThread, static_cast<size_t>(CompileKind::kCount)>;
CompileThreads& compile_threads();

template <class Do>
void for_each_thread(Do&& act) {
  for (CompileThread& thread : compile_threads()) act(thread);
}

template <class Do>
void for_each_mutex(Do&& act) {
  for (size_t kind = 0; kind < static_cast<size_t>(CompileKind::kCount); ++kind) act(llvm_mutex(static_cast<CompileKind>(kind)));
  act(halide_mutex());
  act(work_mutex());
}

void before_fork() {
  for_each_mutex([](std::mutex& m) { m.lock(); });
  for_each_thread([](CompileThread& t) { t.before_fork(); });
}
void unlock_work() {
  for_each_mutex([](std::mutex& m) { m.unlock(); });
}
void after_fork_parent() {
  for_each_thread([](CompileThread& t) { t.after_fork_parent(); });
  unlock_work();
}
void after_fork_child() {
  for_each_thread([](CompileThread& t) { t.after_fork_child(); });
  unlock_work();
}

void register_hooks() {
  call("atexit", "register", Py_BuildValue("(N)", PyCFunction_New(&stop_method, nullptr)), nullptr);
  const auto pause = [] { for_each_thread([](CompileThread& t) { t.pause(); }); };
  const auto resume = [] { for_each_thread([](CompileThread& t) { t.resume(); }); };
  around_python_forks({pause, resume, resume});
}

CompileThreads& compile_threads() {
  static auto* threads =
      new CompileThreads{CompileThread(CompileKind::kKernel), CompileThread(CompileKind::kLoop), CompileThread(CompileKind::kRefined)};
  static const bool registered = (pthread_atfork(before_fork, after_fork_parent, after_fork_child), register_hooks(), true);
  static_cast<void>(registered);
  return *threads;
}

PyObject* stop_at_exit(PyObject*, PyObject*) {
  compile_threads();  // made with the GIL
  without_gil([] { for_each_thread([](CompileThread& t) { t.stop(); }); });
  Py_RETURN_NONE;
}

}  // namespace

void compile_later(std::shared_ptr<CompileJob> job) {
  note_caller();
  kernel_environment();  // asks NumPy, with the GIL, once
  note_search_path();
  compile_next(std::move(job));
}

void compile_next(std::shared_ptr<CompileJob> job) {
  CompileThread& thread = compile_threads()[static_cast<size_t>(job->kind())];
  thread.add(std::move(job));
}

void give_way() {
  if (std::exchange(to_give_way, false)) lower_priority();
}

void* open_giving_way(const std::string& file) {
  void* library = nullptr;
  const auto open = [&] { library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); };
  if (!to_give_way) return open(), library;
  try {
    const SignalsBlocked blocked;
    std::thread([&] { be_ready_to_throw(), lower_priority(), open(); }).join();
  } catch (const std::exception&) {  // there can be no thread
    open();
  }
  return library;
}

void nudge_compiler() {
  for_each_thread([](CompileThread& t) { t.nudge(); });
}

void wait_for_compilers() {
  compile_threads();  // made with the GIL
  without_gil([] { for_each_thread([](CompileThread& t) { t.wait(); }); });
}

}  // namespace dalsegno::replay
