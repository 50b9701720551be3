#include "halide_gen/runtime/per_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace dalsegno::rt {
namespace {

std::atomic<int> alive{0};

struct Counted {
  Counted() { ++alive; }
  ~Counted() { --alive; }
  int value = 0;
};

TEST(PerThread, EachThreadHasItsOwnUntilItEnds) {
  PerThread<Counted>::get()->value = 3;
  const Counted* here = PerThread<Counted>::get();
  EXPECT_EQ(alive, 1);
  std::thread([here] {
    EXPECT_NE(PerThread<Counted>::get(), here);
    EXPECT_EQ(PerThread<Counted>::get()->value, 0);
    EXPECT_EQ(alive, 2);
  }).join();
  EXPECT_EQ(alive, 1);
  EXPECT_EQ(PerThread<Counted>::get()->value, 3);
}

}  // namespace
}  // namespace dalsegno::rt
