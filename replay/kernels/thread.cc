// The thread that compiles kernels: started at need, stopped before the interpreter is finalised and around forks.
#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <new>
#include <thread>

#include "halide_gen/runtime/signals_blocked.h"
#include "replay/forks.h"
#include "replay/kernels/compile.h"

namespace dalsegno::replay {
namespace {

class CompileThread {
 public:
  void add(std::shared_ptr<CompileJob> k) {
    std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(std::move(k));
    count_asked_for(1);
    start();
  }

  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stopped_ && (!queue_.empty() || current_ != nullptr)) {
      if (!start() && current_ == nullptr && paused_ == 0) {
        compile_first(lock);  // there can be no thread: here, then
      } else {
        idle_.wait(lock);
      }
    }
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
  void before_fork() {
    work_mutex().lock();
    mutex_.lock();
  }
  void after_fork_parent() {
    mutex_.unlock();
    work_mutex().unlock();
  }
  // The thread is gone, if there was one; what it was doing is done again.
  void after_fork_child() {
    new (&wake_) std::condition_variable();
    new (&idle_) std::condition_variable();
    new (&thread_) std::thread();
    running_ = false;
    if (current_) queue_.push_front(current_);
    current_ = nullptr;
    mutex_.unlock();
    work_mutex().unlock();
  }

 private:
  // With mutex_ held. False if there can be no thread now: what waits is tried again with the next kernel.
  bool start() {
    if (queue_.empty() || stopped_ || paused_ > 0) return running_;
    if (!running_) {
      try {
        const SignalsBlocked blocked;
        thread_ = std::thread([this] { serve(); });
        running_ = true;
      } catch (const std::exception&) {
        return false;
      }
    }
    wake_.notify_one();
    return true;
  }

  void compile_first(std::unique_lock<std::mutex>& lock) {
    current_ = queue_.front();
    queue_.pop_front();
    lock.unlock();
    current_->compile();
    count_asked_for(-1);
    lock.lock();
    current_ = nullptr;
    idle_.notify_all();
  }

  void serve() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (paused_ == 0) {
      if (queue_.empty() || stopped_) {
        wake_.wait(lock);
        continue;
      }
      compile_first(lock);
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::thread thread_;
  std::deque<std::shared_ptr<CompileJob>> queue_;
  std::shared_ptr<CompileJob> current_;
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

// Never destroyed: its thread may outlive static destructors. Made with the GIL.
CompileThread& compile_thread();

void register_hooks() {
  call("atexit", "register", Py_BuildValue("(N)", PyCFunction_New(&stop_method, nullptr)), nullptr);
  around_python_forks({[] { compile_thread().pause(); }, [] { compile_thread().resume(); }, [] { compile_thread().resume(); }});
}

CompileThread& compile_thread() {
  static CompileThread* made = [] {
    static auto* t = new CompileThread;
    pthread_atfork([] { t->before_fork(); }, [] { t->after_fork_parent(); }, [] { t->after_fork_child(); });
    register_hooks();
    return t;
  }();
  return *made;
}

PyObject* stop_at_exit(PyObject*, PyObject*) {
  CompileThread& thread = compile_thread();  // made with the GIL
  without_gil([&] { thread.stop(); });
  Py_RETURN_NONE;
}

}  // namespace

void compile_later(std::shared_ptr<CompileJob> job) {
  kernel_environment();  // asks NumPy, with the GIL, once
  compile_thread().add(std::move(job));
}

void nudge_compiler() { compile_thread().nudge(); }

void wait_for_compilers() {
  CompileThread& thread = compile_thread();
  without_gil([&] { thread.wait(); });
}

}  // namespace dalsegno::replay
