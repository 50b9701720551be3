// The store: traces and kernels that outlive the process, in one SQLite file. No Python.h here.
//
// Contract. Any fault (damaged, foreign, locked, full, read-only, missing, newer) is a miss: functions return false or nothing, count an
// error, say why() and never throw, crash or wait on others for more than about 50 ms, and that once while the file stays locked; what
// saves waits up to a second, likewise, without keeping readers out: neither waits for a disk. What a function returns was checked against
// the SHA-256 stored with it, over the key asked for and the value; damaged rows are deleted. Any thread may call at any time; one Store,
// or several on one file, in any number of processes. After a fork the child's store works on with a connection of its own. Keys are texts
// that name everything the value depends on; the store does not look into them. Format: docs/store.md.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/experience.h"
#include "store/pace.h"
#include "store/sqlite.h"
#include "trace/trace.h"

namespace dalsegno::store {

struct Options {
  uint64_t max_bytes = uint64_t{1} << 30;  // what was used longest ago is dropped beyond this
  int busy_ms = 50;                        // patience with another process's lock
  int background_ms = 1000;                // the same for all but open() and load_traces(), which a user's call waits for
  int page_size = 4096;                    // of a new file
};

struct Stats {
  uint64_t functions = 0, traces = 0, kernels = 0;  // in the file
  uint64_t bytes = 0;                               // of the file
  uint64_t hits = 0, misses = 0;                    // of load_traces and get_kernel, by this object
  uint64_t saves = 0, evictions = 0;                // traces and kernels written; functions and kernels dropped for space
  uint64_t damaged = 0;                             // rows or files found damaged
  uint64_t errors = 0;                              // faults of any kind
};

struct QueryResult {
  std::string error;  // SQLite's message, or why there is no store; "" = it went well
  std::vector<std::string> columns;
  std::vector<std::vector<Value>> rows;
};

struct VerifyResult {
  uint64_t rows = 0, damaged = 0;
  bool complete = false;  // false: a fault ended it early
};

// What a trace's side traces know it by: a digest of the bytes it is kept as.
std::string identity_of(const Trace& trace);

class Store {
 public:
  Store();
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // False if the store cannot be used (see why()); it may become usable by itself later if it was only busy. "" closes.
  bool open(const std::string& path, const Options& options = {});
  // The two parts of open(). What is configured is connected by the first who needs it; a look-up does not where there is no file, which
  // holds nothing: to make one takes longer than many a call of the user. Who writes makes it.
  void configure(const std::string& path, const Options& options = {});
  bool connect();
  void close();
  // Absolute path of the file in use; of one that could not be opened, as it was given; "" when closed.
  std::string path() const;
  // Why the last open or operation failed; "" if nothing did since open.
  std::string why() const;

  // Keeps a verified trace under its number. True also if exactly this trace is there already. False if another one has the number, and for
  // a side trace unless the trace known by `parent`, the very one it was recorded from, is what is kept under the parent's number: the
  // facts it relies on are those of its own parent, and another process may have kept another trace there. `name` (module.function) is for
  // people. *identity becomes identity_of(trace), kept or not; it stays as it is where there is no store.
  bool save_trace(const std::string& function_key, const Trace& trace, const std::string& name = "", const std::string& parent = "",
                  std::string* identity = nullptr);
  // All traces of a function's tree that are sound and fit each other, by number; numbers may have gaps. Each passed verify() and
  // verify_links(). *identities: what each is known by; *regions: what machine code there may be of them.
  std::vector<Trace> load_traces(const std::string& function_key, std::vector<std::string>* identities = nullptr,
                                 std::vector<KeptRegion>* regions = nullptr);
  // Replaces what was known of this loop. False, too, where there are no traces of the function.
  bool save_region(const std::string& function_key, const KeptRegion& region);
  // Deletes a function's whole tree: it was recorded about something that is not so any more.
  bool drop_function(const std::string& function_key);
  // What has been learned about a function so far replaces what was known. `name` as above.
  bool save_experience(const std::string& function_key, const Experience& experience, const std::string& name = "");
  // *has_traces: false if there are certainly none to load, which counts as a miss. One transaction asks for both.
  Experience load_experience(const std::string& function_key, bool* has_traces = nullptr);

  // Notes them beside the store (store/pace.h).
  bool note_paces(const std::vector<Pace>& paces);

  // What loading has found to be done, but not by a user's call that waits for it: bad rows to delete, a last use to note. Done by tidy(),
  // for which the caller should have time; not done where anybody is in the way.
  bool untidy() const;
  void tidy();

  bool put_kernel(const std::string& key, const std::string& object, const std::string& description);
  std::optional<std::string> get_kernel(const std::string& key);

  // What was kept survives the process's death as soon as the function that keeps it returns, and a power cut after this, which waits for
  // the disk and keeps nobody else waiting. Between the two a power cut may cost the whole file: it is then found damaged.
  void sync();

  // Deletes everything in the file.
  bool clear();
  // Checks the sum of every row and deletes the bad ones.
  VerifyResult verify();
  // Drops what was used longest ago until the cap is respected, and gives free space back to the file system.
  bool gc();
  Stats stats();
  uint64_t errors() const;  // Stats::errors without looking into the file
  // One statement that only reads, on a connection of its own that can do nothing else.
  QueryResult query(const std::string& sql);

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace dalsegno::store
