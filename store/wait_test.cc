// Who waits for whom: look-ups for nobody, saves for no disk, forks for no query.
#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "store/testing.h"

namespace {
std::atomic<int> g_syncs{0}, g_sleeps{0};
}
// In the C library's place, for SQLite too.
#define INSTEAD extern "C" __attribute__((visibility("default")))
INSTEAD int fsync(int) { return ++g_syncs, 0; }
INSTEAD int fdatasync(int) { return ++g_syncs, 0; }
INSTEAD int usleep(useconds_t microseconds) {
  g_sleeps++;
  const timespec time = {0, static_cast<long>(microseconds) * 1000};
  return nanosleep(&time, nullptr);
}

namespace dalsegno::store {
namespace {

using namespace testing;

struct Waits : ::testing::Test {
  TempDir directory;
  std::string file = directory.file();
  Store store;
  void SetUp() override {
    ASSERT_TRUE(store.open(file));
    ASSERT_TRUE(store.save_trace("f", root_trace()));
    ASSERT_EQ(store.load_traces("f").size(), 1u);
  }
  void TearDown() override { set_fault_hook(nullptr); }
};

// A thread that does something with the store, stopped in the middle of it while this object lives.
class Helper {
 public:
  template <class Work>
  explicit Helper(Work work) {
    inside_ = go_on_ = false;
    thread_ = std::thread([work] {
      id_ = std::this_thread::get_id();
      work();
      id_ = std::thread::id();
    });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [] { return inside_; });
  }
  ~Helper() {
    {
      std::lock_guard lock(mutex_);
      go_on_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }
  static void stop() {
    if (id_.load() != std::this_thread::get_id()) return;
    std::unique_lock lock(mutex_);
    inside_ = true;
    changed_.notify_all();
    changed_.wait(lock, [] { return go_on_; });
  }

 private:
  static inline std::mutex mutex_;
  static inline std::condition_variable changed_;
  static inline std::atomic<std::thread::id> id_;
  static inline bool inside_ = false, go_on_ = false;
  std::thread thread_;
};

int stop_in_a_transaction(const char* operation) {
  if (std::string_view(operation) == "bind") Helper::stop();  // its first statement with parameters
  return SQLITE_OK;
}

std::atomic<int> g_steps{0};
int stop_between_rows(const char* operation) {
  if (std::string_view(operation) == "step" && ++g_steps == 4) Helper::stop();
  return SQLITE_OK;
}

TEST_F(Waits, ALookUpDoesNotWaitForATransaction) {
  set_fault_hook(stop_in_a_transaction);
  Helper writer([&] { EXPECT_TRUE(store.put_kernel("k", "object", "")); });
  EXPECT_EQ(store.load_traces("f").size(), 1u);
  EXPECT_TRUE(store.load_traces("g").empty());
  EXPECT_EQ(store.errors(), 0u) << store.why();
}

TEST_F(Waits, NothingButSyncWaitsForTheDisk) {
  g_syncs = 0;
  Store made;
  EXPECT_TRUE(made.open(directory.file("new")));
  EXPECT_TRUE(made.put_kernel("k", std::string(100'000, 'x'), ""));
  EXPECT_TRUE(made.save_trace("f", root_trace()));
  EXPECT_EQ(g_syncs, 0);
  made.sync();
  EXPECT_EQ(g_syncs, 1);
  made.close();
  made.sync();
  EXPECT_EQ(g_syncs, 1);
}

// The first look-up waits for another process's lock, those after it ask once each, until one gets in.
TEST_F(Waits, ALockIsRemembered) {
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  g_sleeps = 0;
  EXPECT_TRUE(store.load_traces("f").empty());
  EXPECT_GT(g_sleeps, 0);
  g_sleeps = 0;
  for (int i = 0; i < 5; i++) EXPECT_TRUE(store.load_traces("f").empty());
  EXPECT_EQ(g_sleeps, 0);
  EXPECT_EQ(store.errors(), 6u);
  sqlite3_close(other);
  EXPECT_EQ(store.load_traces("f").size(), 1u);
}

// The same where the store has not been opened yet.
TEST_F(Waits, ALockIsRememberedBeforeTheFirstLookUp) {
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  Store late;
  EXPECT_FALSE(late.open(file));
  g_sleeps = 0;
  for (int i = 0; i < 5; i++) EXPECT_TRUE(late.load_traces("f").empty());
  EXPECT_EQ(g_sleeps, 0);
  sqlite3_close(other);
  EXPECT_EQ(late.load_traces("f").size(), 1u);
}

TEST_F(Waits, ALookUpDoesNotWaitForAQuery) {
  g_steps = 0;
  set_fault_hook(stop_between_rows);
  Helper asker([&] { EXPECT_EQ(store.query("SELECT 1 FROM ops").rows.size(), root_trace().ops.size()); });
  EXPECT_EQ(store.load_traces("f").size(), 1u);
  EXPECT_TRUE(store.load_traces("g").empty());
  EXPECT_EQ(store.errors(), 0u);
}

constexpr const char* kCount = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < %) SELECT COUNT(*) FROM c";
std::string count_to(const std::string& n) { return std::string(kCount).replace(std::string_view(kCount).find('%'), 1, n); }

// A query that never ends would keep a fork waiting for ever.
TEST_F(Waits, AForkDoesNotWaitForAQuery) {
  const pid_t child = in_child([&] {
    alarm(100);
    static std::atomic<int> steps{0};
    set_fault_hook([](const char* operation) {
      steps += std::string_view(operation) == "step";
      return SQLITE_OK;
    });
    std::thread([&] { store.query(count_to("1e18")); }).detach();
    while (steps < 2) std::this_thread::yield();  // "PRAGMA query_only", then the query
    return exit_status(in_child([&] { return store.load_traces("f").size() == 1 && store.query("SELECT 1").error.empty() ? 0 : 1; }));
  });
  EXPECT_EQ(exit_status(child), 0);
}

TEST_F(Waits, AQueryThatForksInterruptIsAnsweredAllTheSame) {
  std::atomic<bool> done{false};
  std::thread asker([&] {
    const QueryResult result = store.query(count_to("1000000"));
    EXPECT_EQ(result.error, "");
    EXPECT_EQ(result.rows.at(0).at(0), Value(int64_t{1'000'000}));
    done = true;
  });
  while (!done) EXPECT_EQ(exit_status(in_child([] { return 0; })), 0);
  asker.join();
}

// A killed process has left a transaction half written.
TEST_F(Waits, AQueryRollsBackWhatAKilledProcessLeft) {
  const pid_t child = in_child([&] {
    sqlite3* mine = nullptr;
    sqlite3_open(file.c_str(), &mine);
    const char* sql =
        "PRAGMA journal_mode=TRUNCATE; PRAGMA cache_size=1; BEGIN; DELETE FROM listings; "
        "INSERT INTO kernels VALUES('big', '', randomblob(500000), 0, x'', 0);";
    if (sqlite3_exec(mine, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return 1;
    raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(exit_status(child), 256 + SIGKILL);
  ASSERT_GT(std::filesystem::file_size(file + "-journal"), 0u);
  const QueryResult result = store.query("SELECT COUNT(*) FROM ops");
  EXPECT_EQ(result.error, "");
  EXPECT_EQ(result.rows.at(0).at(0), Value(static_cast<int64_t>(root_trace().ops.size())));
}

// What is larger than anything we write is not read in a user's call. It is deleted when nobody else writes.
TEST_F(Waits, AHugeRowIsNotRead) {
  raw_sql(file, "UPDATE trace_data SET data = zeroblob(15000000)");
  raw_sql(file, "INSERT INTO trace_data SELECT 'f', 1, link, zeroblob(15000000), sum FROM trace_data");
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_int64 now = 0, highest = 0;
  sqlite3_status64(SQLITE_STATUS_MEMORY_USED, &now, &highest, 1);
  EXPECT_TRUE(store.load_traces("f").empty());
  sqlite3_status64(SQLITE_STATUS_MEMORY_USED, &now, &highest, 0);
  EXPECT_LT(highest - now, 4'000'000);
  store.tidy();  // somebody else writes
  sqlite3_close(other);
  EXPECT_TRUE(store.load_traces("f").empty());
  store.tidy();
  EXPECT_EQ(store.stats().damaged, 4u);
  EXPECT_EQ(store.stats().traces, 0u);
  EXPECT_EQ(store.errors(), 0u);
}

}  // namespace
}  // namespace dalsegno::store
