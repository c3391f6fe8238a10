// Sections and symbols of a cubin, which is an ELF file. The bytes are untrusted: every offset
// is checked.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"

namespace atunner {

inline std::unexpected<Error> BrokenCubin(std::string_view what) {
  return Invalid("is not a valid cubin: " + std::string(what));
}

class Elf {
 public:
  static Result<Elf> Open(std::string_view bytes) {
    Elf elf;
    elf.bytes_ = bytes;
    Elf64_Ehdr header;
    if (!elf.Read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
      return BrokenCubin("no ELF header");
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_CUDA)
      return BrokenCubin("not a 64-bit CUDA file");
    for (uint64_t i = 0; i < header.e_shnum; ++i) {
      Elf64_Shdr section;
      if (!elf.Read(header.e_shoff + i * sizeof section, section))
        return BrokenCubin("section table is cut off");
      elf.sections_.push_back(section);
    }
    if (header.e_shstrndx >= elf.sections_.size()) return BrokenCubin("no section names");
    elf.names_ = elf.Bytes(elf.sections_[header.e_shstrndx]);
    return elf;
  }

  const std::vector<Elf64_Shdr>& sections() const { return sections_; }
  std::string_view NameOf(const Elf64_Shdr& section) const { return Text(names_, section.sh_name); }
  std::string_view Bytes(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS || section.sh_offset > bytes_.size()) return {};
    return bytes_.substr(section.sh_offset,
                         std::min<uint64_t>(section.sh_size, bytes_.size() - section.sh_offset));
  }
  static std::string_view Text(std::string_view table, uint64_t at) {
    if (at >= table.size()) return {};
    const size_t end = table.find('\0', at);
    return end == std::string_view::npos ? std::string_view{} : table.substr(at, end - at);
  }
  /// Names of all symbols, by index in the symbol table.
  std::vector<std::string_view> SymbolNames() const {
    std::vector<std::string_view> names;
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections_.size()) continue;
      const std::string_view table = Bytes(section);
      const std::string_view strings = Bytes(sections_[section.sh_link]);
      for (size_t at = 0; at + sizeof(Elf64_Sym) <= table.size(); at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        std::memcpy(&symbol, table.data() + at, sizeof symbol);
        names.push_back(Text(strings, symbol.st_name));
      }
      break;
    }
    return names;
  }

 private:
  template <class T>
  bool Read(uint64_t at, T& out) const {
    if (at > bytes_.size() || bytes_.size() - at < sizeof(T)) return false;
    std::memcpy(&out, bytes_.data() + at, sizeof(T));
    return true;
  }

  std::string_view bytes_;
  std::string_view names_;
  std::vector<Elf64_Shdr> sections_;
};

}  // namespace atunner
