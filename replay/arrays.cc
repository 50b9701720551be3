#include "replay/arrays.h"

#include <pthread.h>

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "halide_gen/runtime/signals_blocked.h"
#include "replay/forks.h"
#include "replay/memory/kept_blocks.h"

namespace dalsegno::replay {

// (3.11's header of it does not say that it is C.)
int trace_malloc(unsigned domain, uintptr_t memory, size_t size) __asm__("PyTraceMalloc_Track");

namespace {

constexpr size_t kLeastKept = 32 << 10;  // what is smaller hardly ever moves the heap's end
constexpr std::chrono::seconds kKeptFor{1};

const PyDataMemAllocator* plain = nullptr;  // NumPy's own, whose blocks they are: only that they are freed is put off

// What is kept, and the thread that lets go of it where nothing else happens.
class Keeper {
 public:
  void* get(size_t size) {
    {
      const std::lock_guard lock(mutex_);
      if (void* memory = kept_.take(size)) return memory;
    }
    free_excess();
    void* memory = plain->malloc(plain->ctx, size);
    if (!memory) drop(size);
    return memory;
  }

  void put(void* memory, size_t size) {
    if (!keep(memory, size)) {
      drop(size);
      plain->free(plain->ctx, memory, size);
    }
    free_excess();
  }

  // Ends the thread, until resume().
  void pause() {
    std::thread ended;
    {
      const std::lock_guard lock(mutex_);
      ++paused_;
      ended.swap(thread_);
      wake_.notify_all();
    }
    if (ended.joinable()) ended.join();
  }
  // The thread starts with the next block: Python counts threads after its hooks have run.
  void resume() {
    const std::lock_guard lock(mutex_);
    --paused_;
  }

  // Around forks that Python does not know of, too.
  void before_fork() { mutex_.lock(); }
  void after_fork_parent() { mutex_.unlock(); }
  void after_fork_child() {
    new (&wake_) std::condition_variable();
    new (&thread_) std::thread();
    running_ = false;
    mutex_.unlock();
  }

 private:
  void drop(size_t size) {
    const std::lock_guard lock(mutex_);
    kept_.drop(size);
  }

  bool keep(void* memory, size_t size) {
    try {
      const std::lock_guard lock(mutex_);
      if (!running_ && !start()) return false;
      kept_.keep(memory, size, KeptBlocks::Clock::now());
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  void free_excess() {
    for (KeptBlocks::Block old; pop([&] { return kept_.pop_excess(&old); });) plain->free(plain->ctx, old.memory, old.size);
  }
  template <class Pop>
  bool pop(const Pop& by) {
    const std::lock_guard lock(mutex_);
    return by();
  }

  // With mutex_ held. False: there can be no thread now, which would let go of what is kept.
  bool start() {
    if (paused_ > 0) return false;
    try {
      if (thread_.joinable()) thread_.join();  // it had nothing more to do
      const SignalsBlocked blocked;
      thread_ = std::thread([this] { serve(); });
      return running_ = true;
    } catch (const std::system_error&) {
      return false;
    }
  }

  void serve() {
    std::unique_lock lock(mutex_);
    while (paused_ == 0 && !kept_.empty()) {
      wake_.wait_for(lock, kKeptFor);
      for (KeptBlocks::Block old; paused_ == 0 && kept_.pop_aged(KeptBlocks::Clock::now() - kKeptFor, &old);) {
        lock.unlock();
        plain->free(plain->ctx, old.memory, old.size);
        lock.lock();
      }
    }
    running_ = false;
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread thread_;
  KeptBlocks kept_;
  bool running_ = false;
  int paused_ = 0;
};

Keeper* keeper = nullptr;  // never destroyed: its thread may outlive main()

// ---- NumPy's interface: an array is freed by the handler it was made with

void* get(void*, size_t size) { return size < kLeastKept ? plain->malloc(plain->ctx, size) : keeper->get(size); }

void* get_zeroed(void*, size_t n, size_t item) { return plain->calloc(plain->ctx, n, item); }

void* get_resized(void*, void* memory, size_t size) { return plain->realloc(plain->ctx, memory, size); }

void put(void*, void* memory, size_t size) {
  if (!memory || size < kLeastKept) return plain->free(plain->ctx, memory, size);
  keeper->put(memory, size);
}

constexpr char kCapsule[] = "mem_handler";  // MEM_HANDLER_CAPSULE_NAME of numpy/_core/src/multiarray/alloc.h

PyDataMem_Handler* own_handler() {
  static PyDataMem_Handler own;
  std::memcpy(own.name, "default_allocator", sizeof "default_allocator");  // as it says of all arrays
  own.version = 1;
  own.allocator = {nullptr, get, get_zeroed, get_resized, put};
  return &own;
}

// A capsule; null with an exception set.
PyObject* make_handler() {
  auto* numpys = static_cast<PyDataMem_Handler*>(PyCapsule_GetPointer(PyDataMem_DefaultHandler, kCapsule));
  if (!numpys) return nullptr;
  plain = &numpys->allocator;
  keeper = new Keeper;
  pthread_atfork([] { keeper->before_fork(); }, [] { keeper->after_fork_parent(); }, [] { keeper->after_fork_child(); });
  around_python_forks({[] { keeper->pause(); }, [] { keeper->resume(); }, [] { keeper->resume(); }});
  return PyCapsule_New(own_handler(), kCapsule, nullptr);
}

// Null: arrays are made by NumPy's means, or the user's.
PyObject* handler() {
  static PyObject* const own = make_handler();
  PyErr_Clear();
  PyObject* in_force = PyDataMem_GetHandler();
  Py_XDECREF(in_force);
  return in_force == PyDataMem_DefaultHandler ? own : nullptr;
}

// What NumPy does for data that it allocates (PyArray_NewFromDescr_int in numpy/_core/src/multiarray/ctors.c).
PyObject* new_large(PyArray_Descr* descr, int rank, const npy_intp* shape, const npy_intp* strides, size_t bytes, PyObject* handler) {
  void* memory = get(nullptr, bytes);
  if (!memory) return Py_DECREF(descr), nullptr;
  PyObject* made = PyArray_NewFromDescr(&PyArray_Type, descr, rank, shape, strides, memory, NPY_ARRAY_CARRAY, nullptr);
  if (!made) return PyErr_Clear(), put(nullptr, memory, bytes), nullptr;
  auto* array = reinterpret_cast<PyArrayObject*>(made);
  reinterpret_cast<PyArrayObject_fields*>(made)->mem_handler = Py_NewRef(handler);
  PyArray_ENABLEFLAGS(array, NPY_ARRAY_OWNDATA);
  constexpr unsigned kDomain = 389047;  // NPY_TRACE_DOMAIN
  trace_malloc(kDomain, reinterpret_cast<uintptr_t>(memory), bytes);
  return made;
}

}  // namespace

PyObject* new_array(PyArray_Descr* descr, int rank, const npy_intp* shape, const npy_intp* strides) {
  Py_INCREF(descr);
  auto bytes = static_cast<size_t>(PyDataType_ELSIZE(descr));
  bool fits = true;
  for (int d = 0; d < rank; ++d) fits &= !__builtin_mul_overflow(bytes, static_cast<size_t>(shape[d]), &bytes);
  PyObject* own = fits && bytes >= kLeastKept && bytes <= PTRDIFF_MAX ? handler() : nullptr;
  if (own) return new_large(descr, rank, shape, strides, bytes, own);
  PyObject* made = PyArray_NewFromDescr(&PyArray_Type, descr, rank, shape, strides, nullptr, 0, nullptr);
  if (!made) PyErr_Clear();
  return made;
}

PyObject* new_array(DType dtype, int rank, const npy_intp* shape, const npy_intp* strides) {
  return new_array(numpy::descriptor(dtype), rank, shape, strides);
}

}  // namespace dalsegno::replay
