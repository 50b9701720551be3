// Places that are refused, and files that are not ours.
#include "store/place.h"

#include <fcntl.h>

#include "store/testing.h"

namespace dalsegno::store {
namespace {

using namespace testing;

// A refusal is a miss with a reason, and changes nothing.
void expect_refused(const std::string& path, const std::string& why) {
  Store store;
  EXPECT_FALSE(store.open(path));
  EXPECT_NE(store.why().find(why), std::string::npos) << store.why();
  EXPECT_FALSE(store.put_kernel("k", "object", ""));
  EXPECT_FALSE(store.get_kernel("k").has_value());
  EXPECT_TRUE(store.load_traces("f").empty());
  EXPECT_FALSE(store.clear());
  EXPECT_GT(store.stats().errors, 0u);
}

TEST(Place, FileModes) {
  TempDir directory;
  Store store;
  ASSERT_TRUE(store.open(directory.file()));
  ASSERT_TRUE(store.put_kernel("k", "object", ""));
  struct stat info;
  ASSERT_EQ(stat(directory.file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(stat(directory.file("test.sqlite3-journal").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST(Place, DefaultPlace) {
  TempDir directory;
  unsetenv("DALSEGNO_STORE");
  setenv("XDG_CACHE_HOME", (directory.path() + "/a/cache").c_str(), 1);
  EXPECT_EQ(default_path(), directory.path() + "/a/cache/dalsegno/store.sqlite3");
  Store store;
  EXPECT_TRUE(store.open(default_path())) << store.why();
  struct stat info;
  ASSERT_EQ(stat((directory.path() + "/a/cache/dalsegno").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  EXPECT_TRUE(read_bytes(directory.path() + "/a/cache/dalsegno/CACHEDIR.TAG").starts_with("Signature: 8a477f597d28d172789f06886806bc55"));
  setenv("XDG_CACHE_HOME", "relative", 1);
  setenv("HOME", "/home/somebody", 1);
  EXPECT_EQ(default_path(), "/home/somebody/.cache/dalsegno/store.sqlite3");
  setenv("DALSEGNO_STORE", "/elsewhere/s.db", 1);
  EXPECT_EQ(default_path(), "/elsewhere/s.db");
  setenv("DALSEGNO_STORE", "off", 1);
  EXPECT_EQ(default_path(), "");
  unsetenv("DALSEGNO_STORE");
}

TEST(Place, RefusedPlaces) {
  TempDir directory;
  const std::string real = directory.file("real"), file = real + "/s.db";
  ASSERT_EQ(mkdir(real.c_str(), 0700), 0);
  expect_refused(directory.file("missing/s.db"), "No such file");
  expect_refused(real + "/", "names no file");
  ASSERT_EQ(symlink(real.c_str(), directory.file("link").c_str()), 0);
  expect_refused(directory.file("link/s.db"), "symbolic link");
  ASSERT_EQ(symlink("/etc/passwd", (real + "/l.db").c_str()), 0);
  expect_refused(real + "/l.db", "symbolic link");
  ASSERT_EQ(mkfifo((real + "/fifo").c_str(), 0600), 0);
  expect_refused(real + "/fifo", "no regular file");
  expect_refused(directory.path(), "written to by others");  // it is the parent that is looked at first
  chmod(real.c_str(), 0770);
  expect_refused(file, "written to by others");
  chmod(real.c_str(), 0700);
  ASSERT_EQ(mkdir((real + "/deep").c_str(), 0700), 0);
  chmod(real.c_str(), 0777);
  expect_refused(real + "/deep/s.db", "written to by others");
  chmod(real.c_str(), 0700);
  EXPECT_FALSE(std::filesystem::exists(file));

  Store store;
  ASSERT_TRUE(store.open(file));
  store.close();
  chmod(file.c_str(), 0660);
  expect_refused(file, "written to by others");
  chmod(file.c_str(), 0600);
  ASSERT_EQ(link(file.c_str(), (real + "/second").c_str()), 0);
  expect_refused(file, "another name");
  unlink((real + "/second").c_str());
  unlink((file + "-journal").c_str());  // an empty one, if any: nothing is under way
  ASSERT_EQ(symlink("/tmp/elsewhere", (file + "-journal").c_str()), 0);
  expect_refused(file, "symbolic link");
}

TEST(Place, OtherUsersFilesAreRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give files away";
  TempDir directory;
  ASSERT_EQ(mkdir(directory.file("d").c_str(), 0700), 0);
  ASSERT_EQ(chown(directory.file("d").c_str(), 12345, 12345), 0);
  expect_refused(directory.file("d/s.db"), "belongs to another user");
  write_bytes(directory.file("s.db"), "");
  ASSERT_EQ(chown(directory.file("s.db").c_str(), 12345, 12345), 0);
  expect_refused(directory.file("s.db"), "belongs to another user");
}

TEST(Place, ForeignFilesAreLeftAlone) {
  TempDir directory;
  const std::string file = directory.file();
  auto untouched = [&](const std::string& why) {
    const std::string before = read_bytes(file);
    expect_refused(file, why);
    EXPECT_EQ(read_bytes(file), before);
  };
  raw_sql(file, "CREATE TABLE theirs(x); INSERT INTO theirs VALUES(1)");
  untouched("left alone");
  raw_sql(file, "PRAGMA application_id=42");
  untouched("left alone");
  write_bytes(file, "dear diary");
  untouched("left alone");
  write_bytes(file, std::string(5000, '\0'));
  untouched("left alone");
}

TEST(Place, ForeignDatabaseUnderOurNameIsLeftAlone) {
  TempDir directory;
  ASSERT_EQ(mkdir(directory.file("dalsegno").c_str(), 0700), 0);
  const std::string file = directory.file("dalsegno/store.sqlite3");
  raw_sql(file, "PRAGMA application_id=42; CREATE TABLE theirs(x)");
  const std::string before = read_bytes(file);
  expect_refused(file, "left alone");
  EXPECT_EQ(read_bytes(file), before);
  write_bytes(file, "garbage, but at our own place");
  Store store;
  EXPECT_TRUE(store.open(file)) << store.why();
  EXPECT_TRUE(store.put_kernel("k", "object", ""));
  EXPECT_EQ(read_bytes(file + ".damaged"), "garbage, but at our own place");
}

TEST(Place, NewerIsLeftAloneOlderIsSetAside) {
  TempDir directory;
  const std::string file = directory.file();
  Store store;
  ASSERT_TRUE(store.open(file));
  ASSERT_TRUE(store.put_kernel("k", "object", ""));
  store.close();
  raw_sql(file, "PRAGMA user_version=99");
  const std::string before = read_bytes(file);
  expect_refused(file, "newer version");
  EXPECT_EQ(read_bytes(file), before);
  raw_sql(file, "PRAGMA user_version=0");
  ASSERT_TRUE(store.open(file)) << store.why();
  EXPECT_FALSE(store.get_kernel("k").has_value());
  EXPECT_TRUE(std::filesystem::exists(file + ".old"));
}

// A schema with anything added (a trigger, a view over our table's name) is not used.
TEST(Place, HostileSchemaIsSetAside) {
  TempDir directory;
  const std::string file = directory.file();
  for (const char* sql : {"CREATE TRIGGER t AFTER INSERT ON kernels BEGIN DELETE FROM kernels; END", "CREATE TABLE more(x)",
                          "DROP TABLE kernels", "DROP VIEW ops; CREATE TABLE ops(number)", "CREATE INDEX i ON kernels(created)"}) {
    Store store;
    ASSERT_TRUE(store.open(file));
    ASSERT_TRUE(store.put_kernel("k", "object", ""));
    store.close();
    raw_sql(file, sql);
    EXPECT_TRUE(store.open(file)) << store.why();
    EXPECT_FALSE(store.get_kernel("k").has_value()) << sql;
    EXPECT_TRUE(store.put_kernel("k", "object", ""));
    EXPECT_TRUE(store.get_kernel("k").has_value());
    EXPECT_TRUE(std::filesystem::exists(file + ".damaged"));
  }
}

// As another user, because root may write everything.
TEST(Place, ReadOnlyFileIsReadAndNotWritten) {
  TempDir directory;
  const std::string file = directory.file("d/s.db");
  ASSERT_EQ(mkdir(directory.file("d").c_str(), 0700), 0);
  chmod(directory.path().c_str(), 0755);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(directory.file("d").c_str(), 12345, 12345), 0);
  }
  const pid_t child = in_child([&] {
    if (geteuid() == 0 && (setgid(12345) != 0 || setuid(12345) != 0)) return 1;
    Store store;
    if (!store.open(file) || !store.put_kernel("k", "object", "")) return 2;
    store.close();
    chmod(file.c_str(), 0400);
    chmod(directory.file("d").c_str(), 0500);
    if (!store.open(file)) return 3;
    if (store.get_kernel("k") != "object") return 4;
    if (store.put_kernel("l", "object", "")) return 5;
    if (store.get_kernel("k") != "object") return 6;
    if (store.stats().errors != 1) return 7;
    chmod(directory.file("d").c_str(), 0700);
    return 0;
  });
  EXPECT_EQ(exit_status(child), 0);
}

}  // namespace
}  // namespace dalsegno::store
