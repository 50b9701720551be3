// Puts object files into the process: by native::link_object, or through LLVM's ORC in the library that llvmlite's wheel holds, which also
// compiles. The library is opened and called from here, without Python: importing llvmlite takes 60 to 70 ms with the GIL held, opening the
// library 7 to 25 without it. Its C functions are llvmlite's own (ffi/orcjit.cpp), so the version is pinned (pyproject.toml); a library
// that lacks them is an error, not a crash.
#pragma once
#include <string>
#include <vector>

#include "replay/kernels/compile.h"
#include "replay/kernels/table.h"
#include "replay/native/llvm.h"

namespace dalsegno::replay {

// Where the library is to be looked for, first of all: as sys.path says now. With the GIL, with no exception set; before open_loader().
void note_search_path();

// Opens the library and an ORC session, once for the process. False, with the reason in `error`. Without the GIL, which it takes for a
// moment, or the main thread has, and without locks that somebody may hold while waiting for the GIL. Any thread.
bool open_loader(std::string* error);

// Links an object file against what the process has loaded, libdalsegno_rt.so included; by LLVM, which is opened, only where that must be
// (native::link_object). `addresses` become those of `symbols`. The code is in memory until unload_object(). Null, with the reason in
// `error`. As open_loader().
Library* load_object(const std::string& object, const std::vector<std::string>& symbols, std::vector<void*>* addresses, std::string* error);
// LLVM IR as object code or assembly (replay/native/llvm.h). As open_loader(); holds llvm_mutex(kind).
bool compile_ir(const std::string& text, CompileKind kind, native::Output output, native::Effort effort, std::string* out,
                std::string* error);
// Nothing may run in the code, or keep an address of it, any more. With work_mutex().
void unload_object(Library* library);

// The launcher of libdalsegno_rt.so, which lies in lib/ beside the extension module and stays loaded, its symbols visible to kernels. One
// with the module's own suffix, as a version that was built alone has in a source tree, comes first.
// Null, with the reason in `error`. Any thread, with or without the GIL.
LaunchFunction load_launcher(std::string* error);

// The file of a Python package, found without importing it; "" if there is none. With the GIL.
std::string package_file(const char* package);
// The file of another extension module of this package, which lies beside this one. Needs no GIL.
std::string sibling_file(const char* module);

}  // namespace dalsegno::replay
