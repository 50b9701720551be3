// PATH-pace: what is added is read, and whatever else is there is no record.
#include "store/pace.h"

#include <fcntl.h>

#include <limits>

#include "store/testing.h"

namespace dalsegno::store {
namespace {

using namespace testing;

struct Paces : ::testing::Test {
  TempDir directory;
  std::string store = directory.file(), file = store + "-pace";
};

Pace pace(uint64_t function, uint32_t sizes = 0, float eager_ns = 100) { return {function, sizes, eager_ns, eager_ns / 2, 7}; }

TEST_F(Paces, WhatIsAddedIsReadInOrder) {
  add_paces(store, std::vector{pace(1), pace(2, 3)});
  add_paces(store, std::vector{pace(1, 0, 200)});
  EXPECT_EQ(read_paces(store), (std::vector{pace(1), pace(2, 3), pace(1, 0, 200)}));
  struct stat info;
  ASSERT_EQ(stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  remove_paces(store);
  EXPECT_TRUE(read_paces(store).empty());
}

TEST_F(Paces, NothingIsNoRecord) {
  EXPECT_TRUE(read_paces(store).empty());
  EXPECT_TRUE(read_paces("").empty());
  EXPECT_TRUE(read_paces(directory.file("missing/store")).empty());
  add_paces(directory.file("missing/store"), std::vector{pace(1)});
  add_paces("", std::vector{pace(1)});
  add_paces(store, {});
  EXPECT_NE(access(file.c_str(), F_OK), 0);
}

TEST_F(Paces, WhatOthersHaveReplacedIsDroppedFirst) {
  for (uint64_t i = 0; i < 5000; i++) add_paces(store, std::vector{pace(i % 10, 0, static_cast<float>(i)), pace(1000 + i / 100)});
  const std::vector<Pace> all = read_paces(store);
  EXPECT_LE(all.size(), 2048u);
  for (uint64_t f = 0; f < 10; f++) {
    const auto last = std::find_if(all.rbegin(), all.rend(), [f](const Pace& p) { return p.function == f; });
    ASSERT_NE(last, all.rend());
    EXPECT_EQ(last->eager_ns, static_cast<float>(4990 + f));
  }
  for (uint64_t f = 1000; f < 1050; f++) EXPECT_NE(std::find(all.begin(), all.end(), pace(f)), all.end());
}

TEST_F(Paces, OtherBytesAreNoRecordsAndAreReplaced) {
  add_paces(store, std::vector{pace(1)});
  const std::string good = read_bytes(file);
  ASSERT_EQ(good.size(), 48u);
  for (const std::string& bad : {std::string("\0", 1), std::string(96, 'x'), good.substr(0, 24), std::string(24, '\0') + good.substr(24)}) {
    write_bytes(file, bad);
    EXPECT_TRUE(read_paces(store).empty());
    add_paces(store, std::vector{pace(2)});
    EXPECT_EQ(read_paces(store), std::vector{pace(2)});
  }
  write_bytes(file, good + "cut");  // a disk that was full
  EXPECT_EQ(read_paces(store), std::vector{pace(1)});
  add_paces(store, std::vector{pace(2)});
  EXPECT_EQ(read_paces(store), (std::vector{pace(1), pace(2)}));
}

TEST_F(Paces, ForgedTimesAreNoRecords) {
  Pace endless = pace(1), none = pace(2);
  endless.load_ns = std::numeric_limits<float>::infinity();
  none.replay_ns = std::numeric_limits<float>::quiet_NaN();
  add_paces(store, std::vector{endless, none, pace(3)});
  EXPECT_EQ(read_paces(store), std::vector{pace(3)});
}

TEST_F(Paces, WhatIsNoFileIsLeftAlone) {
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  add_paces(store, std::vector{pace(1)});
  EXPECT_TRUE(read_paces(store).empty());  // and nobody waits for a writer
  unlink(file.c_str());
  write_bytes(directory.file("other"), "somebody's");
  ASSERT_EQ(symlink(directory.file("other").c_str(), file.c_str()), 0);
  add_paces(store, std::vector{pace(1)});
  EXPECT_TRUE(read_paces(store).empty());
  EXPECT_EQ(read_bytes(directory.file("other")), "somebody's");
  unlink(file.c_str());
  ASSERT_EQ(mkdir(file.c_str(), 0700), 0);
  add_paces(store, std::vector{pace(1)});
  EXPECT_TRUE(read_paces(store).empty());
}

TEST_F(Paces, GoWithTheStoresContent) {
  Store opened;
  ASSERT_TRUE(opened.open(store));
  add_paces(opened.path(), std::vector{pace(1)});
  EXPECT_EQ(read_paces(store).size(), 1u);
  ASSERT_TRUE(opened.clear());
  EXPECT_TRUE(read_paces(store).empty());
}

}  // namespace
}  // namespace dalsegno::store
