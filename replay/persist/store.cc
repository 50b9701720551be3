#include "replay/persist/store.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>

#include "store/place.h"
#include "store/sha256.h"

namespace dalsegno::replay {
namespace {

// Never destroyed, like the store itself.
struct Process {
  std::mutex mutex;
  store::Store store;
  std::string path;        // as configured
  bool opened = false;     // `store` has been told the file
  bool connected = false;  // and has looked at it, if only to refuse it
  std::vector<store::Pace> paces;
  bool paces_read = false;
  bool was_missing = false;  // the file, once: so all that it holds has been noted

  // The file's; "" if there is none.
  std::string file() const { return path.empty() ? store::default_path() : path == "off" ? "" : path; }
};

Process* g_process = nullptr;
void lock() { g_process->mutex.lock(); }
void unlock() { g_process->mutex.unlock(); }

Process& process() {
  static Process* made = [] {
    g_process = new Process;
    // After the store's own handlers, so that they run inside: nobody holds this lock, either, while the process forks.
    pthread_atfork(lock, unlock, unlock);
    return g_process;
  }();
  return *made;
}

// The key is a kernel's whole text with its environment: rows are found by its digest, and people read it as the description.
struct StoreKernelCache final : KernelCache {
  static std::string digest(const std::string& key) { return store::hex(store::sha256(key)); }

  bool get(const std::string& key, std::string* object) override {
    std::optional<std::string> found = process_store().get_kernel(digest(key));
    if (found) *object = std::move(*found);
    return found.has_value();
  }
  void put(const std::string& key, const std::string& object) override { process_store().put_kernel(digest(key), object, key); }
  void put_region(const std::string& function, const store::KeptRegion& region) override { process_store().save_region(function, region); }
};

}  // namespace

void use_store(const std::string& path) {
  Process& p = process();
  std::lock_guard lock(p.mutex);
  if (p.opened && path == p.path) return;
  p.store.close();
  p.path = path;
  p.opened = p.connected = p.paces_read = p.was_missing = false;
}

bool store_in_use(const std::string& path) {
  Process& p = process();
  std::lock_guard lock(p.mutex);
  return path == p.path;
}

store::Store& process_store() {
  Process& p = process();
  std::lock_guard lock(p.mutex);
  if (!p.opened) {
    p.opened = true;
    p.store.configure(p.file());
  }
  return p.store;
}

store::Store& connected_store() {
  store::Store& store = process_store();
  Process& p = process();
  std::lock_guard lock(p.mutex);
  if (!std::exchange(p.connected, true)) store.connect();
  return store;
}

bool store_opened() {
  Process& p = process();
  std::lock_guard lock(p.mutex);
  return p.opened;
}

std::vector<store::Pace> noted_paces(uint64_t function) {
  constexpr size_t kMost = 8;  // sizes
  Process& p = process();
  std::lock_guard lock(p.mutex);
  if (!p.paces_read) p.paces = store::read_paces(p.file());
  p.paces_read = true;
  std::vector<store::Pace> found;
  for (size_t i = p.paces.size(); i-- > 0 && found.size() < kMost;) {
    const store::Pace& pace = p.paces[i];
    const auto same = [&](const store::Pace& f) { return f.sizes == pace.sizes; };
    if (pace.function == function && std::none_of(found.begin(), found.end(), same)) found.push_back(pace);
  }
  return found;
}

bool never_noted(uint64_t function) {
  Process& p = process();
  std::lock_guard lock(p.mutex);
  const std::string file = p.file();
  if (!file.empty() && access(file.c_str(), F_OK) != 0 && errno == ENOENT)
    return p.was_missing = true;  // to make one takes ten milliseconds
  const std::vector<store::Pace> all = store::read_paces(file);
  return (p.was_missing || !all.empty()) &&
         std::none_of(all.begin(), all.end(), [&](const store::Pace& pace) { return pace.function == function; });
}

KernelCache& store_kernel_cache() {
  static StoreKernelCache* cache = new StoreKernelCache;
  return *cache;
}

}  // namespace dalsegno::replay
