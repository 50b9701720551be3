// A kernel's text -> LLVM IR: each expression stage as a nest of loops, the innermost one over vectors. Halide, which has nothing to decide
// about such loops, takes 26 to 45 ms for a kernel, and 165 MB to be mapped first; LLVM alone takes 4 to 6 for the same machine code.
#pragma once
#include <string>

namespace dalsegno::halide_gen {

// False, with `error`, if the text is bad or holds what is not written so. The functions are those that compile() of codegen.h makes: stage
// i is <kernel_symbol(text)>_<i>_argv(void** arguments), whose arguments are halide_buffer_t of what is read, numbers by address, and
// halide_buffer_t of what is stored, in the stage's order. Any thread.
bool to_llvm(const std::string& text, std::string* ir, std::string* error);

}  // namespace dalsegno::halide_gen
