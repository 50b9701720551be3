#include "replay/arrays.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

#include "halide_gen/runtime/signals_blocked.h"
#include "replay/door.h"
#include "replay/forks.h"
#include "replay/memory/kept_blocks.h"
#include "replay/memory/mapped_blocks.h"
#include "replay/py_ref.h"

namespace dalsegno::replay {
namespace {

constexpr size_t kMostZeroed = 32 << 20;  // what is larger may be meant to be written here and there only
constexpr size_t kMostGiven = 16384;      // blocks (a process may have 65,530 mappings: vm.max_map_count)
constexpr size_t kMostIdle = 1 << 30;     // bytes that are kept between calls: code outside may need the memory
constexpr std::chrono::seconds kKeptFor{1};

PyDataMemAllocator plain;  // NumPy's own

// What is kept, and the thread that lets go of it where nothing else happens.
class Keeper {
 public:
  explicit Keeper(bool huge) : huge_(huge) {}

  void* get(size_t size) {
    if (void* memory = had(size)) return memory;
    return make(size, [&] { return plain.malloc(plain.ctx, size); });
  }

  void* get_zeroed(size_t count, size_t item) {
    const size_t size = count * item;  // (which NumPy has looked at)
    if (void* memory = had(size)) return std::memset(memory, 0, size);
    return make(size, [&] { return plain.calloc(plain.ctx, count, item); });
  }

  // False: it is not from here.
  bool put(void* memory) {
    const size_t bytes = forget(memory);
    if (bytes == 0) return false;
    char* const block = block_of(memory);
    if (keep(block, bytes)) return free_excess(), true;
    drop(bytes);
    unmap_block(block, bytes);
    return true;
  }

  void* resize(void* memory, size_t size) {
    const std::lock_guard lock(mutex_);
    auto given = given_.extract(memory);
    if (given.empty()) return plain.realloc(plain.ctx, memory, size);
    const size_t bytes = given.mapped(), now = block_for(std::max(size, kLeastMapped));
    char* const block = block_of(memory);
    char* const resized = bytes == now ? block : resize_block(block, bytes, now);
    if (resized) {
      given.key() = resized + (static_cast<char*>(memory) - block);
      given.mapped() = now;
      kept_.resize(bytes, now);
    }
    void* const result = resized ? given.key() : nullptr;
    given_.insert(std::move(given));  // (there is a bucket for it)
    return result;
  }

  KeptBlocks::Measure begin() {
    const std::lock_guard lock(mutex_);
    return kept_.begin();
  }
  size_t end(const KeptBlocks::Measure& measure) {
    const std::lock_guard lock(mutex_);
    return kept_.end(measure);
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

  void free_excess() {
    const size_t most_kept = MemoryReused::now() ? SIZE_MAX : kMostIdle;
    free_all([&](KeptBlocks::Block* old) { return kept_.pop_excess(old, most_kept); });
    MemoryReused::much_kept = locked([&] { return kept_.kept() > kMostIdle; });
  }

  // What `make` makes; where there is no memory for it, once more when nothing is kept any more.
  template <class Make>
  auto insist(const Make& make) {
    auto made = make();
    if (made) return made;
    free_all([&](KeptBlocks::Block* old) { return kept_.pop_aged(KeptBlocks::Clock::time_point::max(), old); });
    return make();
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
  // Null: there is none whose pages the process has had.
  void* had(size_t size) {
    void* memory = take(size);
    return memory ? memory : touched(size);
  }
  void* take(size_t size) {
    const std::lock_guard lock(mutex_);
    const KeptBlocks::Block block = kept_.take(block_for(size));
    void* memory = block.memory ? give(block.memory, block.size) : nullptr;
    if (block.memory && !memory) unmap_block(block.memory, block.size), kept_.drop(block.size);
    return memory;
  }
  // What malloc() has, if most of its pages are the process's by now: as eager would get it. Else null.
  static void* touched(size_t size) {
    void* memory = plain.malloc(plain.ctx, size);
    if (!memory || was_touched(memory, size)) return memory;
    plain.free(plain.ctx, memory, size);
    return nullptr;
  }
  template <class Plain>
  void* make(size_t size, const Plain& plainly) {
    free_excess();
    const size_t bytes = block_for(size);
    char* const block = insist([&] { return map_block(bytes, huge_); });
    const std::lock_guard lock(mutex_);
    void* memory = block && given_.size() < kMostGiven ? give(block, bytes) : nullptr;
    if (memory) return kept_.use(bytes), memory;
    if (block) unmap_block(block, bytes);
    return plainly();
  }
  // Null: there is no memory for a note.
  void* give(char* block, size_t bytes) {
    void* memory = block + next_place();
    try {
      return given_.insert_or_assign(memory, bytes), memory;
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

  // The size of its block; 0: it was not given here.
  size_t forget(void* memory) {
    const std::lock_guard lock(mutex_);
    const auto found = given_.find(memory);
    if (found == given_.end()) return 0;
    const size_t bytes = found->second;
    given_.erase(found);
    return bytes;
  }
  void drop(size_t bytes) {
    const std::lock_guard lock(mutex_);
    kept_.drop(bytes);
  }

  bool keep(char* block, size_t bytes) {
    try {
      const std::lock_guard lock(mutex_);
      if (!running_ && !start()) return false;
      kept_.keep(block, bytes, KeptBlocks::Clock::now());
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  template <class Pop>
  void free_all(const Pop& pop) {
    for (KeptBlocks::Block old; locked([&] { return pop(&old); });) unmap_block(old.memory, old.size);
  }
  template <class Ask>
  bool locked(const Ask& ask) {
    const std::lock_guard lock(mutex_);
    return ask();
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
    be_ready_to_throw();
    std::unique_lock lock(mutex_);
    while (paused_ == 0 && !kept_.empty()) {
      wake_.wait_for(lock, kKeptFor);
      for (KeptBlocks::Block old; paused_ == 0 && kept_.pop_aged(KeptBlocks::Clock::now() - kKeptFor, &old);) {
        lock.unlock();
        unmap_block(old.memory, old.size);
        lock.lock();
      }
    }
    running_ = false;
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread thread_;
  KeptBlocks kept_{kLeastMapped};
  std::unordered_map<void*, size_t> given_;  // arrays' memory in use: the sizes of its blocks
  const bool huge_;
  bool running_ = false;
  int paused_ = 0;
};

Keeper* keeper = nullptr;  // never destroyed: its thread may outlive main()

// ---- NumPy's interface (PyDataMemAllocator)

bool is_kept(size_t size) { return size >= kLeastMapped && MemoryReused::now(); }

void* get(void* context, size_t size) {
  return is_kept(size) ? keeper->get(size) : keeper->insist([&] { return plain.malloc(context, size); });
}

void* get_zeroed(void* context, size_t count, size_t item) {
  const size_t size = count * item;
  return is_kept(size) && size <= kMostZeroed ? keeper->get_zeroed(count, item) : plain.calloc(context, count, item);
}

void* get_resized(void* context, void* memory, size_t size) {
  return may_be_mapped(memory) ? keeper->resize(memory, size) : plain.realloc(context, memory, size);
}

void put(void* context, void* memory, size_t size) {
  if (!may_be_mapped(memory) || !keeper->put(memory)) plain.free(context, memory, size);
}

// Whether NumPy asks for them (NUMPY_MADVISE_HUGEPAGE).
bool huge_pages() {
  const PyRef core(PyImport_ImportModule("numpy._core.multiarray"));
  const PyRef asks(core ? PyObject_CallMethod(core.get(), "_get_madvise_hugepage", nullptr) : nullptr);
  if (!asks) PyErr_Clear();
  return asks.get() == Py_True;
}

}  // namespace

bool take_over_memory() {
  constexpr char kCapsule[] = "mem_handler";  // MEM_HANDLER_CAPSULE_NAME of numpy/_core/src/multiarray/alloc.h
  auto* handler = static_cast<PyDataMem_Handler*>(PyCapsule_GetPointer(PyDataMem_DefaultHandler, kCapsule));
  if (!handler || handler->version != 1) return PyErr_Clear(), false;
  plain = handler->allocator;
  keeper = new Keeper(huge_pages());
  pthread_atfork([] { keeper->before_fork(); }, [] { keeper->after_fork_parent(); }, [] { keeper->after_fork_child(); });
  around_python_forks({[] { keeper->pause(); }, [] { keeper->resume(); }, [] { keeper->resume(); }});
  handler->allocator = {plain.ctx, get, get_zeroed, get_resized, put};
  return true;
}

void MemoryReused::let_go() { keeper->free_excess(); }

MemoryMeasured::MemoryMeasured() : measure_(keeper ? keeper->begin() : KeptBlocks::Measure{}) {}
MemoryMeasured::~MemoryMeasured() { end(); }
size_t MemoryMeasured::end() { return keeper && !std::exchange(ended_, true) ? keeper->end(measure_) : 0; }

PyObject* new_array(PyArray_Descr* descr, int rank, const npy_intp* shape, const npy_intp* strides) {
  Py_INCREF(descr);
  PyObject* made = PyArray_NewFromDescr(&PyArray_Type, descr, rank, shape, strides, nullptr, 0, nullptr);
  if (!made) PyErr_Clear();
  return made;
}

PyArray_Descr* handed_on(PyArray_Descr* first, DType dtype) {
  return first && numpy::is_plain(first, dtype) ? first : numpy::descriptor(dtype);
}

PyObject* new_array(DType dtype, int rank, const npy_intp* shape, const npy_intp* strides) {
  return new_array(numpy::descriptor(dtype), rank, shape, strides);
}

}  // namespace dalsegno::replay
