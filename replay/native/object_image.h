// Object code put into memory without LLVM, whose library takes 8 to 25 ms to open: what the store kept is there in a few pages' time.
// It serves what native::compile() makes on x86-64, code for addresses anywhere (LLVM's large code model): every address in it is 64 bits
// wide, so that it can lie wherever the kernel has room, and needs neither stubs nor a table of offsets (System V ABI, AMD64 supplement,
// 4.4). No Python.h.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dalsegno::native {

// Owns the memory: nothing may run in it, or keep an address of it, when it goes.
class ObjectImage {
 public:
  ~ObjectImage();
  ObjectImage(const ObjectImage&) = delete;

 private:
  friend std::unique_ptr<ObjectImage> link_object(std::string_view, std::span<const std::string>, std::vector<void*>*);
  ObjectImage(void* start, size_t size) : start_(start), size_(size) {}
  void* const start_;
  const size_t size_;
};

// Links an object file (ELF, 64 bits) against what the process has loaded. `addresses` become those of `symbols`. Null where it is anything
// but that, damaged, or needs what only a whole linker knows (data that is written, threads' variables, short addresses, a name that nobody
// has), or where memory may not be made executable. Tables for unwinding are left out (replay/kernels/unwind_tables.h). Any thread.
std::unique_ptr<ObjectImage> link_object(std::string_view object, std::span<const std::string> symbols, std::vector<void*>* addresses);

}  // namespace dalsegno::native
