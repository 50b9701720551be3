// For the tests of store/: a directory of its own, raw SQL behind the store's back, files as bytes.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "store/schema.h"
#include "store/store.h"
#include "trace/samples.h"

namespace dalsegno::store::testing {

class TempDir {
 public:
  TempDir() {
    const char* chosen = getenv("TMPDIR");
    const char* base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";  // where syncing costs nothing
    std::string pattern = std::string(chosen != nullptr ? chosen : base) + "/dalsegno-store-XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }
  std::string file(const std::string& name = "test.sqlite3") const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// As anybody with the sqlite3 program could.
inline void raw_sql(const std::string& path, const std::string& sql) {
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
  char* message = nullptr;
  EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK) << (message ? message : "");
  sqlite3_free(message);
  sqlite3_close(handle);
}

inline std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  chmod(path.c_str(), 0600);
}

// A root trace, and a side trace that hangs on it.
inline Trace root_trace() { return dalsegno::testing::small_trace(); }
inline Trace side_trace(const Trace& parent, int32_t number) {
  Trace side = dalsegno::testing::small_trace();
  side.number = number;
  side.anchor = AnchorKind::exit;
  side.parent = parent.number;
  side.parent_op = 3;
  side.entry = parent.snapshot(0);
  return side;
}

// Runs `body` in a child; its result is the exit status.
template <class Body>
pid_t in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  return child;
}
inline int exit_status(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

}  // namespace dalsegno::store::testing
