// What the parts of Store share: the connection's life, and the one place where faults become misses. For store/*.cc only.
#pragma once
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "store/place.h"
#include "store/schema.h"
#include "store/store.h"

namespace dalsegno::store {

inline constexpr auto kPatience = std::chrono::milliseconds(100);  // with another thread of this process
inline constexpr auto kPause = std::chrono::milliseconds(2);       // between two tries in the background
inline constexpr size_t kMaxKey = 1024, kMaxBlob = 64 << 20;
inline constexpr int32_t kMaxTraces = 4096;  // of one function
inline constexpr size_t kMaxTreeBytes = 256 << 20;

inline bool is_busy(int code) { return (code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_LOCKED; }

// One of several tries: a lock that another process holds is no fault unless it is the last one.
struct Try {
  bool last = true, busy = false;
};

struct Store::Impl {
  enum class State : uint8_t { kClosed, kRefused, kUnconnected, kReady };

  Impl();
  ~Impl();

  // Runs `body` with the connection ready. Whatever goes wrong: counted, told, `otherwise`. For what a user's call waits for.
  template <class T, class Body>
  T guarded(T otherwise, Body body) noexcept {
    std::unique_lock lock(mutex, kPatience);
    Try only;
    if (lock.owns_lock()) return locked(std::move(otherwise), body, &only);
    counters.errors++;
    return otherwise;
  }

  // The same for what is done in the background, or what people ask. Other threads of this process are waited for, as they come to an end.
  // Where another process has the file it is tried again; between two tries nobody is kept out. A file that stays locked costs the patience
  // once, not for everything that waits in line: after that there is one try each, until one gets in.
  template <class T, class Body>
  T patiently(const T& otherwise, Body body) noexcept {
    std::unique_lock lock(mutex);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(stuck ? 0 : options.background_ms);
    for (;;) {
      Try attempt{.last = std::chrono::steady_clock::now() >= deadline};
      T result = locked(otherwise, body, &attempt);
      if (attempt.last || !attempt.busy) {
        stuck = attempt.busy;
        return result;
      }
      lock.unlock();
      std::this_thread::sleep_for(kPause);
      lock.lock();
    }
  }

  template <class T, class Body>
  T locked(T otherwise, Body& body, Try* attempt) noexcept {
    try {
      return ready() ? body() : otherwise;
    } catch (const Fault& fault) {
      attempt->busy = is_busy(fault.code);
      if (attempt->last || !attempt->busy) on_fault(fault);
    } catch (const std::exception& e) {
      on_fault(Fault(SQLITE_NOMEM, e.what()));
    }
    return otherwise;
  }

  bool ready();  // connects if need be; false: no store
  bool connect();
  void disconnect();
  void on_fault(const Fault& fault) noexcept;
  void refuse(const std::string& reason);
  bool open_once();  // true: ready; false: refused, or (state kUnconnected) try once more

  // Space (space.cc). Inside a transaction.
  void make_room(uint64_t incoming);
  uint64_t used_bytes();
  void drop_function(const std::string& key);
  void drop_trace(const std::string& key, const Value& number);
  void touch(const char* table, const std::string& key);  // notes that it was used, now and then; faults do not matter

  struct Counters {
    std::atomic<uint64_t> hits, misses, saves, evictions, damaged, errors;
  };

  mutable std::timed_mutex mutex;
  State state = State::kClosed;
  std::string configured, reason;
  Options options;
  Place place;
  Database database;
  pid_t pid;  // whose connection it is
  Counters counters{};
  bool stuck = false;  // the last to be patient gave up: the file stayed locked
};

int64_t now();  // seconds since 1970

// Rows for people about a trace (people.cc).
void describe_trace(Database& database, const std::string& function_key, const Trace& trace, int64_t bytes);

}  // namespace dalsegno::store
