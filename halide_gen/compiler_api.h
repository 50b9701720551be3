// What the capsule dalsegno._halide.compiler holds: _core reaches libHalide through it, and only when something must be compiled.
#pragma once
#include <string>

namespace dalsegno::halide_gen {

inline constexpr const char* kCompilerCapsule = "dalsegno._halide.compiler";

struct CompilerApi {
  bool (*compile)(const std::string& text, std::string* object, std::string* error);  // any thread, without the GIL
  std::string (*target)();
};

}  // namespace dalsegno::halide_gen
