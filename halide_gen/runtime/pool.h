// Worker threads for kernels. Idle workers spin for a while before they sleep: waking a sleeping thread costs more than the work
// of 1e5 elements. One job at a time; a caller that finds the pool busy does its tasks itself.
#pragma once

namespace dalsegno::rt {

// Runs task(context, i) for i in [0, n), the caller taking part, with at most `threads` threads. Every task starts with the caller's
// rounding mode and clear flags. Returns the flags raised by all tasks; the caller's own flags are left as its last task left them.
int parallel(int n, int threads, void (*task)(void* context, int i), void* context);

}  // namespace dalsegno::rt
