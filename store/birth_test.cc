// A store comes into being: at once, wherever its maker dies, and nowhere it could not be trusted.
#include <signal.h>
#include <sys/resource.h>

#include "store/place.h"
#include "store/testing.h"

namespace dalsegno::store {
namespace {

using namespace testing;

int g_until_death = 0;

// Dies before the n-th thing it does with SQLite.
int make_and_die(const std::string& file, int n) {
  g_until_death = n;
  set_fault_hook([](const char*) {
    if (--g_until_death == 0) raise(SIGKILL);
    return SQLITE_OK;
  });
  Store store;
  return store.open(file) ? 0 : 1;
}

// Kept, by a fresh process.
bool is_usable(const std::string& file) {
  const pid_t child = in_child([&] {
    Store store;
    return store.open(file) && store.put_kernel("k", "object", "") && store.get_kernel("k") == "object" ? 0 : 1;
  });
  return exit_status(child) == 0;
}

TEST(Birth, WhereverItsMakerIsKilledTheStoreIsUsable) {
  TempDir directory;
  for (int n = 1; n < 200; n++) {
    const std::string file = directory.file(std::to_string(n));
    const int status = exit_status(in_child([&] { return make_and_die(file, n); }));
    EXPECT_TRUE(is_usable(file)) << n;
    if (status == 0) return;
    ASSERT_EQ(status, 256 + SIGKILL);
  }
  FAIL() << "it never came to an end";
}

TEST(Birth, ProcessesThatStartTogetherAllUseTheStore) {
  TempDir directory;
  for (int round = 0; round < 15; round++) {
    int starts[2];
    ASSERT_EQ(pipe(starts), 0);
    const std::string file = directory.file(std::to_string(round));
    std::vector<pid_t> children;
    for (int i = 0; i < 6; i++) {
      children.push_back(in_child([&] {
        close(starts[1]);
        char byte;
        if (read(starts[0], &byte, 1) != 0) return 1;
        Store store;
        store.open(file, {.background_ms = 60'000});
        return store.put_kernel(std::to_string(i), "object", "") ? 0 : 2;
      }));
    }
    close(starts[1]);  // now
    for (const pid_t child : children) EXPECT_EQ(exit_status(child), 0);
    close(starts[0]);
  }
}

TEST(Birth, AFullDiskLeavesNothingThatIsRefused) {
  for (const rlim_t room : {4096, 8192, 16384, 20480}) {
    TempDir directory;
    const pid_t child = in_child([&] {
      signal(SIGXFSZ, SIG_IGN);
      const rlimit limit = {room, room};
      setrlimit(RLIMIT_FSIZE, &limit);
      Store store;
      return store.open(directory.file()) ? 1 : 0;
    });
    EXPECT_EQ(exit_status(child), 0) << room;
    EXPECT_TRUE(is_usable(directory.file())) << room;
  }
}

TEST(Birth, ADatabaseWithoutTablesIsTakenOver) {
  TempDir directory;
  raw_sql(directory.file(), "PRAGMA auto_vacuum=INCREMENTAL");  // what was left of a birth in two steps
  ASSERT_GT(std::filesystem::file_size(directory.file()), 0u);
  EXPECT_TRUE(is_usable(directory.file()));
}

TEST(Birth, LookUpsMakeNoFile) {
  TempDir directory;
  Store store;
  store.configure(directory.file());
  bool traces = true;
  EXPECT_TRUE(store.load_experience("f", &traces).verdicts.empty());
  EXPECT_FALSE(traces);
  EXPECT_FALSE(store.get_kernel("k"));
  EXPECT_FALSE(std::filesystem::exists(directory.file()));
  EXPECT_TRUE(store.save_trace("f", root_trace()));
  store.load_experience("f", &traces);
  EXPECT_TRUE(traces);
  const Stats stats = store.stats();
  EXPECT_EQ(stats.misses, 2u);
  EXPECT_EQ(stats.errors, 0u);
}

TEST(Birth, LookUpsFindWhatAnotherHasMadeMeanwhile) {
  TempDir directory;
  Store store, other;
  store.configure(directory.file());
  store.load_experience("f");
  ASSERT_TRUE(other.open(directory.file()));
  ASSERT_TRUE(other.save_trace("f", root_trace()));
  bool traces = false;
  store.load_experience("f", &traces);
  EXPECT_TRUE(traces);
  EXPECT_EQ(store.load_traces("f").size(), 1u);
}

TEST(Birth, WhereThereCanBeNoFileAWriterIsToldWhy) {
  TempDir directory;
  Store store;
  store.configure(directory.file("missing/store"));
  store.load_experience("f");
  EXPECT_EQ(store.errors(), 0u);
  EXPECT_FALSE(store.put_kernel("k", "object", ""));
  EXPECT_EQ(store.errors(), 1u);
  EXPECT_NE(store.why(), "");
}

TEST(Birth, GivesSpaceBack) {
  TempDir directory;
  Store store;
  ASSERT_TRUE(store.open(directory.file()));
  EXPECT_EQ(store.query("PRAGMA auto_vacuum").rows.at(0).at(0), Value(int64_t{2}));  // incremental
}

struct DefaultPlace : ::testing::Test {
  TempDir directory;
  std::string cache = directory.file("cache"), home = cache + "/dalsegno";
  Store store;
  void SetUp() override {
    ASSERT_EQ(mkdir(cache.c_str(), 0700), 0);
    unsetenv("DALSEGNO_STORE");
    setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  }
  void TearDown() override { unsetenv("XDG_CACHE_HOME"); }
};

TEST_F(DefaultPlace, NothingIsMadeInAnotherUsersDirectory) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give a directory away";
  ASSERT_EQ(chown(cache.c_str(), 12345, 12345), 0);
  EXPECT_FALSE(store.open(default_path()));
  EXPECT_NE(store.why().find("belongs to another user"), std::string::npos) << store.why();
  EXPECT_FALSE(std::filesystem::exists(home));
}

TEST_F(DefaultPlace, NothingIsWrittenThroughALink) {
  const std::string victim = directory.file("victim");
  ASSERT_EQ(mkdir(victim.c_str(), 0700), 0);
  ASSERT_EQ(symlink(victim.c_str(), home.c_str()), 0);
  EXPECT_FALSE(store.open(default_path()));
  EXPECT_NE(store.why().find("symbolic link"), std::string::npos) << store.why();
  EXPECT_TRUE(std::filesystem::is_empty(victim));
}

TEST_F(DefaultPlace, NothingIsMadeBehindAnotherUsersLink) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give a link away";
  const std::string trusted = directory.file("trusted"), link = directory.file("link");
  ASSERT_EQ(mkdir(trusted.c_str(), 0700), 0);
  ASSERT_EQ(symlink(trusted.c_str(), link.c_str()), 0);
  ASSERT_EQ(lchown(link.c_str(), 12345, 12345), 0);
  setenv("XDG_CACHE_HOME", link.c_str(), 1);
  EXPECT_FALSE(store.open(default_path()));
  EXPECT_TRUE(std::filesystem::is_empty(trusted));
}

TEST_F(DefaultPlace, ALinkOfOnesOwnAboveIsFollowed) {
  const std::string link = directory.file("link");
  ASSERT_EQ(symlink(cache.c_str(), link.c_str()), 0);
  setenv("XDG_CACHE_HOME", link.c_str(), 1);
  EXPECT_TRUE(store.open(default_path())) << store.why();
  EXPECT_TRUE(std::filesystem::exists(home + "/CACHEDIR.TAG"));
}

// What is left of a store at a chosen path is moved aside.
struct Heals : ::testing::Test {
  TempDir directory;
  std::string file = directory.file(), whole;
  void SetUp() override {
    Store store;
    ASSERT_TRUE(store.open(file));
    ASSERT_TRUE(store.put_kernel("k", "object", ""));
    store.close();
    whole = read_bytes(file);
  }
  // The object is there or is not; a second look at the latest finds a store that works.
  void expect_usable(const std::string& bytes, const std::string& what) {
    write_bytes(file, bytes);
    Store store;
    store.open(file);
    const auto object = store.get_kernel("k");
    EXPECT_TRUE(!object || *object == "object") << what;
    store.put_kernel("k", "object", "");
    EXPECT_TRUE(store.put_kernel("k", "object", "")) << what << ": " << store.why();
    EXPECT_EQ(store.get_kernel("k"), "object") << what << ": " << store.why();
  }
};

TEST_F(Heals, AnyByteOfTheHeader) {
  for (size_t i = 0; i < 100; i++) {
    if (i >= 60 && i < 64) continue;  // the schema's version: a newer one is left alone
    for (const int flip : {0x01, 0x40, 0xff}) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ flip);
      expect_usable(bytes, "byte " + std::to_string(i) + " flipped by " + std::to_string(flip));
    }
  }
}

TEST_F(Heals, ACutFile) {
  for (size_t size = 0; size <= 130; size++) expect_usable(whole.substr(0, size), "cut to " + std::to_string(size));
  for (size_t size = 500; size < whole.size(); size += 777) expect_usable(whole.substr(0, size), "cut to " + std::to_string(size));
  EXPECT_TRUE(std::filesystem::exists(file + ".damaged"));
}

TEST_F(Heals, ATextAboutOurTablesIsNoStore) {
  const std::string text = "SQLite format 3: " + std::string(tables::trace_data.create) + "\n";
  write_bytes(directory.file("notes.txt"), text);
  Store store;
  EXPECT_FALSE(store.open(directory.file("notes.txt")));
  EXPECT_EQ(read_bytes(directory.file("notes.txt")), text);
}

}  // namespace
}  // namespace dalsegno::store
