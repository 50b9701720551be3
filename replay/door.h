// Doors: where C calls into our C++. No C++ exception may cross a C frame (CPython's own would be skipped, or the process ended), so
// each door turns what arrives into the answer that C expects.
#pragma once
#include <Python.h>

#include <exception>
#include <new>
#include <type_traits>
#include <utility>

namespace dalsegno::replay {

// The calling thread may throw from now on where there is no memory: what the C++ library keeps of a thread's exceptions is made when it is
// first asked for it, by the loader, which ends the process where it cannot. Each thread of ours does this first, and the main one.
inline void be_ready_to_throw() {
  [[maybe_unused]] const volatile int thrown = std::uncaught_exceptions();  // (a pure function: else nobody asks)
}

// For calls that may raise: bad_alloc is MemoryError. What CPython throws to end a thread (forced unwinding) passes, as it must.
template <class Call>
PyObject* door(Call&& call) {
  try {
    return std::forward<Call>(call)();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_Format(PyExc_SystemError, "dalsegno: %s", e.what());
  }
  return nullptr;
}

// For work that may be lost: a recording, a look-up, a note. False if it was.
template <class Work>
bool or_lose(Work&& work) {
  try {
    std::forward<Work>(work)();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace dalsegno::replay
