// LLVM IR to object code, or to assembly for people, through the C functions of the library in llvmlite's wheel (llvmlite/binding/*.py
// declares them). No Python.h.
#pragma once
#include <string>

namespace dalsegno::native {

enum class Output : int { kAssembly, kObject };  // in LLVM's numbers

// `library`: libllvmlite, opened, its native target initialised. Code for this CPU, all its features, and nothing that changes bits: what
// the text does not allow is not done. False, with the reason in `error`. Any thread, one at a time.
bool compile(void* library, const std::string& ir, Output kind, std::string* out, std::string* error);

}  // namespace dalsegno::native
