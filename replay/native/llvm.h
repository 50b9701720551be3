// LLVM IR to object code, through the C functions of the library in llvmlite's wheel (llvmlite/binding/*.py declares them). No Python.h.
#pragma once
#include <string>

namespace dalsegno::native {

// `library`: libllvmlite, opened, its native target initialised. Code for this CPU, all its features, and nothing that changes bits: what
// the text does not allow is not done. False, with the reason in `error`. Any thread, one at a time.
bool compile(void* library, const std::string& ir, std::string* object, std::string* error);

}  // namespace dalsegno::native
