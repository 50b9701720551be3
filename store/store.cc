// The connection's life: opening, recovering from faults, forks.
#include "store/store.h"

#include <pthread.h>
#include <unistd.h>

#include <ctime>
#include <new>
#include <set>

#include "store/store_impl.h"

namespace dalsegno::store {
namespace {

// While a process forks no thread may be inside SQLite: the child would inherit its locks, as held by nobody.
struct Registry {
  std::mutex mutex;
  std::set<Store::Impl*> stores;

  static Registry& get() {
    static Registry* registry = new Registry;  // never destroyed: a fork may come at any time
    return *registry;
  }
  static void before() {
    get().mutex.lock();
    for (Store::Impl* store : get().stores) store->mutex.lock(), store->read_mutex.lock(), store->gate.lock();
  }
  static void after() {
    for (Store::Impl* store : get().stores) store->gate.unlock(), store->read_mutex.unlock(), store->mutex.unlock();
    get().mutex.unlock();
  }
  // A sync is not waited for: it holds none of SQLite's locks. Its thread is not here.
  static void after_in_child() {
    for (Store::Impl* store : get().stores) new (&store->sync_mutex) std::mutex, store->gate.forget_waiting();
    after();
  }
};

bool is_damage(int code) { return (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB; }

}  // namespace

int64_t now() { return static_cast<int64_t>(std::time(nullptr)); }

Store::Impl::Impl() : pid(getpid()) {
  static const int once = pthread_atfork(Registry::before, Registry::after, Registry::after_in_child);
  (void)once;
  std::lock_guard lock(Registry::get().mutex);
  Registry::get().stores.insert(this);
}

Store::Impl::~Impl() {
  std::lock_guard lock(Registry::get().mutex);
  Registry::get().stores.erase(this);
  disconnect();
}

void Store::Impl::disconnect() {
  std::lock_guard syncing(sync_mutex);
  for (Database* connection : {&database, &reader}) {
    if (pid != getpid()) connection->abandon();
    connection->close();
  }
}

// Not known where another thread has the lock. A relative path is looked at now, before the directory changes.
bool Store::Impl::is_to_be_made() noexcept {
  const std::unique_lock reading(read_mutex, std::try_to_lock);
  return reading.owns_lock() && state == State::kUnconnected && configured.starts_with('/') && is_missing(configured);
}

bool Store::Impl::connected() const { return state == State::kReady && pid == getpid(); }

void Store::Impl::refuse(const std::string& why) {
  disconnect();
  state = State::kRefused;
  reason = why;
  counters.errors++;
}

bool Store::Impl::ready(int busy_ms) {
  if (pid != getpid()) {
    disconnect();
    pid = getpid();
    if (state == State::kReady) state = State::kUnconnected;
  }
  if (state == State::kUnconnected) return connect(busy_ms);
  return state == State::kReady;
}

// A damaged or outdated file is set aside and a new one made: hence twice.
bool Store::Impl::connect(int busy_ms) {
  for (int attempts = 0; attempts < 2; attempts++) {
    try {
      if (open_once(busy_ms)) return true;
    } catch (const Fault& fault) {
      if (!is_damage(fault.code)) throw;
      on_fault(fault);
    }
    if (state == State::kRefused) return false;
  }
  refuse(reason.empty() ? "the store is damaged and could not be set aside" : reason);
  return false;
}

bool Store::Impl::open_once(int busy_ms) {
  disconnect();
  std::unique_lock looking(gate);
  place = prepare_place(configured);
  looking.unlock();
  if (!place.why.empty()) {
    refuse(place.why);
    return false;
  }
  const SchemaState schema = place.damaged ? SchemaState::kDamaged : look_inside(busy_ms);
  if (schema == SchemaState::kNewer || schema == SchemaState::kForeign) {
    refuse(place.path + (schema == SchemaState::kNewer ? " was written by a newer version; it is left alone"
                                                       : " is not a store of ours; it is left alone"));
    return false;
  }
  if (schema != SchemaState::kOurs) {
    counters.damaged += schema == SchemaState::kDamaged;
    disconnect();
    if (!set_aside(place, schema == SchemaState::kOlder ? ".old" : ".damaged"))
      refuse(place.path + " is damaged and could not be set aside");
    return false;
  }
  state = State::kReady;
  return true;
}

// It can write, to roll back what a killed process has left; its statements cannot.
void Store::Impl::open_reader(int busy_ms) {
  reader.open(place.path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW);
  reader.patience(busy_ms);
  reader.run("PRAGMA query_only=ON");
}

// Makes the schema where the file is empty.
SchemaState Store::Impl::look_inside(int busy_ms) {
  open_reader(busy_ms);
  const SchemaState found = schema_state(reader);
  if (found == SchemaState::kEmpty) {
    open_database(busy_ms);
    create_schema(database);
    return schema_state(reader);
  }
  if (found == SchemaState::kOurs && place.wal) {  // somebody's doing: `database` ends it, but only where nobody reads
    reader.close();
    open_database(busy_ms);
    open_reader(busy_ms);
  }
  return found;
}

// Another file may have been put in the place of the one that was looked at.
void Store::Impl::open_database(int busy_ms) {
  if (database.is_open()) return;
  if (!same_file(place)) throw Fault(SQLITE_READONLY_DBMOVED, place.path + " is another file now");
  try {
    database.open(place.path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW);
    database.patience(busy_ms), database.commit_ms = busy_ms;
    database.run("PRAGMA synchronous=OFF");  // everybody who reads would wait for a sync: sync() does it between transactions
    database.run("PRAGMA page_size=" + std::to_string(options.page_size));  // of a file without pages
    database.run("PRAGMA journal_mode=TRUNCATE");                           // a rollback journal, not WAL: see docs/store.md
    database.run("PRAGMA cache_spill=OFF");                                 // a transaction keeps readers out only while it commits
    const uint64_t pages = options.max_bytes / 10 * 11 / static_cast<uint64_t>(database.number("PRAGMA page_size")) + 1;
    database.run("PRAGMA max_page_count=" + std::to_string(pages));
  } catch (const std::exception&) {  // not half made
    database.close();
    throw;
  }
}

void Store::Impl::note(const Fault& fault) noexcept {
  counters.errors++;
  try {
    reason = fault.text;
  } catch (const std::exception&) {  // memory is short
  }
}

// Never throws: memory may be short.
void Store::Impl::on_fault(const Fault& fault) noexcept {
  note(fault);
  try {
    // The file was moved or deleted under us, or cannot be read: look again next time.
    const bool reconnect =
        fault.code == SQLITE_READONLY_DBMOVED || (fault.code & 0xff) == SQLITE_IOERR || (fault.code & 0xff) == SQLITE_CANTOPEN;
    if (!is_damage(fault.code) && !reconnect) return;
    disconnect();
    if (state == State::kReady) state = State::kUnconnected;
    if (!is_damage(fault.code)) return;
    counters.damaged++;
    if (!set_aside(place, ".damaged")) state = State::kRefused;
  } catch (const std::exception&) {
    disconnect();
    state = State::kRefused;
  }
}

Store::Store() : impl_(std::make_unique<Impl>()) {}
Store::~Store() = default;

void Store::configure(const std::string& path, const Options& options) {
  std::scoped_lock lock(impl_->mutex, impl_->read_mutex);
  impl_->disconnect();
  impl_->reason.clear();
  impl_->configured = path;
  impl_->options = options;
  impl_->state = path.empty() ? Impl::State::kClosed : Impl::State::kUnconnected;
  impl_->stuck = impl_->reader_stuck = false;
}

bool Store::connect() {
  return impl_->guarded(false, [] { return true; });
}

bool Store::open(const std::string& path, const Options& options) {
  configure(path, options);
  return connect();
}

void Store::close() { open(""); }

uint64_t Store::errors() const { return impl_->counters.errors; }

std::string Store::path() const {
  std::lock_guard lock(impl_->read_mutex);
  return impl_->state == Impl::State::kReady ? impl_->place.path : impl_->configured;
}

std::string Store::why() const {
  std::lock_guard lock(impl_->read_mutex);
  return impl_->state == Impl::State::kClosed ? "no store is configured" : impl_->reason;
}

// By SQLite's own handle of the file: to close another one would drop this process's locks (POSIX).
void Store::sync() {
  std::unique_lock lock(impl_->mutex);
  if (!impl_->connected() || !impl_->database.is_open()) return;
  sqlite3_file* file = nullptr;
  sqlite3_file_control(impl_->database.handle(), "main", SQLITE_FCNTL_FILE_POINTER, &file);
  if (file == nullptr || file->pMethods == nullptr) return;
  std::lock_guard syncing(impl_->sync_mutex);
  lock.unlock();
  file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
}

}  // namespace dalsegno::store
