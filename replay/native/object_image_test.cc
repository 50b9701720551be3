// Object files made by hand: what is linked, and what is left to LLVM.
#include "replay/native/object_image.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>

namespace dalsegno::native {
namespace {

constexpr int64_t kAnswer = 0x1122334455667788;
enum Section : uint16_t { kNone, kText, kData, kRela, kSymbols, kNames, kSections };
enum Symbol : uint32_t { kNoSymbol, kConstant, kFunction, kStrlen, kNobody, kSymbolCount };

// int64_t f() { return constant; }: its address is put into the code.
struct Object {
  std::string code = std::string("\x48\xb8\0\0\0\0\0\0\0\0\x48\x8b\x00\xc3", 14);  // movabs $constant, %rax; mov (%rax), %rax; ret
  std::string data = std::string(24, '\xcc');                                      // the constant is at 16, taken as 8 and 8
  std::string names = std::string("\0f\0strlen\0nobody_has_this\0", 25);
  Elf64_Ehdr header{};
  Elf64_Shdr sections[kSections]{};
  Elf64_Sym symbols[kSymbolCount]{};
  Elf64_Rela relocation{2, ELF64_R_INFO(kConstant, R_X86_64_64), 8};

  Object() {
    memcpy(data.data() + 16, &kAnswer, sizeof kAnswer);
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64, header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_machine = EM_X86_64, header.e_type = ET_REL;
    header.e_shentsize = sizeof(Elf64_Shdr), header.e_shnum = kSections;
    sections[kText] = section(SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 16);
    sections[kData] = section(SHT_PROGBITS, SHF_ALLOC, 8);
    sections[kRela] = section(SHT_RELA, 0, 8);
    sections[kRela].sh_info = kText, sections[kRela].sh_link = kSymbols;
    sections[kSymbols] = section(SHT_SYMTAB, 0, 8);
    sections[kSymbols].sh_link = kNames;
    sections[kNames] = section(SHT_STRTAB, 0, 1);
    symbols[kConstant] = symbol(0, STB_LOCAL, kData, 8);
    symbols[kFunction] = symbol(1, STB_GLOBAL, kText, 0);
    symbols[kStrlen] = symbol(3, STB_GLOBAL, SHN_UNDEF, 0);
    symbols[kNobody] = symbol(10, STB_GLOBAL, SHN_UNDEF, 0);
  }

  static Elf64_Shdr section(uint32_t type, uint64_t flags, uint64_t align) {
    Elf64_Shdr s{};
    s.sh_type = type, s.sh_flags = flags, s.sh_addralign = align;
    return s;
  }
  static Elf64_Sym symbol(uint32_t name, unsigned char bind, uint16_t section, uint64_t value) {
    Elf64_Sym s{};
    s.st_name = name, s.st_info = static_cast<unsigned char>(ELF64_ST_INFO(bind, STT_NOTYPE)), s.st_shndx = section, s.st_value = value;
    return s;
  }
  void needs(Symbol symbol, uint32_t type = R_X86_64_64) { relocation.r_info = ELF64_R_INFO(uint64_t{symbol}, type); }

  std::string bytes() {
    std::string out(sizeof header, '\0');
    const auto put = [&](Section to, const void* from, size_t size) {
      out.resize((out.size() + 15) & ~size_t{15});
      sections[to].sh_offset = out.size(), sections[to].sh_size = size;
      out.append(static_cast<const char*>(from), size);
    };
    put(kText, code.data(), code.size());
    put(kData, data.data(), data.size());
    put(kRela, &relocation, sizeof relocation);
    put(kSymbols, symbols, sizeof symbols);
    put(kNames, names.data(), names.size());
    out.resize((out.size() + 15) & ~size_t{15});
    header.e_shoff = out.size();
    out.append(reinterpret_cast<const char*>(sections), sizeof sections);
    memcpy(out.data(), &header, sizeof header);
    return out;
  }
};

std::unique_ptr<ObjectImage> link(const std::string& bytes, std::vector<void*>* addresses, const char* name = "f") {
  return link_object(bytes, std::vector<std::string>{name}, addresses);
}

bool links(Object& object, const char* name = "f") {
  std::vector<void*> addresses;
  return link(object.bytes(), &addresses, name) != nullptr;
}

TEST(ObjectImage, RunsWithTheAddressesItAsksFor) {
  Object object;
  std::vector<void*> addresses;
  const auto image = link(object.bytes(), &addresses);
  ASSERT_TRUE(image);
  EXPECT_EQ(reinterpret_cast<int64_t (*)()>(addresses[0])(), kAnswer);
}

TEST(ObjectImage, KnowsWhatTheProcessHas) {
  Object object;
  object.needs(kStrlen);
  object.relocation.r_addend = 0;
  object.code.replace(10, 3, "\xc3\x90\x90");  // gives the address itself
  std::vector<void*> addresses;
  const auto image = link(object.bytes(), &addresses);
  ASSERT_TRUE(image);
  const auto found = reinterpret_cast<size_t (*(*)())(const char*)>(addresses[0])();
  EXPECT_EQ(found("four"), 4U);
}

TEST(ObjectImage, LeavesToLlvmWhatItDoesNotKnow) {
  Object nobody;
  nobody.needs(kNobody);
  EXPECT_FALSE(links(nobody));
  Object near;
  near.needs(kConstant, R_X86_64_PC32);
  EXPECT_FALSE(links(near));
  Object written;
  written.sections[kData].sh_flags |= SHF_WRITE;
  EXPECT_FALSE(links(written));
  Object threads;
  threads.sections[kData].sh_flags |= SHF_TLS;
  EXPECT_FALSE(links(threads));
  Object zeros;
  zeros.sections[kData].sh_type = SHT_NOBITS;
  EXPECT_FALSE(links(zeros));
  Object chosen;
  chosen.symbols[kConstant].st_info = ELF64_ST_INFO(STB_LOCAL, STT_GNU_IFUNC);
  EXPECT_FALSE(links(chosen));
  Object other;
  other.header.e_machine = EM_AARCH64;
  EXPECT_FALSE(links(other));
  Object same;
  EXPECT_FALSE(links(same, "g"));
  EXPECT_FALSE(links(same, "strlen"));
  EXPECT_TRUE(links(same));
}

TEST(ObjectImage, WritesNothingOutsideItself) {
  for (const uint64_t at : {uint64_t{7}, uint64_t{14}, uint64_t{1} << 40, ~uint64_t{0}}) {
    Object object;
    object.relocation.r_offset = at;
    EXPECT_FALSE(links(object)) << at;
  }
}

TEST(ObjectImage, DamagedFilesAreNoFiles) {
  Object object;
  const std::string whole = object.bytes();
  std::vector<void*> addresses;
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(link(whole.substr(0, size), &addresses)) << size;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int bit : {0, 3, 7}) {
      std::string bent = whole;
      bent[at] = static_cast<char>(bent[at] ^ (1 << bit));
      link(bent, &addresses);  // whatever it is, it is read within its bounds
    }
  }
}

}  // namespace
}  // namespace dalsegno::native
