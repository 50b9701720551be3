// What Halide's runtime lets a program replace: errors are recorded, not fatal; parallel loops use our workers.
#include <HalideRuntime.h>

#include <algorithm>
#include <string>
#include <thread>

#include "halide_gen/runtime/flags.h"
#include "halide_gen/runtime/pool.h"

namespace {

struct Loop {
  void* user_context;
  halide_task_t task;
  int min;
  uint8_t* closure;
  int failed;
};

// Flags raised by the tasks end up in the caller, as if it had run them itself.
int do_par_for(void* user_context, halide_task_t task, int min, int size, uint8_t* closure) {
  Loop loop{user_context, task, min, closure, 0};
  static const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));  // it reads a file
  const int flags = dalsegno::rt::parallel(
      size, threads,
      [](void* context, int i) {
        auto& l = *static_cast<Loop*>(context);
        if (const int failed = l.task(l.user_context, l.min + i, l.closure)) __atomic_store_n(&l.failed, failed, __ATOMIC_RELAXED);
      },
      &loop);
  dalsegno::rt::add_raised(flags);
  return loop.failed;
}

thread_local std::string last_error;

__attribute__((constructor)) void install() {
  halide_set_custom_do_par_for(do_par_for);
  halide_set_error_handler([](void*, const char* message) { last_error = message; });
}

}  // namespace

extern "C" const char* dalsegno_last_error() { return last_error.c_str(); }
