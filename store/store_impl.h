// What the parts of Store share: the connection's life, and the one place where faults become misses. For store/*.cc only.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "store/place.h"
#include "store/schema.h"
#include "store/store.h"

namespace dalsegno::store {

inline constexpr auto kPatience = std::chrono::milliseconds(100);  // with another thread of this process
inline constexpr auto kPause = std::chrono::milliseconds(2);       // between two tries in the background
inline constexpr size_t kMaxKey = 1024, kMaxBlob = 16 << 20;
inline constexpr int32_t kMaxTraces = 4096;   // of one function
inline constexpr size_t kMaxTrace = 4 << 20;  // bytes
inline constexpr size_t kMaxTreeBytes = 32 << 20;

inline bool is_busy(int code) { return (code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_LOCKED; }

// One of several tries: a lock that another process holds is no fault unless it is the last one.
struct Try {
  bool last = true;
  std::optional<Fault> fault;
  bool busy() const { return fault && is_busy(fault->code); }
};

// Lets what must not wait long get in between queries, which may take long: a query looks every now and then if somebody is at the gate.
class Gate {
 public:
  void lock() { ++waiting_, mutex_.lock(), --waiting_; }
  void unlock() { mutex_.unlock(); }
  void forget_waiting() { waiting_ = 0; }  // in the child of a fork: their threads are not here
  std::unique_lock<std::mutex> for_query() { return std::unique_lock(mutex_); }
  const std::atomic<int>& waiting() const { return waiting_; }

 private:
  std::mutex mutex_;
  std::atomic<int> waiting_{0};
};

// Two connections. What a user's call waits for reads by `reader`, under read_mutex; everything else is done by `database`, under mutex. So
// a look-up waits for no transaction that another thread has in work. To connect is to open the reader and look at the file; `database`,
// for which SQLite would parse the schema once more, is opened by the first who needs it, hardly ever a user's call.
// Locks are taken in the order mutex, read_mutex, gate, sync_mutex. What both connections rest on (state, configured, options, place, pid)
// changes under both locks, and is read under one of them.
struct Store::Impl {
  enum class State : uint8_t { kClosed, kRefused, kUnconnected, kReady };

  Impl();
  ~Impl();

  // Runs `body` with the reader ready. Whatever goes wrong: counted, told, `otherwise`. For what a user's call waits for. A file that stays
  // locked costs the patience once: after that there is one try each, until one gets in.
  template <class T, class Body>
  T guarded(const T& otherwise, Body body) noexcept {
    Try attempt;
    if (std::unique_lock reading(read_mutex, kPatience); !reading.owns_lock()) {
      counters.errors++;
      return otherwise;
    } else if (state == State::kClosed || state == State::kRefused) {
      return otherwise;
    } else if (connected()) {
      T result = by_reader(otherwise, body, &attempt);
      if (attempt.busy()) note(*attempt.fault);
      if (!attempt.fault || attempt.busy()) return result;
    }
    return guarded_by_both(otherwise, body, std::move(attempt));
  }

  // Connects first, or deals with a fault that is not just a lock.
  template <class T, class Body>
  T guarded_by_both(const T& otherwise, Body& body, Try attempt) noexcept {
    std::unique_lock writing(mutex, kPatience);
    if (!writing.owns_lock()) {
      counters.errors++;
      return otherwise;
    }
    std::lock_guard reading(read_mutex);
    T result = otherwise;
    if (!attempt.fault && tried(
                              false, [&] { return ready(reader_stuck ? 0 : options.busy_ms); }, &attempt))
      result = by_reader(otherwise, body, &attempt);
    if (attempt.busy()) reader_stuck = true;
    if (attempt.fault) on_fault(*attempt.fault);
    return result;
  }

  // With read_mutex, connected.
  template <class T, class Body>
  T by_reader(const T& otherwise, Body& body, Try* attempt) noexcept {
    T result = tried(
        otherwise, [&] { return reader.patience(reader_stuck ? 0 : options.busy_ms), body(); }, attempt);
    reader_stuck = attempt->busy();
    return result;
  }

  // The same for what is done in the background, or what people ask, by `database`. Other threads of this process are waited for, as they
  // come to an end. Where another process has the file it is tried again; between two tries nobody is kept out. A file that stays locked
  // costs the patience once, as above.
  template <class T, class Body>
  // NOLINTNEXTLINE(bugprone-exception-escape): clang-tidy 14 takes what a lambda throws for thrown where it is written; tried() catches it
  T patiently(const T& otherwise, Body body) noexcept {
    std::unique_lock lock(mutex);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(stuck ? 0 : options.background_ms);
    for (;;) {
      Try attempt{.last = std::chrono::steady_clock::now() >= deadline, .fault = {}};
      T result = locked(otherwise, body, &attempt);
      if (attempt.last || !attempt.busy()) {
        stuck = attempt.busy();
        return result;
      }
      lock.unlock();
      std::this_thread::sleep_for(kPause);
      lock.lock();
    }
  }

  // Leaves something to tidy(), which does it in a transaction. Called without locks.
  void leave_undone(std::function<void(Impl&)> chore) noexcept {
    std::lock_guard reading(read_mutex);
    try {
      chores.push_back(std::move(chore));
      untidy = true;
    } catch (const std::exception&) {  // memory is short
    }
  }

  // What can as well be done another time: not done if anybody is in the way. Called without locks.
  template <class Body>
  void sometime(Body body) noexcept {
    std::unique_lock lock(mutex, std::try_to_lock);
    Try attempt{.last = false, .fault = {}};
    if (lock.owns_lock())
      locked(
          false, [&] { return body(), true; }, &attempt);
  }

  // One try, with mutex.
  template <class T, class Body>
  // NOLINTNEXTLINE(bugprone-exception-escape): clang-tidy 14 takes what a lambda throws for thrown where it is written; tried() catches it
  T locked(const T& otherwise, Body&& body, Try* attempt) noexcept {
    T result = otherwise;
    bool is_ready = connected();
    if (!is_ready) {
      std::lock_guard reading(read_mutex);
      is_ready = tried(
          false, [&] { return ready(0); }, attempt);
    }
    if (is_ready) {
      const auto by_database = [&] {
        open_database(0);
        database.patience(0), database.commit_ms = stuck ? 0 : options.busy_ms;
        return body();
      };
      result = tried(otherwise, by_database, attempt);
    }
    if (attempt->fault && (attempt->last || !attempt->busy())) {
      std::lock_guard reading(read_mutex);
      on_fault(*attempt->fault);
    }
    return result;
  }

  template <class T, class Body>
  T tried(const T& otherwise, Body&& body, Try* attempt) noexcept {
    try {
      return body();
    } catch (Fault& fault) {
      attempt->fault = std::move(fault);
    } catch (const std::exception&) {
      attempt->fault.emplace(SQLITE_NOMEM, "out of memory");
    }
    return otherwise;
  }

  bool connected() const;         // with either lock
  bool is_to_be_made() noexcept;  // there is no file yet. Called without locks
  // With both locks.
  bool ready(int busy_ms);  // connects if need be; false: no store
  bool connect(int busy_ms);
  void disconnect();
  void on_fault(const Fault& fault) noexcept;
  void refuse(const std::string& reason);
  bool open_once(int busy_ms);  // true: ready; false: refused, or (state kUnconnected) try once more
  SchemaState look_inside(int busy_ms);
  void open_reader(int busy_ms);
  void open_database(int busy_ms);         // with mutex, connected
  void note(const Fault& fault) noexcept;  // with read_mutex; counts it, and remembers it for why()

  // Space (space.cc). Inside a transaction.
  void make_room(uint64_t incoming);
  uint64_t used_bytes();
  void drop_function(const std::string& key);
  void drop_trace(const std::string& key, const Value& number);
  void forget_experience(const std::string& key);
  void delete_rows(const std::string& key, bool experience_alone);
  bool is_stale(Database& connection, const char* table, const std::string& key);  // was last used some time ago, as far as it is noted
  void touch(const char* table, const std::string& key);                           // notes that it was used

  struct Counters {
    std::atomic<uint64_t> hits, misses, saves, evictions, damaged, errors;
  };

  mutable std::timed_mutex mutex, read_mutex;
  Gate gate;              // held while `place` is looked at or a query runs
  std::mutex sync_mutex;  // held while the file is synced: it stays open meanwhile
  State state = State::kClosed;
  std::string configured;
  std::string reason;  // with read_mutex
  Options options;
  Place place;
  Database database, reader;
  pid_t pid;  // whose connections they are
  Counters counters{};
  std::vector<std::function<void(Impl&)>> chores;  // with read_mutex
  std::atomic<bool> untidy = false;                // there are some
  bool stuck = false, reader_stuck = false;        // the last to be patient gave up: the file stayed locked
};

int64_t now();  // seconds since 1970

// Rows for people about a trace (people.cc).
void describe_trace(Database& database, const std::string& function_key, const Trace& trace, int64_t bytes);

}  // namespace dalsegno::store
