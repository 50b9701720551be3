#include "hook/frame_access.h"
// (which comes before anything that includes Python.h)
#include "hook/stack_limits.h"

#if DALSEGNO_PY314
#include "internal/pycore_pythonrun.h"
#include "internal/pycore_tstate.h"
#endif

namespace dalsegno::hook {

#if DALSEGNO_PY314

namespace {
StackLimits exchange_limits(PyThreadState* thread, const StackLimits& limits) {
  auto* state = reinterpret_cast<_PyThreadStateImpl*>(thread);
  const StackLimits before{state->c_stack_top, state->c_stack_soft_limit, state->c_stack_hard_limit};
  state->c_stack_top = limits.top, state->c_stack_soft_limit = limits.soft, state->c_stack_hard_limit = limits.hard;
  return before;
}
}  // namespace

// As tstate_set_stack() of Python/ceval.c.
StackLimits set_stack_limits(PyThreadState* thread, const void* base, size_t size) {
  const auto low = reinterpret_cast<uintptr_t>(base);
  return exchange_limits(thread, {low + size, low + 2 * _PyOS_STACK_MARGIN_BYTES, low + _PyOS_STACK_MARGIN_BYTES});
}

void put_back_stack_limits(PyThreadState* thread, const StackLimits& limits) { exchange_limits(thread, limits); }

#else

StackLimits set_stack_limits(PyThreadState*, const void*, size_t) { return {}; }
void put_back_stack_limits(PyThreadState*, const StackLimits&) {}

#endif

}  // namespace dalsegno::hook
