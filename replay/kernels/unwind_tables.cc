#include "replay/kernels/unwind_tables.h"

#include <elf.h>

#include <cstring>
#include <span>
#include <string_view>

namespace dalsegno::replay {
namespace {

// The section headers of an image in memory; none where it is no such file, or ends too early.
std::span<Elf64_Shdr> sections_of(std::string* image) {
  Elf64_Ehdr file;
  if (image->size() < sizeof file) return {};
  memcpy(&file, image->data(), sizeof file);
  if (memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 || file.e_ident[EI_CLASS] != ELFCLASS64 || file.e_shentsize != sizeof(Elf64_Shdr))
    return {};
  const size_t bytes = size_t{file.e_shnum} * sizeof(Elf64_Shdr);
  if (file.e_shoff > image->size() || bytes > image->size() - file.e_shoff || file.e_shoff % alignof(Elf64_Shdr) != 0) return {};
  if (file.e_shstrndx >= file.e_shnum) return {};
  return {reinterpret_cast<Elf64_Shdr*>(image->data() + file.e_shoff), file.e_shnum};
}

}  // namespace

std::string without_unwind_tables(std::string image) {
  const std::span<Elf64_Shdr> sections = sections_of(&image);
  if (sections.empty()) return image;
  const Elf64_Shdr& names = sections[reinterpret_cast<const Elf64_Ehdr*>(image.data())->e_shstrndx];
  constexpr std::string_view kTables(".eh_frame\0", 10);
  const auto is_tables = [&](const Elf64_Shdr& section) {
    const size_t at = names.sh_offset + section.sh_name;
    return at < image.size() && std::string_view(image).substr(at).starts_with(kTables);
  };
  for (size_t i = 0; i < sections.size(); ++i) {
    if (!is_tables(sections[i])) continue;
    sections[i].sh_type = SHT_NULL;
    sections[i].sh_flags = 0;
    for (Elf64_Shdr& other : sections)
      if ((other.sh_type == SHT_RELA || other.sh_type == SHT_REL) && other.sh_info == i) other.sh_type = SHT_NULL;
  }
  return image;
}

}  // namespace dalsegno::replay
