// A kernel's text -> object code, through Halide. Any thread; compilations in different threads may run at the same time.
#pragma once
#include <string>

namespace dalsegno::halide_gen {

// False, with `error`, if the text is bad or Halide refuses it. The object's symbols begin with kernel_symbol(text).
bool compile(const std::string& text, std::string* object, std::string* error);

// The target that kernels are compiled for, and Halide's version: part of every key.
std::string target_text();

}  // namespace dalsegno::halide_gen
