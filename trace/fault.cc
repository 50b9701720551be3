#include "trace/fault.h"

#include <iterator>

namespace dalsegno {

std::atomic<Fault> g_fault{Fault::none};

static constexpr const char* kNames[] = {
#define X(name, what) #name,
    DALSEGNO_FAULTS(X)
#undef X
};

bool plant(const std::string& name) {
  g_fault.store(Fault::none, std::memory_order_relaxed);
  if (name.empty()) return true;
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (name != kNames[i]) continue;
    g_fault.store(static_cast<Fault>(i), std::memory_order_relaxed);
    return true;
  }
  return false;
}

std::vector<std::string> faults() { return {std::begin(kNames) + 1, std::end(kNames)}; }

}  // namespace dalsegno
