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
// Of text with functions that leave their callers' registers alone (preserve_allcc) and call C code, for which they save the registers that
// every x86-64 has: no more of them are in use, as the text has no vectors of more than 16 bytes. (Had these functions saved whole vectors,
// their upper halves would count as in use ever after, and C code compiled for any x86-64 then costs some 100 cycles a call on AMD's
// processors: Software Optimization Guide for Family 17h, 2.11.)
constexpr const char* kSixteenRegisters = ",-avx512f";

}  // namespace dalsegno::native
