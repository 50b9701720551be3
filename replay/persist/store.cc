#include "replay/persist/store.h"

#include <pthread.h>

#include <mutex>

#include "store/place.h"
#include "store/sha256.h"

namespace dalsegno::replay {
namespace {

// Never destroyed, like the store itself.
struct Process {
  std::mutex mutex;
  store::Store store;
  std::string path;  // as configured
  bool opened = false;
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
  void put(const std::string& key, const std::string& object, const std::string&) override {
    process_store().put_kernel(digest(key), object, key);
  }
};

}  // namespace

void use_store(const std::string& path) {
  Process& p = process();
  std::lock_guard lock(p.mutex);
  if (p.opened && path == p.path) return;
  p.store.close();
  p.path = path;
  p.opened = false;
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
    const std::string file = p.path.empty() ? store::default_path() : p.path == "off" ? "" : p.path;
    p.store.open(file);
  }
  return p.store;
}

KernelCache& store_kernel_cache() {
  static StoreKernelCache* cache = new StoreKernelCache;
  return *cache;
}

}  // namespace dalsegno::replay
