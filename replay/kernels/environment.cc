// What kernels' machine code depends on beside their text.
#include <HalideRuntime.h>

#include <cstdio>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "numpy/api.h"
#include "replay/kernels/config.h"

namespace dalsegno::replay {
namespace {

#define DALSEGNO_TEXT_(x) #x
#define DALSEGNO_TEXT(x) DALSEGNO_TEXT_(x)
constexpr const char* kHalide =
    DALSEGNO_TEXT(HALIDE_VERSION_MAJOR) "." DALSEGNO_TEXT(HALIDE_VERSION_MINOR) "." DALSEGNO_TEXT(HALIDE_VERSION_PATCH);

// Model and feature words; not names of features, so that none can be forgotten.
std::string cpu() {
#if defined(__x86_64__)
  std::string out = "x86-64";
  const unsigned leaves[][2] = {{1, 0}, {7, 0}, {7, 1}, {0xd, 1}, {0x80000001u, 0}};
  // A virtual machine takes 10 microseconds for each of these instructions: none is done twice.
  const unsigned most = __get_cpuid_max(0, nullptr), most_extended = __get_cpuid_max(0x80000000u, nullptr);
  bool xsave = false;
  for (const auto& leaf : leaves) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (leaf[0] <= (leaf[0] & 0x80000000u ? most_extended : most)) __cpuid_count(leaf[0], leaf[1], a, b, c, d);
    if (leaf[0] == 1) xsave = (c >> 27 & 1) != 0;
    if (leaf[0] == 1) b = 0;            // holds the number of the CPU this runs on
    if (leaf[0] == 0xd) b = c = d = 0;  // sizes of save areas
    char text[48];
    std::snprintf(text, sizeof text, " %08x%08x%08x%08x", a, b, c, d);
    out += text;
  }
  unsigned low = 0, high = 0;  // what the operating system lets programs use
  if (xsave) asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return out + " " + std::to_string(low);
#else
  return "other";
#endif
}

}  // namespace

std::string kernel_environment() {
  static const std::string text =
      "cpu " + cpu() + "\nhalide " + kHalide + "\nnumpy " + numpy::version() + "\ncodegen " DALSEGNO_CODEGEN "\n";
  return text;
}

}  // namespace dalsegno::replay
