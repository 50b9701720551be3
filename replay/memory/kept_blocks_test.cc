#include "replay/memory/kept_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace dalsegno::replay {
namespace {

using Clock = KeptBlocks::Clock;
constexpr Clock::time_point kStart{};

constexpr size_t kLeast = 10;

char memory[1000];

// As whoever takes it from elsewhere does.
KeptBlocks::Block take(KeptBlocks& blocks, size_t size) {
  const KeptBlocks::Block taken = blocks.take(size);
  if (taken.memory) return taken;
  blocks.use(size);
  return {nullptr, size};
}

TEST(KeptBlocks, GivesBackWhatIsLargeEnough) {
  KeptBlocks blocks(kLeast);
  EXPECT_EQ(take(blocks, 100).memory, nullptr);
  blocks.keep(memory, 100, kStart);
  EXPECT_EQ(take(blocks, 101).memory, nullptr);
  const KeptBlocks::Block whole = take(blocks, 91);
  EXPECT_EQ(whole.memory, memory);
  EXPECT_EQ(whole.size, 100);  // what would be left is too little
  EXPECT_EQ(take(blocks, 10).memory, nullptr);
}

TEST(KeptBlocks, CutsAndJoins) {
  KeptBlocks blocks(kLeast);
  take(blocks, 100);
  blocks.keep(memory, 100, kStart);
  EXPECT_EQ(take(blocks, 30).memory, memory);
  EXPECT_EQ(take(blocks, 30).memory, memory + 30);
  const KeptBlocks::Block rest = take(blocks, 31);
  EXPECT_EQ(rest.memory, memory + 60);
  EXPECT_EQ(rest.size, 40);
  blocks.keep(memory + 30, 30, kStart);
  blocks.keep(memory, 30, kStart);
  EXPECT_EQ(take(blocks, 61).memory, nullptr);
  EXPECT_EQ(take(blocks, 60).memory, memory);
}

// As the caller does it, over a stretch of addresses, each of which belongs to one block at most.
TEST(KeptBlocks, NeverGivesWhatIsGivenOrFreed) {
  std::mt19937 random(1);
  std::vector<char> addresses(1 << 20);
  enum State : char { kNone, kGiven, kKept, kFreed };
  const auto change = [&](const KeptBlocks::Block& b, State from, State to) {
    for (size_t i = 0; i < b.size; ++i) {
      ASSERT_EQ(addresses[static_cast<size_t>(b.memory - addresses.data()) + i], from);
      addresses[static_cast<size_t>(b.memory - addresses.data()) + i] = to;
    }
  };
  KeptBlocks blocks(kLeast);
  std::vector<KeptBlocks::Block> given;
  size_t end = 0;
  Clock::time_point now = kStart;
  for (int turn = 0; turn < 5000 && end + 1000 < addresses.size(); ++turn) {
    now += std::chrono::milliseconds(random() % 20);
    KeptBlocks::Block b{};
    if (given.empty() || random() % 2) {
      b = take(blocks, kLeast + random() % 300);
      const bool fresh = !b.memory;
      if (fresh) b.memory = &addresses[end], end += b.size;
      change(b, fresh ? kNone : kKept, kGiven);
      given.push_back(b);
    } else {
      std::swap(given[random() % given.size()], given.back());
      change(given.back(), kGiven, kKept);
      blocks.keep(given.back().memory, given.back().size, now);
      given.pop_back();
    }
    while (blocks.pop_excess(&b)) change(b, kKept, kFreed);
    while (blocks.pop_aged(now - std::chrono::seconds(1), &b)) change(b, kKept, kFreed);
  }
  EXPECT_LT(end, addresses.size() / 2);  // most of what is taken was kept
  for (KeptBlocks::Block b; blocks.pop_aged(Clock::time_point::max(), &b);) change(b, kKept, kFreed);
  EXPECT_EQ(std::count(addresses.begin(), addresses.end(), kKept), 0);
}

TEST(KeptBlocks, GivesTheYoungestFirst) {
  KeptBlocks blocks(kLeast);
  for (int i = 0; i < 2; ++i) take(blocks, 10);
  blocks.keep(memory, 10, kStart);
  blocks.keep(memory + 1, 10, kStart);
  EXPECT_EQ(take(blocks, 10).memory, memory + 1);
  EXPECT_EQ(take(blocks, 10).memory, memory);
}

TEST(KeptBlocks, GivesTheSmallestThatIsLargeEnough) {
  KeptBlocks blocks(100);
  for (const size_t size : {80, 50, 60}) take(blocks, size);
  blocks.keep(memory, 80, kStart);
  blocks.keep(memory + 100, 50, kStart);
  blocks.keep(memory + 200, 60, kStart);
  const KeptBlocks::Block block = take(blocks, 40);
  EXPECT_EQ(block.memory, memory + 100);
  EXPECT_EQ(block.size, 50);
  EXPECT_EQ(take(blocks, 40).memory, memory + 200);
}

TEST(KeptBlocks, KeepsNoMoreThanTwiceWhatWasOnceInUse) {
  KeptBlocks blocks(kLeast);
  KeptBlocks::Block out;
  for (const size_t at : {0, 100, 200}) {
    take(blocks, 60);
    blocks.keep(memory + at, 30, kStart);
    blocks.drop(30);
  }
  EXPECT_FALSE(blocks.pop_excess(&out));  // 90 bytes, of twice 60
  EXPECT_EQ(take(blocks, 45).memory, nullptr);
  ASSERT_TRUE(blocks.pop_excess(&out));  // 135: the end of the oldest
  EXPECT_EQ(out.memory, memory + 15);
  EXPECT_EQ(out.size, 15);
  EXPECT_FALSE(blocks.pop_excess(&out));
  blocks.drop(45);
  EXPECT_EQ(take(blocks, 15).memory, memory);
}

TEST(KeptBlocks, KeepsNoMoreThanItsCallerSays) {
  KeptBlocks blocks(kLeast);
  KeptBlocks::Block out;
  take(blocks, 100);
  blocks.keep(memory, 100, kStart);
  EXPECT_FALSE(blocks.pop_excess(&out, 100));
  ASSERT_TRUE(blocks.pop_excess(&out, 70));
  EXPECT_EQ(out.memory, memory + 70);
  EXPECT_EQ(out.size, 30);
  EXPECT_FALSE(blocks.pop_excess(&out, 70));
  ASSERT_TRUE(blocks.pop_excess(&out, 0));
  EXPECT_EQ(out.size, 70);
}

TEST(KeptBlocks, KeepsAFixedAmountMoreOfMuch) {
  constexpr size_t kMuch = 4 * KeptBlocks::kMostMore;
  KeptBlocks blocks(kLeast);
  KeptBlocks::Block out;
  take(blocks, kMuch);
  blocks.keep(memory, kMuch, kStart);
  take(blocks, kMuch + KeptBlocks::kMostMore);
  ASSERT_TRUE(blocks.pop_excess(&out));
  EXPECT_EQ(out.size, kMuch - KeptBlocks::kMostMore);
  EXPECT_FALSE(blocks.pop_excess(&out));
}

TEST(KeptBlocks, KeepsFewBlocks) {
  KeptBlocks blocks(kLeast);
  KeptBlocks::Block out;
  take(blocks, 10000);
  blocks.drop(10000);
  for (size_t i = 0; i < KeptBlocks::kMostBlocks + 1; ++i) take(blocks, 1);
  for (size_t i = 0; i < KeptBlocks::kMostBlocks; ++i) blocks.keep(memory, 1, kStart);
  EXPECT_FALSE(blocks.pop_excess(&out));
  blocks.keep(memory, 1, kStart);
  EXPECT_TRUE(blocks.pop_excess(&out));
  EXPECT_FALSE(blocks.pop_excess(&out));
}

TEST(KeptBlocks, MeasuresWhatIsInUseAtOnce) {
  KeptBlocks blocks(kLeast);
  take(blocks, 100);
  const KeptBlocks::Measure outer = blocks.begin();
  take(blocks, 10);
  const KeptBlocks::Measure inner = blocks.begin();
  take(blocks, 5);
  blocks.drop(5);
  take(blocks, 7);
  EXPECT_EQ(blocks.end(inner), 7);
  blocks.drop(17);
  take(blocks, 3);
  EXPECT_EQ(blocks.end(outer), 17);
  const KeptBlocks::Measure none = blocks.begin();
  blocks.drop(100);
  EXPECT_EQ(blocks.end(none), 0);
}

TEST(KeptBlocks, LetsGoOfWhatNobodyHasTakenForLong) {
  KeptBlocks blocks(kLeast);
  KeptBlocks::Block out;
  for (int i = 0; i < 2; ++i) take(blocks, 10);
  blocks.keep(memory, 10, kStart);
  blocks.keep(memory + 100, 10, kStart + std::chrono::seconds(2));
  EXPECT_FALSE(blocks.pop_aged(kStart - std::chrono::seconds(1), &out));
  ASSERT_TRUE(blocks.pop_aged(kStart + std::chrono::seconds(1), &out));
  EXPECT_EQ(out.memory, memory);
  EXPECT_FALSE(blocks.pop_aged(kStart + std::chrono::seconds(1), &out));
  EXPECT_FALSE(blocks.empty());
  EXPECT_EQ(take(blocks, 11).memory, nullptr);  // the most is 11 now, as one is kept
  EXPECT_FALSE(blocks.pop_excess(&out));
  blocks.keep(memory + 200, 11, kStart);
  EXPECT_EQ(take(blocks, 12).memory, nullptr);
  EXPECT_TRUE(blocks.pop_excess(&out));
}

}  // namespace
}  // namespace dalsegno::replay
