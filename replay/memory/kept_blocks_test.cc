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

TEST(KeptBlocks, KeepsNoMoreThanWasOnceInUse) {
  KeptBlocks blocks;
  KeptBlocks::Block out;
  for (int i = 0; i < 3; ++i) blocks.take(10);
  for (int i = 0; i < 3; ++i) blocks.keep(memory + i, 10, kStart);
  EXPECT_FALSE(blocks.pop_excess(&out));
  EXPECT_EQ(blocks.take(15).memory, nullptr);  // with it 45 bytes, of 30 at most
  ASSERT_TRUE(blocks.pop_excess(&out));
  EXPECT_EQ(out.memory, memory);
  ASSERT_TRUE(blocks.pop_excess(&out));
  EXPECT_EQ(out.memory, memory + 1);
  EXPECT_FALSE(blocks.pop_excess(&out));
  blocks.drop(15);
  EXPECT_EQ(blocks.take(10).memory, memory + 2);
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
  EXPECT_EQ(blocks.take(20).memory, nullptr);  // as much as both, which is no longer kept beside what is
  EXPECT_TRUE(blocks.pop_excess(&out));
  EXPECT_TRUE(blocks.empty());
}

}  // namespace
}  // namespace dalsegno::replay
