// Many processes on one file: locks, forks, kills, files that vanish.
#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <thread>

#include "store/testing.h"

namespace dalsegno::store {
namespace {

using namespace testing;

std::string object_of(int i) { return std::string(200 + i % 5000, static_cast<char>('a' + i % 26)); }

// Writes and reads; every value read must be right. Exit status 0, or the number of what failed.
int work(const std::string& file, int worker, int rounds) {
  Store store;
  store.open(file);
  std::mt19937 random(static_cast<unsigned>(worker));
  for (int n = 0; n < rounds; n++) {
    const int i = static_cast<int>(random() % 40);
    const std::string key = "k" + std::to_string(i);
    store.put_kernel(key, object_of(i), "");
    const auto object = store.get_kernel(key);
    if (object && *object != object_of(i)) return 1;
    Trace root = root_trace();
    store.save_trace("f" + std::to_string(i % 5), root);
    for (const Trace& trace : store.load_traces("f" + std::to_string(i % 5))) {
      if (!(trace == root)) return 2;
    }
  }
  return 0;
}

TEST(Processes, ManyAtOnce) {
  TempDir directory;
  std::vector<pid_t> children;
  for (int i = 0; i < 6; i++) children.push_back(in_child([&] { return work(directory.file(), i, 60); }));
  for (pid_t child : children) EXPECT_EQ(exit_status(child), 0);
  Store store;
  ASSERT_TRUE(store.open(directory.file()));
  EXPECT_EQ(store.verify().damaged, 0u);
  EXPECT_GT(store.stats().kernels, 20u);
}

// A killed process loses nothing it was told had been kept, and leaves nothing wrong.
TEST(Processes, Kill) {
  TempDir directory;
  Store store;
  ASSERT_TRUE(store.open(directory.file()));
  std::mt19937 random(17);
  for (int round = 0; round < 25; round++) {
    int acknowledged[2];
    ASSERT_EQ(pipe(acknowledged), 0);
    const pid_t child = in_child([&] {
      Store mine;
      mine.open(directory.file());
      for (int i = 0;; i++) {
        const std::string key = std::to_string(round) + "/" + std::to_string(i);
        if (mine.put_kernel(key, object_of(i), "") && write(acknowledged[1], &i, sizeof i) != sizeof i) return 1;
      }
    });
    close(acknowledged[1]);
    int first = 0;
    EXPECT_EQ(read(acknowledged[0], &first, sizeof first), static_cast<ssize_t>(sizeof first));
    usleep(random() % 8000);
    kill(child, SIGKILL);
    EXPECT_EQ(exit_status(child), 256 + SIGKILL);
    EXPECT_EQ(store.get_kernel(std::to_string(round) + "/" + std::to_string(first)), object_of(first)) << store.why();
    for (int i; read(acknowledged[0], &i, sizeof i) == sizeof i;)
      EXPECT_EQ(store.get_kernel(std::to_string(round) + "/" + std::to_string(i)), object_of(i)) << store.why();
    close(acknowledged[0]);
  }
  EXPECT_EQ(store.verify().damaged, 0u);
}

// A file that another process keeps locked.
class Locked : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(store.open(directory.file(), {.busy_ms = 1, .background_ms = 0}));
    ASSERT_TRUE(store.put_kernel("k", "object", ""));
    ASSERT_EQ(sqlite3_open(directory.file().c_str(), &other), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(other, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  }
  void TearDown() override {
    set_fault_hook(nullptr);
    unlock();
  }
  // `opens`: attempts to connect, then the connection that writes, and others of its own.
  template <class Work>
  void expect_patience(int opens, Work work) {
    Store patient;
    ASSERT_FALSE(patient.open(directory.file(), {.busy_ms = 1, .background_ms = 60'000}));
    const uint64_t errors = patient.errors();
    attempts = 0;
    set_fault_hook([](const char* operation) {
      if (std::string_view(operation) == "open") attempts++;
      if (attempts == 5) unlock();
      return SQLITE_OK;
    });
    EXPECT_TRUE(work(patient)) << patient.why();
    EXPECT_EQ(attempts, opens);
    EXPECT_EQ(patient.errors(), errors);
  }
  static void unlock() {
    if (other != nullptr) sqlite3_close(other);  // rolls back
    other = nullptr;
  }

  TempDir directory;
  Store store;
  static inline sqlite3* other = nullptr;
  static inline int attempts = 0;
};

TEST_F(Locked, IsAMiss) {
  EXPECT_FALSE(store.get_kernel("k").has_value());
  EXPECT_FALSE(store.put_kernel("l", "object", ""));
  EXPECT_EQ(store.stats().errors, 3u);  // stats could not be read either
  Store late;                           // opens while locked: works as soon as it is not
  EXPECT_FALSE(late.open(directory.file(), {.busy_ms = 1}));
  EXPECT_NE(late.why().find("locked"), std::string::npos) << late.why();
  unlock();
  EXPECT_EQ(store.get_kernel("k"), "object");
  EXPECT_EQ(late.get_kernel("k"), "object");
}

// A user's call is not patient, what background threads do and what people ask is: the file is let go at a fifth try.
TEST_F(Locked, SavingIsPatient) {
  expect_patience(6, [](Store& patient) { return patient.put_kernel("l", "object", ""); });
  EXPECT_EQ(store.get_kernel("l"), "object");
}
TEST_F(Locked, FetchingKernelsIsPatient) {
  expect_patience(6, [](Store& patient) { return patient.get_kernel("k") == "object"; });
}
TEST_F(Locked, AQueryIsPatient) {
  expect_patience(7, [](Store& patient) { return patient.query("SELECT * FROM kernels").rows.size() == 1; });
}

// Patience is spent once, not for every save that waits in line; a save that gets in restores it.
TEST_F(Locked, AStuckFileCostsPatienceOnce) {
  Store saver;
  saver.open(directory.file(), {.busy_ms = 1, .background_ms = 20});
  attempts = 0;
  set_fault_hook([](const char* operation) {
    attempts += std::string_view(operation) == "open";
    return SQLITE_OK;
  });
  EXPECT_FALSE(saver.put_kernel("l", "object", ""));
  EXPECT_GE(attempts, 1);
  for (int i = 0; i < 3; i++) {
    attempts = 0;
    EXPECT_FALSE(saver.put_kernel("l", "object", ""));
    EXPECT_EQ(attempts, 1);
  }
  unlock();
  EXPECT_TRUE(saver.put_kernel("l", "object", ""));
}

// What writes opens the file later than what reads: another one may lie there by then, and is looked at first.
TEST(Processes, AnotherFileInItsPlaceIsNotWrittenTo) {
  TempDir directory;
  const std::string file = directory.file();
  {
    Store store;
    ASSERT_TRUE(store.open(file));
  }
  Store store;
  ASSERT_TRUE(store.open(file));
  EXPECT_TRUE(store.load_traces("f").empty());
  ASSERT_EQ(rename(file.c_str(), directory.file("elsewhere").c_str()), 0);
  raw_sql(file, "CREATE TABLE diary(day TEXT); INSERT INTO diary VALUES('monday')");
  const std::string before = read_bytes(file);
  EXPECT_FALSE(store.put_kernel("k", "object", ""));
  EXPECT_FALSE(store.put_kernel("k", "object", ""));
  EXPECT_EQ(read_bytes(file), before);
  EXPECT_NE(store.why(), "");
}

// SQLite would go on keeping a log beside the file (see docs/store.md).
TEST(Processes, AWriteAheadLogOfSomebodysIsEnded) {
  TempDir directory;
  const std::string file = directory.file();
  {
    Store store;
    ASSERT_TRUE(store.open(file));
    ASSERT_TRUE(store.put_kernel("k", "object", ""));
  }
  raw_sql(file, "PRAGMA journal_mode=WAL; CREATE TABLE diary(day TEXT); DROP TABLE diary");
  ASSERT_EQ(read_bytes(file)[18], 2);
  Store store;
  ASSERT_TRUE(store.open(file)) << store.why();
  EXPECT_EQ(read_bytes(file)[18], 1);
  EXPECT_EQ(store.get_kernel("k"), "object");
}

TEST(Processes, ForkedChildGoesOn) {
  TempDir directory;
  Store store;
  ASSERT_TRUE(store.open(directory.file(), {.busy_ms = 60'000, .background_ms = 60'000}));
  const Trace root = root_trace();
  ASSERT_TRUE(store.save_trace("f", root));
  const pid_t child = in_child([&] {
    if (store.load_traces("f").size() != 1) return 1;
    if (!store.put_kernel("child", "object", "")) return 2;
    if (!store.save_trace("f", side_trace(root_trace(), 1), "", identity_of(root))) return 3;
    return 0;
  });
  EXPECT_TRUE(store.put_kernel("parent", "object", "") || !store.why().empty());
  EXPECT_EQ(exit_status(child), 0);
  EXPECT_TRUE(store.get_kernel("child").has_value());
  EXPECT_EQ(store.load_traces("f").size(), 2u);
}

// Other threads use the store while this one forks: the child inherits no lock that nobody holds.
TEST(Processes, ForkWhileThreadsAreInside) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "GCC 12's sanitizer does not hold its allocator's locks across fork(): a child may wait for one for ever";
#endif
  TempDir directory;
  Store store;
  ASSERT_TRUE(store.open(directory.file(), {.busy_ms = 60'000, .background_ms = 60'000}));
  int may_go[2];
  ASSERT_EQ(pipe(may_go), 0);
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; t++) {
    threads.emplace_back([&, t] {
      for (int i = 0; !stop; i++) store.put_kernel("t" + std::to_string(t), object_of(i), "");
    });
  }
  std::vector<pid_t> children;
  for (int i = 0; i < 30; i++) {
    children.push_back(in_child([&] {
      const std::string key = "child" + std::to_string(i);
      if (char byte; read(may_go[0], &byte, 1) != 1) return 1;
      if (!store.put_kernel(key, object_of(i), "")) return 2;
      return store.get_kernel(key) ? 0 : 3;
    }));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  const std::string bytes(children.size(), '.');
  EXPECT_EQ(write(may_go[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  for (const pid_t child : children) EXPECT_EQ(exit_status(child), 0);
  close(may_go[0]), close(may_go[1]);
  EXPECT_EQ(store.verify().damaged, 0u);
}

TEST(Processes, TheFileVanishes) {
  TempDir directory;
  Store store;
  ASSERT_TRUE(store.open(directory.file()));
  ASSERT_TRUE(store.put_kernel("k", "object", ""));
  std::filesystem::remove(directory.file());
  store.put_kernel("k", "object", "");  // noticed here
  EXPECT_TRUE(store.put_kernel("k", "object", "")) << store.why();
  EXPECT_TRUE(std::filesystem::exists(directory.file()));
  std::filesystem::remove_all(directory.path());
  EXPECT_FALSE(store.put_kernel("k", "object", ""));
  EXPECT_FALSE(store.put_kernel("k", "object", ""));
  EXPECT_NE(store.why(), "");
}

// Two find the same damage: what the first made anew is not thrown away by the second.
TEST(Processes, SettingAsideTwice) {
  TempDir directory;
  Store one, two;
  ASSERT_TRUE(one.open(directory.file()));
  ASSERT_TRUE(one.put_kernel("k", std::string(50000, 'x'), ""));
  ASSERT_TRUE(two.open(directory.file()));
  std::string bytes = read_bytes(directory.file());
  bytes[27]++;  // the change counter: what the connections remember of the pages is out of date
  for (size_t i = 4096; i < bytes.size(); i++) bytes[i] = '\x77';
  write_bytes(directory.file(), bytes);
  EXPECT_FALSE(one.get_kernel("k").has_value());
  EXPECT_TRUE(one.put_kernel("k", "again", "")) << one.why();
  two.get_kernel("k");
  two.put_kernel("l", "object", "");
  EXPECT_TRUE(two.put_kernel("l", "object", "")) << two.why();
  EXPECT_EQ(two.get_kernel("k"), "again");
  EXPECT_EQ(one.get_kernel("l"), "object");
}

// A file system without room: SQLite's own writes fail.
TEST(Processes, DiskFull) {
  TempDir directory;
  const pid_t child = in_child([&] {
    signal(SIGXFSZ, SIG_IGN);
    Store store;
    if (!store.open(directory.file()) || !store.put_kernel("k", "object", "")) return 1;
    const rlimit limit = {200000, 200000};
    setrlimit(RLIMIT_FSIZE, &limit);
    int refused = 0;
    for (int i = 0; i < 30; i++) refused += !store.put_kernel(std::to_string(i), std::string(20000, 'x'), "");
    if (refused == 0) return 2;
    if (store.get_kernel("k") != "object") return 3;
    if (store.get_kernel("0") != std::string(20000, 'x')) return 4;
    if (store.stats().errors == 0) return 5;
    return store.verify().damaged == 0 ? 0 : 6;
  });
  EXPECT_EQ(exit_status(child), 0);
}

}  // namespace
}  // namespace dalsegno::store
