#include "halide_gen/runtime/pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>
#include <vector>

namespace dalsegno::rt {
namespace {

using Counts = std::vector<std::atomic<int>>;

void count(void* context, int i) { ++(*static_cast<Counts*>(context))[static_cast<size_t>(i)]; }

void expect_each_once(int n, int threads) {
  Counts counts(static_cast<size_t>(n));
  EXPECT_EQ(parallel(n, threads, count, &counts), 0);
  for (const std::atomic<int>& one : counts) EXPECT_EQ(one.load(), 1);
}

TEST(Pool, DoesEveryTaskOnce) {
  for (int n : {0, 1, 2, 3, 100})
    for (int threads : {1, 2, 4})
      for (int turn = 0; turn < 50; ++turn) expect_each_once(n, threads);
}

TEST(Pool, DoesThemWhereAllThreadsShareOneProcessor) {
  std::thread([] {  // what is pinned ends with the thread
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    for (int turn = 0; turn < 300; ++turn) expect_each_once(8, 3);
  })
      .join();
}

TEST(Pool, GathersFlagsOfAllTasks) {
  const auto divide = [](void*, int i) {
    volatile double zero = i == 77 ? 0.0 : 1.0, one = 1.0, quotient = one / zero;
    static_cast<void>(quotient);
  };
  for (int turn = 0; turn < 50; ++turn) EXPECT_NE(parallel(100, 2, divide, nullptr), 0);
}

}  // namespace
}  // namespace dalsegno::rt
