#include "replay/memory/kept_blocks.h"

#include <gtest/gtest.h>

namespace dalsegno::replay {
namespace {

using Clock = KeptBlocks::Clock;
constexpr Clock::time_point kStart{};

char memory[8];

TEST(KeptBlocks, GivesBackBlocksOfTheVerySize) {
  KeptBlocks blocks;
  EXPECT_EQ(blocks.take(100).memory, nullptr);
  blocks.keep(memory, 100, kStart);
  EXPECT_EQ(blocks.take(99).memory, nullptr);
  EXPECT_EQ(blocks.take(101).memory, nullptr);
  EXPECT_EQ(blocks.take(100).memory, memory);
  EXPECT_EQ(blocks.take(100).memory, nullptr);
}

TEST(KeptBlocks, GivesTheYoungestFirst) {
  KeptBlocks blocks;
  for (int i = 0; i < 2; ++i) blocks.take(10);
  blocks.keep(memory, 10, kStart);
  blocks.keep(memory + 1, 10, kStart);
  EXPECT_EQ(blocks.take(10).memory, memory + 1);
  EXPECT_EQ(blocks.take(10).memory, memory);
}

TEST(KeptBlocks, GivesTheSmallestThatIsLargeEnoughWhereTheCallerTakesOne) {
  KeptBlocks blocks;
  for (const size_t size : {80, 50, 60}) blocks.take(size);
  for (const size_t size : {80, 50, 60}) blocks.keep(memory + size % 8, size, kStart);
  EXPECT_EQ(blocks.take(40).memory, nullptr);
  EXPECT_EQ(blocks.take(40, 49).memory, nullptr);
  const KeptBlocks::Block block = blocks.take(40, 80);
  EXPECT_EQ(block.memory, memory + 50 % 8);
  EXPECT_EQ(block.size, 50);
  EXPECT_EQ(blocks.take(70, 80).memory, nullptr);  // 190 bytes were once in use, now 130 are
}

TEST(KeptBlocks, KeepsNoMoreThanTwiceWhatWasOnceInUse) {
  KeptBlocks blocks;
  KeptBlocks::Block out;
  for (int i = 0; i < 3; ++i) blocks.take(10);
  for (int i = 0; i < 3; ++i) blocks.keep(memory + i, 10, kStart);
  EXPECT_EQ(blocks.take(25).memory, nullptr);
  blocks.keep(memory + 3, 25, kStart);
  EXPECT_FALSE(blocks.pop_excess(&out));
  EXPECT_EQ(blocks.take(20).memory, nullptr);  // with it 75 bytes, of twice 30 at most
  ASSERT_TRUE(blocks.pop_excess(&out));
  EXPECT_EQ(out.memory, memory);
  ASSERT_TRUE(blocks.pop_excess(&out));
  EXPECT_EQ(out.memory, memory + 1);
  EXPECT_FALSE(blocks.pop_excess(&out));
  blocks.drop(20);
  EXPECT_EQ(blocks.take(10).memory, memory + 2);
}

TEST(KeptBlocks, MeasuresWhatIsInUseAtOnce) {
  KeptBlocks blocks;
  blocks.take(100);
  const KeptBlocks::Measure outer = blocks.begin();
  blocks.take(10);
  const KeptBlocks::Measure inner = blocks.begin();
  blocks.take(5);
  blocks.drop(5);
  blocks.take(7);
  EXPECT_EQ(blocks.end(inner), 7);
  blocks.drop(17);
  blocks.take(3);
  EXPECT_EQ(blocks.end(outer), 17);
  const KeptBlocks::Measure none = blocks.begin();
  blocks.drop(100);
  EXPECT_EQ(blocks.end(none), 0);
}

TEST(KeptBlocks, KeepsAFixedAmountMoreOfMuch) {
  constexpr size_t kMuch = 4 * KeptBlocks::kMostMore;
  KeptBlocks blocks;
  KeptBlocks::Block out;
  blocks.take(kMuch);
  blocks.keep(memory, kMuch, kStart);
  blocks.take(KeptBlocks::kMostMore);
  EXPECT_FALSE(blocks.pop_excess(&out));
  blocks.take(1);
  EXPECT_TRUE(blocks.pop_excess(&out));
}

TEST(KeptBlocks, KeepsFewBlocks) {
  KeptBlocks blocks;
  KeptBlocks::Block out;
  blocks.take(1000);
  blocks.drop(1000);
  for (size_t i = 0; i < KeptBlocks::kMostBlocks + 1; ++i) blocks.take(1);
  for (size_t i = 0; i < KeptBlocks::kMostBlocks; ++i) blocks.keep(memory, 1, kStart);
  EXPECT_FALSE(blocks.pop_excess(&out));
  blocks.keep(memory, 1, kStart);
  EXPECT_TRUE(blocks.pop_excess(&out));
  EXPECT_FALSE(blocks.pop_excess(&out));
}

TEST(KeptBlocks, LetsGoOfWhatNobodyHasTakenForLong) {
  KeptBlocks blocks;
  KeptBlocks::Block out;
  for (int i = 0; i < 2; ++i) blocks.take(10);
  blocks.keep(memory, 10, kStart);
  blocks.keep(memory + 1, 10, kStart + std::chrono::seconds(2));
  EXPECT_FALSE(blocks.pop_aged(kStart - std::chrono::seconds(1), &out));
  ASSERT_TRUE(blocks.pop_aged(kStart + std::chrono::seconds(1), &out));
  EXPECT_EQ(out.memory, memory);
  EXPECT_FALSE(blocks.pop_aged(kStart + std::chrono::seconds(1), &out));
  EXPECT_FALSE(blocks.empty());
  EXPECT_EQ(blocks.take(9).memory, nullptr);  // the most is 10 now, as one is kept
  EXPECT_FALSE(blocks.pop_excess(&out));
  blocks.keep(memory, 9, kStart);
  EXPECT_EQ(blocks.take(8).memory, nullptr);
  EXPECT_TRUE(blocks.pop_excess(&out));
}

}  // namespace
}  // namespace dalsegno::replay
