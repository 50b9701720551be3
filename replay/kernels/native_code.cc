#include "replay/kernels/native_code.h"

#include <algorithm>
#include <chrono>

#include "replay/clock.h"
#include "replay/kernels/loader.h"

namespace dalsegno::replay {

NativeCode::~NativeCode() { unload_later(library); }

namespace {

std::mutex times_mutex;
NativeTimes times;

void count(bool loaded, double milliseconds) {
  const std::lock_guard<std::mutex> lock(times_mutex);
  ++(loaded ? times.loaded : times.compiled);
  times.milliseconds += milliseconds;
  times.longest = std::max(times.longest, milliseconds);
}

// What the cache has, or what LLVM makes of it.
bool make_object(const NativeCode& code, const std::string& text, std::string* object, bool* loaded, std::string* error) {
  if (text.empty()) return *error = "a register of two kinds", false;
  if (text.size() > NativeCode::kMostText) return *error = "the region is too large", false;
  const std::string key = "native\n" + text + kernel_environment();
  if ((*loaded = code.keep && cached(key, object)) || code.only_kept) return *loaded;
  if (!open_loader(error)) return false;
  std::lock_guard<std::mutex> lock(work_mutex());
  if (!compile_ir(text, native::Output::kObject, object, error)) return false;
  if (code.keep) keep_in_cache(key, *object, text);
  return true;
}

bool load(NativeCode* code, const std::string& object, std::string* error) {
  if (!open_loader(error)) return false;
  std::vector<void*> addresses;
  std::lock_guard<std::mutex> lock(work_mutex());
  unload_unused();
  if (!load_object(object, {NativeCode::kSymbol}, &addresses, &code->library, error)) return false;
  code->function = reinterpret_cast<native::Function>(addresses[0]);
  return true;
}

}  // namespace

void NativeCode::compile() {
  const auto start = std::chrono::steady_clock::now();
  std::string object;
  bool ok = false, loaded = false;
  try {
    const std::string text = native::to_ir(region, layout, kSymbol);
    text_size = text.size();
    ok = make_object(*this, text, &object, &loaded, &failure) && load(this, object, &failure);
  } catch (const std::exception&) {  // no memory: the steps stay
  }
  if (text_size > kMostText) return state.store(kTooLarge, std::memory_order_release);
  if (only_kept && !loaded) return state.store(kMissing, std::memory_order_release);
  count(loaded, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  state.store(ok ? kReady : kFailed, std::memory_order_release);
}

std::string native_assembly(const std::string& text, std::string* error) {
  std::string assembly;
  without_gil([&] {
    if (!open_loader(error)) return;
    const std::lock_guard<std::mutex> lock(work_mutex());
    compile_ir(text, native::Output::kAssembly, &assembly, error);
  });
  return assembly;
}

NativeTimes native_times() {
  const std::lock_guard<std::mutex> lock(times_mutex);
  return times;
}

void compile_native(const std::shared_ptr<NativeCode>& code) {
  kernel_environment();  // asks NumPy, with the GIL, once
  if (compiles_in_background()) return compile_later(code);
  const Uncounted clock;
  without_gil([&] { code->compile(); });
}

}  // namespace dalsegno::replay
