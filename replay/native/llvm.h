// LLVM IR to object code, or to assembly for people, through the C functions of the library in llvmlite's wheel (llvmlite/binding/*.py
// declares them). No Python.h.
#pragma once
#include <string>

namespace dalsegno::native {

enum class Output : int { kAssembly, kObject };  // in LLVM's numbers
enum class Effort : int { kQuick, kFull };  // the same; kQuick: a sixth of the time for the machine code, which takes twice as long to run

// `library`: libllvmlite, opened, its native target initialised. Code for this CPU, all its features, and nothing that changes bits: what
// the text does not allow is not done. False, with the reason in `error`. Any thread, one at a time for each `user`, who always has the
// same `features`, in LLVM's words, beside the CPU's.
constexpr int kUsers = 3;
bool compile(void* library, const std::string& ir, Output kind, Effort effort, int user, const std::string& features, std::string* out,
             std::string* error);
// Of text with functions that leave their callers' registers alone (preserve_allcc): LLVM would end those that save whole vectors by an
// instruction that clears the upper halves of all vector registers, those of the caller among them (seen in LLVM 20).
constexpr const char* kLeavesVectorsAlone = ",-vzeroupper";

}  // namespace dalsegno::native
