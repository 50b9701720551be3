// A tree's way into the store and back. Traces are written by a thread of our own, in the order they were recorded; what they refer to
// is fingerprinted on the caller's thread first, so that the thread needs no Python.
#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "replay/persist/persist.h"
#include "replay/persist/store.h"
#include "replay/settings.h"
#include "replay/tree.h"

namespace dalsegno::replay {
namespace {

// Jobs done one after the other by one thread, started when the first comes. Not inherited over a fork: the parent's thread does its own.
class Writer {
 public:
  void add(std::function<void()> job) {
    std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    if (!started_) std::thread([this] { work(); }).detach();
    started_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return jobs_.empty(); });
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !jobs_.empty(); });
      lock.unlock();
      jobs_.front()();
      lock.lock();
      jobs_.pop_front();
      changed_.notify_all();
      if (!jobs_.empty()) continue;
      lock.unlock();
      process_store().sync();  // nobody waits for the disk
      lock.lock();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool started_ = false;
};

Writer* g_writer = nullptr;

Writer& writer() {  // never destroyed: its thread may outlive main()
  static bool registered = (pthread_atfork(nullptr, nullptr, [] { g_writer = nullptr; }), true);
  (void)registered;
  if (!g_writer) g_writer = new Writer;
  return *g_writer;
}

// What must be the same about the trace's objects in another process. False: one cannot be found again, so the trace is not kept.
bool fingerprint_objects(LiveTrace& live) {
  for (size_t i = 0; i < live.objects.size(); ++i) {
    ObjectRef& ref = live.data.objects[i];
    if (ref.source.empty()) return false;
    if (ref.fingerprint.empty()) ref.fingerprint = fingerprint(live.objects[i]);
    if (ref.fingerprint.empty()) return false;
  }
  return true;
}

std::unique_ptr<LiveTrace> revive(Trace trace, PyFunctionObject* function) {
  auto live = std::make_unique<LiveTrace>();
  for (const ObjectRef& ref : trace.objects) {
    PyObject* object = fetch(ref, reinterpret_cast<PyObject*>(function));
    if (!object) return nullptr;
    live->objects.push_back(object);
  }
  for (const std::string& name : trace.names) {
    PyObject* text = PyUnicode_InternFromString(name.c_str());
    if (!text) {
      PyErr_Clear();
      return nullptr;
    }
    live->names.push_back(text);
  }
  live->data = std::move(trace);
  return live;
}

std::string title(PyFunctionObject* f) {
  const char* module = f->func_module && PyUnicode_Check(f->func_module) ? PyUnicode_AsUTF8(f->func_module) : "?";
  const char* name = PyUnicode_AsUTF8(f->func_qualname);
  return std::string(module ? module : "?") + "." + (name ? name : "?");
}

}  // namespace

void Tree::look_up() {
  looked_up_ = true;
  if (!options_.store) return;
  key_ = function_key(reinterpret_cast<PyObject*>(function_));
  if (key_.empty()) return;
  auto traces = process_store().load_traces(key_);
  for (Trace& trace : traces) {
    bool root = trace.number == 0;
    bool ok = attach(revive(std::move(trace), function_));
    if (root && !ok) {  // recorded about another program
      programs_->clear();
      forget_stored();
      return;
    }
  }
  saved_ = programs_->size();
}

bool Tree::attach(std::unique_ptr<LiveTrace> live) {
  if (!live) return false;
  const Trace& t = live->data;
  size_t number = static_cast<size_t>(t.number);
  if (number < programs_->size()) return false;
  Exit* exit = nullptr;
  if (t.anchor == AnchorKind::exit) {
    if (t.parent < 0 || static_cast<size_t>(t.parent) >= programs_->size() || !(*programs_)[t.parent]) return false;
    for (Exit& e : (*programs_)[t.parent]->exits())
      if (e.op == t.parent_op && e.which == t.parent_exit) exit = &e;
    if (!exit) return false;
  }
  auto program = lower(std::move(live), exit);
  if (!program) return false;
  if (exit) exit->side = program.get();
  programs_->resize(number);  // numbers that are missing stay empty
  programs_->push_back(std::move(program));
  ++counters_.traces_loaded;
  return true;
}

void Tree::save() {
  if (!options_.store || key_.empty()) return;
  for (; saved_ < programs_->size(); ++saved_) {
    Program* program = (*programs_)[saved_].get();
    if (!program || !fingerprint_objects(const_cast<LiveTrace&>(program->trace()))) continue;
    const Trace& trace = program->trace().data;
    std::shared_ptr<Trace> parent;  // a side trace is tied to the very trace it leaves
    if (trace.parent >= 0) parent = std::make_shared<Trace>((*programs_)[trace.parent]->trace().data);
    writer().add([key = key_, trace, parent, name = title(function_)] { process_store().save_trace(key, trace, name, parent.get()); });
  }
}

void Tree::forget_stored() {
  saved_ = 0;
  if (!key_.empty()) writer().add([key = key_] { process_store().drop_function(key); });
}

uint64_t process_store_errors() { return process_store().errors(); }

void wait_for_store() {
  if (!g_writer) return;
  Writer& w = writer();
  Py_BEGIN_ALLOW_THREADS;
  w.wait();
  Py_END_ALLOW_THREADS;
}

}  // namespace dalsegno::replay
