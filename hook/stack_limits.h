// How far the interpreter may go on a thread's C stack: addresses that it keeps with the thread (3.14 on; before that it counts calls).
#pragma once
#include <Python.h>

#include <cstdint>

namespace dalsegno::hook {

struct StackLimits {
  uintptr_t top = 0, soft = 0, hard = 0;
};

// Those of a stack of so many bytes that begins (at its lowest address) at `base`; returns those there were. Nothing before 3.14.
StackLimits set_stack_limits(PyThreadState* thread, const void* base, size_t size);
void put_back_stack_limits(PyThreadState* thread, const StackLimits& limits);

}  // namespace dalsegno::hook
