// LLVM IR to object code, or to assembly for people, through the C functions of the library in llvmlite's wheel (llvmlite/binding/*.py
// declares them). No Python.h.
#pragma once
#include <string>

namespace dalsegno::native {

enum class Output : int { kAssembly, kObject };  // in LLVM's numbers
enum class Effort : int { kQuick, kFull };  // the same; kQuick: a sixth of the time for the machine code, which takes twice as long to run

// `library`: libllvmlite, opened, its native target initialised. Code for this CPU, all its features, and nothing that changes bits: what
// the text does not allow is not done. False, with the reason in `error`. Any thread, one at a time for each `user`.
constexpr int kUsers = 3;
bool compile(void* library, const std::string& ir, Output kind, Effort effort, int user, std::string* out, std::string* error);

}  // namespace dalsegno::native
