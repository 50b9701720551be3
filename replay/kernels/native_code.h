// A region's native code (replay/native): written as text and compiled, or taken from the cache, on a compile thread, and swapped in when
// ready. A loop waits for it: first it is compiled quickly, and then, behind that, once more as well as LLVM can.
#pragma once
#include <memory>
#include <string>

#include "replay/kernels/compile.h"
#include "replay/native/region.h"

namespace dalsegno::replay {

struct NativeCode final : CompileJob, std::enable_shared_from_this<NativeCode> {
  enum State : int { kWaiting, kReady, kFailed, kMissing, kTooLarge };
  // layout: stays as it is. only_kept: kMissing if it is not in the cache. kTooLarge: of a part there may be some.
  NativeCode(native::Region region, const native::Layout& layout, bool keep, bool only_kept)
      : region(std::move(region)), layout(layout), keep(keep), only_kept(only_kept) {}
  ~NativeCode() override;  // the code is unloaded before the next is loaded: nobody runs in it any more
  void compile() override;
  CompileKind kind() const override { return CompileKind::kLoop; }
  void refine();  // what runs already, on a compile thread
  // A larger region's is to take its place: it need not be refined. With the GIL. It stays, after all: it is.
  void outgrow() { outgrown.store(true, std::memory_order_relaxed); }
  void stay();

  // What is compiled: in the background, kQuick, then kFull; elsewhere kFull at once. Without `refine` kQuick alone.
  enum class Course : uint8_t { kQuickThenFull, kQuick, kFull };

  static constexpr const char* kSymbol = "dalsegno_region";
  static constexpr size_t kMostText = size_t{1} << 19;
  const native::Region region;
  const native::Layout& layout;
  const bool keep;  // may be taken from and put into the cache
  const bool only_kept;
  std::string of_function;  // by its key, if it is in the store
  store::KeptRegion of;     // what it is made of
  std::atomic<int> state{kWaiting};
  std::atomic<native::Function> function{nullptr};  // once it is ready
  Course course = Course::kFull;
  size_t text_size = 0;             // once it has been tried
  std::atomic<int64_t> entered{0};  // times that it has been run
  std::atomic<bool> outgrown{false};
  std::string failure;
  std::string text;                              // of what is to be refined
  Library *library = nullptr, *first = nullptr;  // first: what was compiled quickly, as long as somebody may run in it
};

// Asks for its compilation: on a compile thread or, where there is none, at once. With the GIL.
void compile_native(const std::shared_ptr<NativeCode>& code);

// For people: what LLVM makes of a region's text, or "" with the reason. With the GIL.
std::string native_assembly(const std::string& text, std::string* error);

// Of the process.
struct NativeTimes {
  uint64_t compiled = 0, loaded = 0;  // loaded: from the cache
  double milliseconds = 0, longest = 0;
};
NativeTimes native_times();

}  // namespace dalsegno::replay
