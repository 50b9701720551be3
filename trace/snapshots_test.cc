// Snapshots as deltas: what is built is what was added, and it takes memory linear in what changed.
#include "trace/snapshots.h"

#include <gtest/gtest.h>

#include <random>

namespace dalsegno {
namespace {

SnapshotFrame plain_frame(int n_locals) {
  SnapshotFrame f;
  f.function = 0;
  f.code = 0;
  f.locals.assign(static_cast<size_t>(n_locals), kNull);
  return f;
}

TEST(Snapshots, AreBuiltAsTheyWereAdded) {
  std::mt19937_64 random(1);
  auto pick = [&](size_t n) { return static_cast<int32_t>(random() % n); };
  Snapshots all;
  std::vector<Snapshot> added;
  Snapshot now{{plain_frame(5)}};
  for (int i = 0; i < 3000; i++) {
    SnapshotFrame& f = now.frames.back();
    f.offset = pick(100);
    if (!f.locals.empty()) f.locals[static_cast<size_t>(pick(f.locals.size()))] = pick(9) - 1;
    for (int n = pick(3); n > 0; n--) f.stack.push_back(pick(9) - 1);
    for (int n = pick(3); n > 0 && !f.stack.empty(); n--) f.stack.pop_back();
    if (now.frames.size() < 4 && pick(8) == 0) f.after = pick(100), now.frames.push_back(plain_frame(pick(6)));
    if (now.frames.size() > 1 && pick(8) == 0) now.frames.pop_back();
    all.add(now, pick(10) == 0 ? -1 : static_cast<int32_t>(added.size()) - 1);
    added.push_back(now);
    ASSERT_EQ(all.fault(), nullptr);
  }
  for (size_t i = 0; i < added.size(); i++) ASSERT_EQ(all.at(static_cast<int32_t>(i)), added[i]) << i;
}

size_t size_of(const Snapshots& s) { return s.frames.size() * sizeof(FrameDelta) + (s.slots.size() + s.tops.size()) * sizeof(int32_t); }

// A local a snapshot, as straight-line code with many temporaries has it.
size_t size_with(int n) {
  Snapshots all;
  Snapshot now{{plain_frame(n)}};
  for (int i = 0; i < n; i++) {
    now.frames[0].locals[static_cast<size_t>(i)] = i;
    all.add(now, i - 1);
  }
  EXPECT_EQ(all.at(n - 1), now);
  return size_of(all);
}

TEST(Snapshots, TakeLinearMemory) { EXPECT_LT(size_with(2000), size_with(1000) * 5 / 2); }

// Frames around the innermost one are written once.
TEST(Snapshots, ShareOuterFrames) {
  Snapshots all;
  Snapshot now{{plain_frame(1000), plain_frame(2)}};
  now.frames[0].locals.assign(1000, 0);
  for (int i = 0; i < 100; i++) {
    now.frames[1].offset = i;
    all.add(now, i - 1);
  }
  EXPECT_EQ(all.frames.size(), 101u);
  EXPECT_LT(all.slots.size(), 2100u);
  EXPECT_EQ(all.at(99), now);
}

TEST(Snapshots, BackToAMark) {
  Snapshots all;
  all.add(Snapshot{{plain_frame(2)}});
  const Snapshots before = all;
  const Snapshots::Mark mark = all.mark();
  all.add(Snapshot{{plain_frame(2), plain_frame(3)}}, 0);
  all.back_to(mark);
  EXPECT_EQ(all, before);
}

}  // namespace
}  // namespace dalsegno
