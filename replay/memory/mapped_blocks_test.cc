#include "replay/memory/mapped_blocks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

namespace dalsegno::replay {
namespace {

TEST(MappedBlocks, RoomIsAtMostAnEighthMore) {
  for (size_t size = kLeastMapped; size < (size_t{64} << 20); size += size / 37 + 1) {
    EXPECT_GE(room_for(size), size);
    EXPECT_LE(room_for(size), size + size / 8 + 1);
    EXPECT_EQ(room_for(room_for(size)), room_for(size));
  }
  EXPECT_EQ(room_for(1 << 20), size_t{1} << 20);
}

TEST(MappedBlocks, AreZeroWholeAndAligned) {
  for (const size_t size : {kLeastMapped, size_t{3} << 20, size_t{5} << 20}) {
    const size_t room = room_for(size);
    auto* block = static_cast<unsigned char*>(map_block(room, true));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0);
    EXPECT_EQ(block[0] | block[room / 2] | block[room - 1], 0);
    std::memset(block, 7, room);
    unmap_block(block, room);
  }
}

TEST(MappedBlocks, BeginAtSeveralPlacesOfAPage) {
  std::vector<void*> blocks;
  std::set<uintptr_t> places;
  for (int i = 0; i < 16; ++i) {
    blocks.push_back(map_block(kLeastMapped, false));
    places.insert(reinterpret_cast<uintptr_t>(blocks.back()) % 4096);
  }
  EXPECT_EQ(places.size(), 16);
  for (void* block : blocks) unmap_block(block, kLeastMapped);
}

TEST(MappedBlocks, KeepTheirContentsInAnotherSize) {
  const size_t small = room_for(200'000), large = room_for(9'000'000);
  map_block(kLeastMapped, false);  // so that blocks do not all begin where pages do
  auto* block = static_cast<unsigned char*>(map_block(small, true));
  for (size_t i = 0; i < small; ++i) block[i] = static_cast<unsigned char>(i * 31);
  for (const size_t room : {large, small}) {
    block = static_cast<unsigned char*>(resize_block(block, room == large ? small : large, room));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0);
    for (size_t i = 0; i < small; ++i) ASSERT_EQ(block[i], static_cast<unsigned char>(i * 31)) << i;
    block[room - 1] = block[small - 1];
  }
  unmap_block(block, small);
}

TEST(MappedBlocks, TellsWhatIsNone) {
  void* block = map_block(kLeastMapped, false);
  int here = 0;
  static int there = 0;
  EXPECT_TRUE(may_be_mapped(block));
  EXPECT_FALSE(may_be_mapped(&there));
  EXPECT_FALSE(may_be_mapped(&here));
  unmap_block(block, kLeastMapped);
}

TEST(MappedBlocks, MoreThanThereIsIsNull) { EXPECT_EQ(map_block(room_for(size_t{1} << 60), false), nullptr); }

TEST(MappedBlocks, LeaveOthersMappings) {
  std::vector<void*> blocks;
  while (void* block = map_block(kLeastMapped, false)) blocks.push_back(block);
  EXPECT_LE(blocks.size(), kMostMapped);
  EXPECT_GT(blocks.size(), kMostMapped / 2);
  for (void* block : blocks) unmap_block(block, kLeastMapped);
  void* block = map_block(kLeastMapped, false);
  ASSERT_NE(block, nullptr);
  unmap_block(block, kLeastMapped);
}

}  // namespace
}  // namespace dalsegno::replay
