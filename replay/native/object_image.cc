#include "replay/native/object_image.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

namespace dalsegno::native {
namespace {

constexpr uint32_t kUnwindTables = 0x70000001;  // SHT_X86_64_UNWIND, which <elf.h> lacks
constexpr size_t kNowhere = SIZE_MAX;
constexpr size_t kMostAlign = 4096;

size_t up(size_t n, size_t align) { return (n + align - 1) & ~(align - 1); }

// What may be read of a file in memory.
class File {
 public:
  explicit File(std::string_view bytes) : bytes_(bytes) {}

  // `count` of them at `at`; nullopt: they lie outside.
  template <typename T>
  std::optional<std::vector<T>> read(size_t at, size_t count) const {
    if (at > bytes_.size() || count > (bytes_.size() - at) / sizeof(T)) return {};
    std::vector<T> items(count);
    if (count != 0) memcpy(items.data(), bytes_.data() + at, count * sizeof(T));
    return items;
  }
  std::optional<std::string_view> part(size_t at, size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) return {};
    return bytes_.substr(at, size);
  }

 private:
  const std::string_view bytes_;
};

// A name in a table of names that end in 0.
std::optional<std::string_view> name_at(std::string_view table, size_t at) {
  const size_t end = at < table.size() ? table.find('\0', at) : std::string_view::npos;
  if (end == std::string_view::npos) return {};
  return table.substr(at, end - at);
}

class Linker {
 public:
  explicit Linker(std::string_view object) : file_(object) {}

  // Where every section is to lie. False: it is not what this linker is for.
  bool plan() {
    const auto header = file_.read<Elf64_Ehdr>(0, 1);
    if (!header || memcmp(header->front().e_ident, ELFMAG, SELFMAG) != 0) return false;
    const Elf64_Ehdr& h = header->front();
    if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB || h.e_machine != EM_X86_64 || h.e_type != ET_REL ||
        h.e_shentsize != sizeof(Elf64_Shdr))
      return false;
    auto sections = file_.read<Elf64_Shdr>(h.e_shoff, h.e_shnum);
    if (!sections || !read_symbols(*sections)) return false;
    sections_ = std::move(*sections);
    offsets_.assign(sections_.size(), kNowhere);
    if (!place(true)) return false;
    size_ = code_size_ = up(size_, static_cast<size_t>(getpagesize()));
    return place(false) && size_ != 0;
  }

  bool fill(char* start) const {
    for (size_t i = 0; i < sections_.size(); ++i) {
      if (offsets_[i] == kNowhere) continue;
      const auto bytes = file_.part(sections_[i].sh_offset, sections_[i].sh_size);
      if (!bytes) return false;
      std::copy(bytes->begin(), bytes->end(), start + offsets_[i]);
    }
    return std::all_of(sections_.begin(), sections_.end(), [&](const Elf64_Shdr& section) { return relocate(section, start); });
  }

  void* address_of(std::string_view name, char* start) const {
    for (const Elf64_Sym& symbol : symbols_) {
      if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) continue;
      if (name_at(names_, symbol.st_name) == name) return std::bit_cast<void*>(value_of(symbol, start).value_or(0));
    }
    return nullptr;
  }

  size_t size() const { return size_; }
  size_t code_size() const { return code_size_; }

 private:
  bool read_symbols(const std::vector<Elf64_Shdr>& sections) {
    for (const Elf64_Shdr& section : sections) {
      if (section.sh_type != SHT_SYMTAB) continue;
      auto symbols = file_.read<Elf64_Sym>(section.sh_offset, section.sh_size / sizeof(Elf64_Sym));
      if (!symbols || section.sh_link >= sections.size()) return false;
      const auto names = file_.part(sections[section.sh_link].sh_offset, sections[section.sh_link].sh_size);
      if (!names) return false;
      symbols_ = std::move(*symbols), names_ = *names;
      return true;
    }
    return false;
  }

  // Gives sections that are code, or that are not, their places, one after the other.
  bool place(bool code) {
    for (size_t i = 0; i < sections_.size(); ++i) {
      const Elf64_Shdr& section = sections_[i];
      if (!(section.sh_flags & SHF_ALLOC) || section.sh_type == kUnwindTables) continue;
      if (code != ((section.sh_flags & SHF_EXECINSTR) != 0)) continue;
      if (section.sh_size == 0) {
        offsets_[i] = 0;
        continue;
      }
      const size_t align = std::max<size_t>(section.sh_addralign, 1);
      if (section.sh_type != SHT_PROGBITS || (section.sh_flags & (SHF_WRITE | SHF_TLS | SHF_COMPRESSED))) return false;
      if (!std::has_single_bit(align) || align > kMostAlign || !file_.part(section.sh_offset, section.sh_size)) return false;
      offsets_[i] = up(size_, align);
      size_ = offsets_[i] + section.sh_size;
    }
    return true;
  }

  // Nullopt: there is no such thing, or this linker does not know it.
  std::optional<uint64_t> value_of(const Elf64_Sym& symbol, char* start) const {
    const auto type = ELF64_ST_TYPE(symbol.st_info);
    if (type == STT_TLS || type == STT_GNU_IFUNC || type == STT_COMMON) return {};
    if (symbol.st_shndx == SHN_ABS) return symbol.st_value;
    if (symbol.st_shndx == SHN_UNDEF) {
      const auto name = name_at(names_, symbol.st_name);
      void* found = name && !name->empty() ? dlsym(RTLD_DEFAULT, std::string(*name).c_str()) : nullptr;
      if (!found) return {};
      return std::bit_cast<uint64_t>(found);
    }
    if (symbol.st_shndx >= offsets_.size() || offsets_[symbol.st_shndx] == kNowhere) return {};
    if (symbol.st_value > sections_[symbol.st_shndx].sh_size) return {};
    return std::bit_cast<uint64_t>(start + offsets_[symbol.st_shndx]) + symbol.st_value;
  }

  bool relocate(const Elf64_Shdr& table, char* start) const {
    if (table.sh_type != SHT_RELA && table.sh_type != SHT_REL) return true;
    if (table.sh_info >= sections_.size()) return false;
    const size_t base = offsets_[table.sh_info], size = sections_[table.sh_info].sh_size;
    if (base == kNowhere) return true;
    if (table.sh_type == SHT_REL) return false;
    const auto relocations = file_.read<Elf64_Rela>(table.sh_offset, table.sh_size / sizeof(Elf64_Rela));
    if (!relocations) return false;
    for (const Elf64_Rela& r : *relocations) {
      const auto type = ELF64_R_TYPE(r.r_info);
      const size_t number = ELF64_R_SYM(r.r_info);
      if ((type != R_X86_64_64 && type != R_X86_64_PC64) || number >= symbols_.size()) return false;
      if (size < sizeof(uint64_t) || r.r_offset > size - sizeof(uint64_t)) return false;
      const auto value = value_of(symbols_[number], start);
      if (!value) return false;
      char* const place = start + base + r.r_offset;
      const uint64_t from = type == R_X86_64_PC64 ? std::bit_cast<uint64_t>(place) : 0;
      const uint64_t word = *value + static_cast<uint64_t>(r.r_addend) - from;
      memcpy(place, &word, sizeof word);
    }
    return true;
  }

  const File file_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Sym> symbols_;
  std::string_view names_;
  std::vector<size_t> offsets_;  // of sections, in memory; kNowhere: they are not loaded
  size_t size_ = 0, code_size_ = 0;
};

}  // namespace

ObjectImage::~ObjectImage() { munmap(start_, size_); }

std::unique_ptr<ObjectImage> link_object(std::string_view object, std::span<const std::string> symbols, std::vector<void*>* addresses) {
  Linker linker(object);
  if (!linker.plan()) return nullptr;
  void* start = mmap(nullptr, linker.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  std::unique_ptr<ObjectImage> image(new ObjectImage(start, linker.size()));
  char* const bytes = static_cast<char*>(start);
  if (!linker.fill(bytes)) return nullptr;
  if (mprotect(bytes, linker.code_size(), PROT_READ | PROT_EXEC) != 0) return nullptr;
  if (mprotect(bytes + linker.code_size(), linker.size() - linker.code_size(), PROT_READ) != 0) return nullptr;
  __builtin___clear_cache(bytes, bytes + linker.code_size());
  addresses->clear();
  for (const std::string& symbol : symbols) addresses->push_back(linker.address_of(symbol, bytes));
  if (std::find(addresses->begin(), addresses->end(), nullptr) != addresses->end()) return nullptr;
  return image;
}

}  // namespace dalsegno::native
