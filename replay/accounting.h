// What the machine does in a run, counted for the function whose run it is. What a run inside another one does is the inner one's alone.
#pragma once
#include "replay/kernels/table.h"
#include "replay/tree.h"

namespace dalsegno::replay {

class Accounting {
 public:
  explicit Accounting(Counters& counters) : counters_(counters), before_(Work::done()), counted_(g_counted) {}
  // The run has ended.
  void count() {
    const Work after = Work::done();
    add(after, &Work::steps, &Counters::steps);
    add(after, &Work::guard_failures, &Counters::guard_failures);
    add(after, &Work::launches, &Counters::kernel_launches);
  }

 private:
  struct Work {
    uint64_t steps, guard_failures, launches;
    static Work done() { return {g_machine_counters.steps, g_machine_counters.guard_failures, g_launches}; }
  };
  void add(const Work& after, uint64_t Work::*what, uint64_t Counters::*counter) {
    const uint64_t all = after.*what - before_.*what, inner = g_counted.*what - counted_.*what;
    const uint64_t own = all > inner ? all - inner : 0;  // other threads count, too
    g_counted.*what += own;
    counters_.*counter += own;
  }

  static Work g_counted;  // by runs that have ended
  Counters& counters_;
  const Work before_, counted_;
};

}  // namespace dalsegno::replay
