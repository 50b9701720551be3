#include "replay/memory/mapped_blocks.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <set>

namespace dalsegno::replay {
namespace {

TEST(MappedBlocks, HaveRoomWhereverTheArrayBegins) {
  for (size_t size = kLeastMapped; size < (size_t{64} << 20); size += size / 37 + 1) {
    EXPECT_GE(block_for(size), size + 4096 - 256);
    EXPECT_LE(block_for(size), size + (size < (4 << 20) ? 8192 : 2100000 + 4096));
    EXPECT_EQ(block_for(size) % 4096, 0);
  }
}

TEST(MappedBlocks, AreZeroAndWhole) {
  for (const size_t size : {kLeastMapped, size_t{3} << 20, size_t{5} << 20}) {
    const size_t bytes = block_for(size);
    char* block = map_block(bytes, true);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(block_of(block), block);
    EXPECT_EQ(block[0] | block[bytes / 2] | block[bytes - 1], 0);
    std::memset(block, 7, bytes);
    unmap_block(block, bytes);
  }
}

TEST(MappedBlocks, AreFreedInParts) {
  const size_t half = block_for(kLeastMapped);
  char* block = map_block(2 * half, false);
  block[half] = 1;
  unmap_block(block, half);
  EXPECT_EQ(block[half], 1);
  unmap_block(block + half, half);
}

TEST(MappedBlocks, BeginAtSixteenPlacesByTurns) {
  std::set<size_t> places;
  for (int i = 0; i < 16; ++i) places.insert(next_place());
  EXPECT_EQ(places.size(), 16);
  for (const size_t place : places) {
    EXPECT_EQ(place % 64, 0);
    EXPECT_LT(place, 4096);
  }
}

TEST(MappedBlocks, KeepTheirContentsInAnotherSize) {
  const size_t small = block_for(200'000), large = block_for(9'000'000);
  char* block = map_block(small, true);
  for (size_t i = 0; i < small; ++i) block[i] = static_cast<char>(i * 31);
  for (const size_t bytes : {large, small}) {
    block = resize_block(block, bytes == large ? small : large, bytes);
    ASSERT_NE(block, nullptr);
    for (size_t i = 0; i < small; ++i) ASSERT_EQ(block[i], static_cast<char>(i * 31)) << i;
  }
  unmap_block(block, small);
}

TEST(MappedBlocks, AreResizedThoughTheyWereMappedInParts) {
  const size_t part = 4 << 20;
  char* block = map_block(2 * part, false);
  ASSERT_EQ(madvise(block, part, MADV_HUGEPAGE), 0);  // from here on there are two mappings
  block[0] = 1, block[2 * part - 1] = 2;
  block = resize_block(block, 2 * part, 5 * part);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block[0], 1);
  EXPECT_EQ(block[2 * part - 1], 2);
  block[5 * part - 1] = 3;
  unmap_block(block, 5 * part);
}

TEST(MappedBlocks, TellsWhatIsNone) {
  char* block = map_block(block_for(kLeastMapped), false);
  int here = 0;
  static int there = 0;
  EXPECT_TRUE(may_be_mapped(block + next_place()));
  EXPECT_FALSE(may_be_mapped(&there));
  EXPECT_FALSE(may_be_mapped(&here));
  EXPECT_FALSE(may_be_mapped(nullptr));
  unmap_block(block, block_for(kLeastMapped));
}

TEST(MappedBlocks, TellsWhetherPagesHaveBeenTouched) {
  constexpr size_t kPages = 10000;
  char* block = map_block(kPages * 4096, false);
  EXPECT_FALSE(is_touched(block, kPages * 4096));
  std::memset(block, 1, (kPages / 2 - 1) * 4096);
  EXPECT_FALSE(is_touched(block + 64, kPages * 4096 - 128));
  std::memset(block, 1, kPages / 2 * 4096);
  EXPECT_TRUE(is_touched(block + 64, kPages * 4096 - 128));
  EXPECT_FALSE(is_touched(block + kPages / 2 * 4096, 4096));
  unmap_block(block, kPages * 4096);
  EXPECT_FALSE(is_touched(block, kPages * 4096));  // there is none
}

TEST(MappedBlocks, RemembersForAWhileWhatHasBeenTouched) {
  constexpr size_t kBytes = size_t{20} * 4096;
  char* block = map_block(kBytes, false);
  EXPECT_FALSE(was_touched(block, kBytes));
  std::memset(block, 1, kBytes);
  EXPECT_TRUE(was_touched(block, kBytes));
  unmap_block(block, kBytes);
  int times = 0;
  while (was_touched(block, kBytes) && times < 1000) ++times;
  EXPECT_GT(times, 0);
  EXPECT_LT(times, 1000);
  EXPECT_FALSE(was_touched(block, kBytes));
}

TEST(MappedBlocks, MoreThanThereIsIsNull) { EXPECT_EQ(map_block(block_for(size_t{1} << 60), false), nullptr); }

}  // namespace
}  // namespace dalsegno::replay
