#include "replay/memory/strided_copy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace dalsegno::replay {
namespace {

// What the copy is to give: every item by itself, in the order of the extents.
void copy_simply(const char* from, char* to, const CopiedSpace& space, int axis = 0) {
  if (axis == space.rank) {
    std::memcpy(to, from, space.item);
    return;
  }
  for (intptr_t i = 0; i < space.shape[axis]; ++i)
    copy_simply(from + i * space.from_strides[axis], to + i * space.to_strides[axis], space, axis + 1);
}

// Memory that a strided space of these extents lies in, axes in a random order, some backwards, some with gaps.
struct Memory {
  std::vector<char> bytes;
  std::vector<intptr_t> strides;
  size_t start = 0;

  Memory(const std::vector<intptr_t>& shape, size_t item, std::mt19937& random, bool repeats) : strides(shape.size()) {
    std::vector<size_t> order(shape.size());
    for (size_t k = 0; k < order.size(); ++k) order[k] = k;
    std::shuffle(order.begin(), order.end(), random);
    auto stride = static_cast<intptr_t>(item);
    for (const size_t axis : order) {
      stride *= 1 + static_cast<intptr_t>(random() % 3 == 0);
      strides[axis] = stride;
      stride *= std::max<intptr_t>(shape[axis], 1);
    }
    bytes.resize(static_cast<size_t>(stride));
    for (char& b : bytes) b = static_cast<char>(random());
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (random() % 4 == 0 && shape[axis] > 0) start += static_cast<size_t>((shape[axis] - 1) * strides[axis]), strides[axis] *= -1;
      if (repeats && random() % 4 == 0 && strides[axis] > 0) strides[axis] = 0;
    }
  }
};

TEST(StridedCopy, GivesWhatCopyingItemByItemGives) {
  std::mt19937 random(1);
  for (int turn = 0; turn < 3000; ++turn) {
    std::vector<intptr_t> shape(random() % 5);
    for (intptr_t& n : shape) n = static_cast<intptr_t>(random() % 8 == 0 ? random() % 40 : random() % 6);
    const size_t item = std::vector<size_t>{1, 2, 3, 4, 8, 12, 16}[random() % 7];
    const Memory from(shape, item, random, true);
    Memory to(shape, item, random, false);
    Memory wanted = to;
    const CopiedSpace space{static_cast<int>(shape.size()), shape.data(), from.strides.data(), to.strides.data(), item};
    copy_simply(from.bytes.data() + from.start, wanted.bytes.data() + wanted.start, space);
    copy_strided(from.bytes.data() + from.start, to.bytes.data() + to.start, space, random() % 2 == 0);
    ASSERT_EQ(to.bytes, wanted.bytes) << "turn " << turn;
  }
}

TEST(StridedCopy, WritesInNumpysOrderWhereItemsShareMemory) {
  const char from[] = "abcdef";
  char to[] = "......";
  const intptr_t shape[] = {3, 2}, from_strides[] = {2, 1}, to_strides[] = {1, 2};  // e and b lie in one place; axis 1 is the outer one
  copy_strided(from, to, {2, shape, from_strides, to_strides, 1});
  EXPECT_EQ(std::string(to), "acbdf.");
}

TEST(StridedCopy, MovesItemsOneAfterTheOtherWhereMemoryOverlaps) {
  char memory[] = "abcdefgh";
  const intptr_t shape[] = {7}, strides[] = {1};
  copy_strided(memory, memory + 1, {1, shape, strides, strides, 1}, true);
  EXPECT_EQ(std::string(memory), "aaaaaaaa");
}

}  // namespace
}  // namespace dalsegno::replay
