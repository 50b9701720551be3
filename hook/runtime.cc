// The rest: range iterators, the handled exception, and whether this interpreter is one that the hooks were made for.
#include <opcode.h>
#include <pthread.h>
#include <unistd.h>

#include <exception>

#include "hook/frame_access.h"

namespace dalsegno::hook {
namespace {

#if DALSEGNO_PY311
struct RangeIterator {
  PyObject_HEAD long index;
  long start;
  long step;
  long length;
};

int advance(RangeIterator* range, int64_t* out) {
  if (range->index >= range->length) return 0;
  *out = static_cast<long>(range->start + static_cast<unsigned long>(range->index++) * range->step);
  return 1;
}
#else
struct RangeIterator {
  PyObject_HEAD long start;
  long step;
  long length;
};

int advance(RangeIterator* range, int64_t* out) {
  if (range->length <= 0) return 0;
  *out = range->start;
  range->start = static_cast<long>(static_cast<unsigned long>(range->start) + range->step);
  --range->length;
  return 1;
}
#endif

bool g_range_known = false;  // the layout above is this interpreter's

PyObject* make_range_iterator(long start, long stop, long step) {
  PyObject* range = PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyRange_Type), "lll", start, stop, step);
  PyObject* iterator = range != nullptr ? PyObject_GetIter(range) : nullptr;
  Py_XDECREF(range);
  return iterator;
}

// Advances one iterator both ways and compares.
bool check_range_layout() {
  PyObject* iterator = make_range_iterator(7, -20, -9);  // 7, -2, -11
  if (iterator == nullptr) return false;
  int64_t value = 0;
  bool same = Py_TYPE(iterator)->tp_basicsize == static_cast<Py_ssize_t>(sizeof(RangeIterator)) &&
              advance(reinterpret_cast<RangeIterator*>(iterator), &value) == 1 && value == 7;
  PyObject* next = PyIter_Next(iterator);
  same = same && next != nullptr && PyLong_AsLong(next) == -2;
  Py_XDECREF(next);
  same = same && advance(reinterpret_cast<RangeIterator*>(iterator), &value) == 1 && value == -11 &&
         advance(reinterpret_cast<RangeIterator*>(iterator), &value) == 0;
  Py_DECREF(iterator);
  return same;
}

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

#if PY_VERSION_HEX < 0x030b0000 || PY_VERSION_HEX >= 0x030e0000
#error "dalsegno supports CPython 3.11, 3.12 and 3.13"
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

int range_next(PyObject* iterator, int64_t* out) {
  if (!Py_IS_TYPE(iterator, &PyRangeIter_Type) || !g_range_known) return -1;
  return advance(reinterpret_cast<RangeIterator*>(iterator), out);
}

PyObject* handled_exception() {
  const _PyErr_StackItem* item = PyThreadState_Get()->exc_info;
  while ((item->exc_value == nullptr || item->exc_value == Py_None) && item->previous_item != nullptr) item = item->previous_item;
  return item->exc_value == Py_None ? nullptr : item->exc_value;
}

namespace {

struct StackBounds {
  const char *low, *middle;  // of this thread's C stack, which grows downward: where it ends, but for a reserve; half of it
};

const StackBounds& stack_bounds() {
  constexpr size_t kReserve = size_t{192} << 10;
  thread_local const StackBounds bounds = []() -> StackBounds {
    [[maybe_unused]] const volatile int touched =
        std::uncaught_exceptions();  // makes the C++ runtime's data of this thread: where memory has run out it would end the process
    pthread_attr_t attributes;
    void* base = nullptr;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
      pthread_attr_getstack(&attributes, &base, &size);
      pthread_attr_destroy(&attributes);
    }
    const char* end = static_cast<const char*>(base);
    if (end == nullptr || size <= 2 * kReserve) return {nullptr, reinterpret_cast<const char*>(UINTPTR_MAX)};
    return {end + kReserve, end + size / 2};
  }();
  return bounds;
}

}  // namespace

bool recursion_left() { return recursion_remaining(PyThreadState_Get()) > 1; }

bool stack_left() {
  const char here = 0;
  return &here > stack_bounds().low;
}

// _PyEval_EvalFrameDefault takes PY_EVAL_C_STACK_UNITS, 2 since 3.12 (Python/ceval.c).
#if DALSEGNO_PY311
UncountedEvaluator::UncountedEvaluator(bool) {}
UncountedEvaluator::~UncountedEvaluator() { stop_if_ended(); }
#else
UncountedEvaluator::UncountedEvaluator(bool applies) {
  const char here = 0;
  if (!applies || &here < stack_bounds().middle) return;
  given_ = 2;
  PyThreadState_Get()->c_recursion_remaining += given_;
}
UncountedEvaluator::~UncountedEvaluator() {
  stop_if_ended();
  if (given_ > 0) PyThreadState_Get()->c_recursion_remaining -= given_;
}
#endif

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

bool init() { return check_interpreter() && init_observe() && init_dict_version() && init_range() && init_iterators(); }

}  // namespace dalsegno::hook
