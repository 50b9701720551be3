#include "replay/resident.h"

#include <link.h>
#include <sys/mman.h>

#include <cstdint>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace dalsegno::replay {
namespace {

constexpr uintptr_t kPage = 4096;

// What cannot be populated (a kernel before 5.14) comes by page faults.
void populate(uintptr_t from, uintptr_t to, int how) {
  from &= ~(kPage - 1);
  if (from < to) madvise(reinterpret_cast<void*>(from), ((to - from) + kPage - 1) & ~(kPage - 1), how);
}

int look_at(dl_phdr_info* library, size_t, void*) {
  const auto here = reinterpret_cast<uintptr_t>(&make_resident);
  bool own = false;
  uintptr_t read_only_to = 0;  // what is written while the library is loaded, and then protected
  for (int k = 0; k < library->dlpi_phnum; ++k) {
    const ElfW(Phdr)& part = library->dlpi_phdr[k];
    const uintptr_t from = library->dlpi_addr + part.p_vaddr, to = from + part.p_memsz;
    own |= part.p_type == PT_LOAD && from <= here && here < to;
    if (part.p_type == PT_GNU_RELRO) read_only_to = to;
  }
  if (!own) return 0;
  for (int k = 0; k < library->dlpi_phnum; ++k) {
    const ElfW(Phdr)& part = library->dlpi_phdr[k];
    const uintptr_t from = library->dlpi_addr + part.p_vaddr, to = from + part.p_memsz;
    if (part.p_type != PT_LOAD) continue;
    if ((part.p_flags & PF_W) == 0) {
      populate(from, to, MADV_POPULATE_READ);
    } else {
      populate(read_only_to > from ? read_only_to : from, to, MADV_POPULATE_WRITE);
    }
  }
  return 1;
}

}  // namespace

void make_resident() { dl_iterate_phdr(look_at, nullptr); }

}  // namespace dalsegno::replay
