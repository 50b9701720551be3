// The rest: range iterators, the handled exception, and whether this interpreter is one that the hooks were made for.
#include <opcode.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

#include "hook/frame_access.h"
#include "hook/stack_limits.h"

extern "C" void* __libc_stack_end;  // glibc: where the main thread's stack begins

namespace dalsegno::hook {
namespace {

PyObject* make_range_iterator(long start, long stop, long step) {
  PyObject* range = PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyRange_Type), "lll", start, stop, step);
  PyObject* iterator = range != nullptr ? PyObject_GetIter(range) : nullptr;
  Py_XDECREF(range);
  return iterator;
}

// Does the interpreter go through what range_iterator() makes?
bool check_made_range() {
  PyObject* iterator = range_iterator(7, -5, -9);  // 7, -2
  if (iterator == nullptr) return false;
  bool same = true;
  for (const long value : {7L, -2L}) {
    PyObject* next = PyIter_Next(iterator);
    same = same && next != nullptr && PyLong_AsLong(next) == value;
    Py_XDECREF(next);
  }
  PyObject* end = PyIter_Next(iterator);
  same = same && end == nullptr && !PyErr_Occurred();
  Py_XDECREF(end);
  Py_DECREF(iterator);
  return same;
}

// Advances one iterator both ways and compares.
bool check_range_layout() {
  PyObject* iterator = make_range_iterator(7, -20, -9);  // 7, -2, -11
  if (iterator == nullptr) return false;
  int64_t value = 0;
  bool same = Py_TYPE(iterator)->tp_basicsize == static_cast<Py_ssize_t>(sizeof(RangeIterator)) && advance_range(iterator, &value) == 1 &&
              value == 7;
  PyObject* next = PyIter_Next(iterator);
  same = same && next != nullptr && PyLong_AsLong(next) == -2;
  Py_XDECREF(next);
  same = same && advance_range(iterator, &value) == 1 && value == -11 && advance_range(iterator, &value) == 0;
  Py_DECREF(iterator);
  return same && check_made_range();
}

}  // namespace

PyObject* range_iterator(long start, long stop, long step, PyObject* spare) {
  if (step == 0) return nullptr;
  const auto first = static_cast<unsigned long>(start), last = static_cast<unsigned long>(stop), by = static_cast<unsigned long>(step);
  unsigned long length = 0;
  if (step > 0 && start < stop) length = 1 + (last - 1 - first) / by;
  if (step < 0 && start > stop) length = 1 + (first - 1 - last) / (0UL - by);
  if (length > static_cast<unsigned long>(LONG_MAX)) return nullptr;
  if (length > 0 && (step > 0 ? stop > LONG_MAX - (step - 1) : stop < LONG_MIN + (-1 - step))) return nullptr;
  auto* made = spare ? reinterpret_cast<RangeIterator*>(spare) : PyObject_New(RangeIterator, &PyRangeIter_Type);
  if (made == nullptr) return nullptr;
#if PY_VERSION_HEX < 0x030c0000
  made->index = 0;
#endif
  made->start = start, made->step = step, made->length = static_cast<long>(length);
  return reinterpret_cast<PyObject*>(made);
}

namespace {

bool check_interpreter() {
  if ((Py_Version >> 16) != (PY_VERSION_HEX >> 16)) {
    PyErr_Format(PyExc_ImportError, "dalsegno was built for Python %d.%d; rebuild it for this interpreter", PY_MAJOR_VERSION,
                 PY_MINOR_VERSION);
    return false;
  }
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(PyExc_ImportError, "dalsegno works in the main interpreter only, not in a subinterpreter");
    return false;
  }
  return true;
}

}  // namespace

#if PY_VERSION_HEX < 0x030b0000 || PY_VERSION_HEX >= 0x030f0000
#error "dalsegno supports CPython 3.11 to 3.14"
#endif
#ifdef Py_GIL_DISABLED
#error "dalsegno needs a build of CPython with the GIL"
#endif

int executing_offset(PyCodeObject* code, int offset) {
  PyObject* bytes = PyCode_GetCode(code);  // made once and kept by the code object
  if (bytes == nullptr) {
    PyErr_Clear();
    return offset;
  }
  const auto* units = reinterpret_cast<const uint8_t*>(PyBytes_AS_STRING(bytes));
  for (const Py_ssize_t n = PyBytes_GET_SIZE(bytes) / 2; offset + 2 < n; ++offset) {
    const int opcode = units[2 * offset];
    bool prefix = opcode == EXTENDED_ARG;
#ifdef KW_NAMES
    prefix = prefix || opcode == KW_NAMES;
#endif
#ifdef PRECALL
    if (opcode == PRECALL) prefix = true, ++offset;  // it has an inline cache
#endif
    if (!prefix) break;
  }
  Py_DECREF(bytes);
  return offset;
}

bool g_range_known = false;

namespace {

// What is left of a C stack, which grows downward, above `low` is for jitted functions that call one another.
const char* low_of(const void* base, size_t size) {
  constexpr size_t kReserve = size_t{192} << 10;  // what a call of ours may take
  return static_cast<const char*>(base) + std::max(size / 2, kReserve);
}

const char* low_of_thread() {
  [[maybe_unused]] const volatile int touched =
      std::uncaught_exceptions();  // makes the C++ runtime's data of this thread: where memory has run out it would end the process
  // The main thread's stack grows up to its limit; glibc would read the whole map of the process to say where it begins.
  rlimit limit{};
  const auto end = reinterpret_cast<uintptr_t>(__libc_stack_end), here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < end && here <= end && end - here < limit.rlim_cur)
    return low_of(reinterpret_cast<const void*>(end - limit.rlim_cur), limit.rlim_cur);
  pthread_attr_t attributes;
  void* base = nullptr;
  size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    pthread_attr_getstack(&attributes, &base, &size);
    pthread_attr_destroy(&attributes);
  }
  return low_of(base, size);
}

thread_local const char* t_low = nullptr;  // of the stack this thread is on

// A stack of our own, with a page below it that must not be touched. Its memory is taken as it is used.
class Stack {
 public:
  static constexpr size_t kSize = size_t{8} << 20, kGuard = size_t{64} << 10;
  Stack() : base_(mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0)) {
    if (base_ != MAP_FAILED) mprotect(base_, kGuard, PROT_NONE);
  }
  ~Stack() {
    if (base_ != MAP_FAILED) munmap(base_, kSize);
  }
  Stack(const Stack&) = delete;
  bool made() const { return base_ != MAP_FAILED; }
  const void* usable() const { return static_cast<const char*>(base_) + kGuard; }
  void* base() const { return base_; }

 private:
  void* base_;
};

struct Switch {
  ucontext_t back, there;
  void (*run)(void*);
  void* context;
};

// makecontext passes ints.
void run_there(unsigned high, unsigned low) {
  auto* s = reinterpret_cast<Switch*>(uintptr_t{high} << 32 | low);
  s->run(s->context);
}

// A stack for the next time: recursion goes up and down. By a key, since a thread that comes to a thread_local with a destructor for the
// first time waits for the loader's lock, which whoever opens a library holds: 75 ms where that is Halide's.
class Spare {
 public:
  static std::unique_ptr<Stack> take() {
    const Spare& own = get();
    auto* kept = own.made_ ? static_cast<Stack*>(pthread_getspecific(own.key_)) : nullptr;
    if (kept != nullptr) pthread_setspecific(own.key_, nullptr);
    return std::unique_ptr<Stack>(kept);
  }
  static void keep(std::unique_ptr<Stack> stack) {
    const Spare& own = get();
    const std::unique_ptr<Stack> before = take();
    if (own.made_ && pthread_setspecific(own.key_, stack.get()) == 0) static_cast<void>(stack.release());
  }

 private:
  static const Spare& get() {
    static const Spare spare;
    return spare;
  }
  pthread_key_t key_{};
  bool made_ = pthread_key_create(&key_, [](void* stack) { delete static_cast<Stack*>(stack); }) == 0;
};

}  // namespace

StackBound g_stack_bound{};

const char* stack_low() {
  if (t_low == nullptr) t_low = low_of_thread();
  const PyThreadState* state = PyThreadState_Get();
  g_stack_bound = {state, state->id, t_low};
  return t_low;
}

bool on_new_stack(void (*run)(void*), void* context) {
  std::unique_ptr<Stack> stack = Spare::take();
  if (!stack) stack = std::make_unique<Stack>();
  Switch s{{}, {}, run, context};
  if (!stack->made() || getcontext(&s.there) != 0) return false;
  s.there.uc_stack.ss_sp = stack->base();
  s.there.uc_stack.ss_size = Stack::kSize;
  s.there.uc_link = &s.back;
  const auto at = reinterpret_cast<uintptr_t>(&s);
  makecontext(&s.there, reinterpret_cast<void (*)()>(run_there), 2, static_cast<unsigned>(at >> 32), static_cast<unsigned>(at));
  const char* low = std::exchange(t_low, low_of(stack->base(), Stack::kSize));
  g_stack_bound = {};
  PyThreadState* thread = PyThreadState_Get();
  const StackLimits limits = set_stack_limits(thread, stack->usable(), Stack::kSize - Stack::kGuard);
  swapcontext(&s.back, &s.there);
  put_back_stack_limits(thread, limits);
  t_low = low;
  g_stack_bound = {};
  Spare::keep(std::move(stack));
  return true;
}

void stop_ended_thread() {
#if DALSEGNO_PY313
  const PyThreadState* state = PyThreadState_GetUnchecked();
#else
  const PyThreadState* state = _PyThreadState_UncheckedGet();
#endif
  if (state != nullptr && state->thread_id == PyThread_get_thread_ident()) return;  // 3.11: the state of whoever holds the GIL
  for (;;) pause();
}

bool init_range() {
  g_range_known = check_range_layout();
  return !PyErr_Occurred();
}

bool init() {
  stack_low();  // makes this thread's own data: where memory has run out, that would end the process
  return check_interpreter() && init_observe() && init_dict_version() && init_range() && init_iterators();
}

}  // namespace dalsegno::hook
