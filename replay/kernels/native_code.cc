#include "replay/kernels/native_code.h"

#include <algorithm>
#include <chrono>

#include "replay/clock.h"
#include "replay/kernels/loader.h"
#include "replay/settings.h"
#include "store/sha256.h"

namespace dalsegno::replay {

NativeCode::~NativeCode() {
  unload_later(library);
  unload_later(first);
}

namespace {

std::mutex times_mutex;
NativeTimes times;

void count(bool loaded, double milliseconds) {
  const std::lock_guard<std::mutex> lock(times_mutex);
  ++(loaded ? times.loaded : times.compiled);
  times.milliseconds += milliseconds;
  times.longest = std::max(times.longest, milliseconds);
}

std::string key_of(const std::string& text) { return "native\n" + text + kernel_environment(); }
// (A text is long, and people can read it with what was compiled fully.)
std::string quick_key_of(const std::string& text) { return "native, compiled quickly\n" + store::hex(store::sha256(key_of(text))); }

// So that the next process begins with it.
void keep_for_later(const NativeCode& code, const std::string& key, const std::string& object) {
  const std::lock_guard<std::mutex> lock(work_mutex());
  keep_in_cache(key, object);
  if (!code.of_function.empty()) keep_region_in_cache(code.of_function, code.of);
}

void keep_quick(const NativeCode& code, const std::string& object) {
  try {
    if (code.keep) keep_for_later(code, quick_key_of(code.text), object);
  } catch (const std::bad_alloc&) {  // it is not kept
  }
}

// All that LLVM can.
bool compile_fully(const NativeCode& code, const std::string& text, CompileKind kind, std::string* object, std::string* error) {
  if (!compile_ir(text, kind, native::Output::kObject, native::Effort::kFull, object, error)) return false;
  if (code.keep) keep_for_later(code, key_of(text), *object);
  return true;
}

struct Made {
  std::string object;
  bool ok = false, loaded = false;
  native::Effort effort = native::Effort::kFull;
};

// What the cache has, or what LLVM makes of it.
Made make_object(const NativeCode& code, const std::string& text, std::string* error) {
  using Course = NativeCode::Course;
  Made made;
  if (text.empty()) return *error = "a register of two kinds", made;
  if (text.size() > NativeCode::kMostText) return *error = "the region is too large", made;
  made.ok = made.loaded = code.keep && cached(key_of(text), &made.object);
  if (made.ok) return made;
  if (code.course != Course::kFull) made.effort = native::Effort::kQuick;
  made.ok = made.loaded = code.keep && code.course == Course::kQuickThenFull && cached(quick_key_of(text), &made.object);
  if (made.ok || code.only_kept) return made;
  made.ok = code.course == Course::kFull
                ? compile_fully(code, text, CompileKind::kLoop, &made.object, error)
                : compile_ir(text, CompileKind::kLoop, native::Output::kObject, native::Effort::kQuick, &made.object, error);
  return made;
}

bool load(NativeCode* code, const std::string& object, Library** library, std::string* error) {
  std::vector<void*> addresses;
  *library = load_object(object, {NativeCode::kSymbol}, &addresses, error);
  if (*library) code->function.store(reinterpret_cast<native::Function>(addresses[0]), std::memory_order_release);
  return *library != nullptr;
}

struct Refinement final : CompileJob {
  explicit Refinement(std::weak_ptr<NativeCode> code) : code(std::move(code)) {}
  void compile() override {
    if (const std::shared_ptr<NativeCode> still = code.lock(); still && !still->outgrown) still->refine();
  }
  CompileKind kind() const override { return CompileKind::kRefined; }
  // (A region that has hardly been run is likely to be compiled again, with side traces that are still to come.)
  int64_t urgency() const override {
    constexpr int64_t kHardly = 24;
    const std::shared_ptr<NativeCode> still = code.lock();
    const int64_t entered = still ? still->entered.load(std::memory_order_relaxed) : kHardly;
    return entered < kHardly ? 0 : entered;
  }
  const std::weak_ptr<NativeCode> code;  // a larger region may have taken its place
};

void refine_later(std::weak_ptr<NativeCode> code) {
  try {
    compile_next(std::make_shared<Refinement>(std::move(code)));
  } catch (const std::bad_alloc&) {  // it stays as it is
  }
}

}  // namespace

void NativeCode::compile() {
  const auto start = std::chrono::steady_clock::now();
  Made made;
  try {
    text = native::to_ir(region, layout, kSymbol);
    text_size = text.size();
    made = make_object(*this, text, &failure);
    made.ok = made.ok && load(this, made.object, &library, &failure);
  } catch (const std::exception&) {  // no memory: the steps stay
    made.ok = false;
  }
  if (text_size > kMostText) return state.store(kTooLarge, std::memory_order_release);
  if (only_kept && !made.loaded) return state.store(kMissing, std::memory_order_release);
  count(made.loaded, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  const bool again = made.ok && made.effort == native::Effort::kQuick && course == Course::kQuickThenFull;
  if (again) std::swap(first, library);
  if (!again) text = {};
  state.store(made.ok ? kReady : kFailed, std::memory_order_release);
  if (!again) return;
  if (!made.loaded) keep_quick(*this, made.object);
  refine_later(weak_from_this());
}

void NativeCode::stay() {
  if (outgrown.exchange(false, std::memory_order_relaxed) && course == Course::kQuickThenFull) refine_later(weak_from_this());
}

// Where memory ends, or LLVM refuses, what there is stays.
void NativeCode::refine() {
  if (text.empty()) return;  // it has been
  give_way();
  try {
    std::string object, error;
    if (compile_fully(*this, text, CompileKind::kRefined, &object, &error)) load(this, object, &library, &error);
    text = {};
  } catch (const std::exception&) {
  }
}

std::string native_assembly(const std::string& text, std::string* error) {
  std::string assembly;
  without_gil([&] { compile_ir(text, CompileKind::kLoop, native::Output::kAssembly, native::Effort::kFull, &assembly, error); });
  return assembly;
}

NativeTimes native_times() {
  const std::lock_guard<std::mutex> lock(times_mutex);
  return times;
}

void compile_native(const std::shared_ptr<NativeCode>& code) {
  kernel_environment();  // asks NumPy, with the GIL, once
  using Course = NativeCode::Course;
  code->course = !settings().refine ? Course::kQuick : compiles_in_background() ? Course::kQuickThenFull : Course::kFull;
  if (compiles_in_background()) return compile_later(code);
  const Uncounted clock;
  without_gil([&] { code->compile(); });
}

}  // namespace dalsegno::replay
