#include "faces/recorder/cubin_symbols.h"

#include <elf.h>

#include <cstring>

namespace atunner::recorder {
namespace {

template <class T>
bool ReadAt(std::string_view bytes, uint64_t at, T& value) {
  if (at > bytes.size() || sizeof value > bytes.size() - at) return false;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return true;
}

std::string_view TextAt(std::string_view bytes, uint64_t at) {
  if (at >= bytes.size()) return "";
  const std::string_view text = bytes.substr(at);
  return text.substr(0, text.find('\0'));
}

class Elf {
 public:
  explicit Elf(std::string_view bytes) : bytes_(bytes) {}

  bool Open() {
    return ReadAt(bytes_, 0, header_) && std::memcmp(header_.e_ident, ELFMAG, SELFMAG) == 0 &&
           header_.e_ident[EI_CLASS] == ELFCLASS64 && Section(header_.e_shstrndx, names_);
  }
  unsigned sections() const { return header_.e_shnum; }
  bool Section(uint64_t i, Elf64_Shdr& section) const {
    return i < header_.e_shnum && header_.e_shoff < bytes_.size() &&
           ReadAt(bytes_, header_.e_shoff + i * sizeof section, section);
  }
  std::string_view NameOf(const Elf64_Shdr& section) const {
    return TextAt(bytes_, names_.sh_offset + section.sh_name);
  }
  std::string_view bytes() const { return bytes_; }

 private:
  std::string_view bytes_;
  Elf64_Ehdr header_{};
  Elf64_Shdr names_{};
};

void AddSymbol(const Elf& elf, const Elf64_Sym& symbol, std::string_view name,
               std::vector<ModuleSymbol>& found) {
  constexpr std::string_view kGlobal = ".nv.global", kConstant = ".nv.constant3";
  Elf64_Shdr section;
  if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_size == 0 || name.empty() ||
      name.starts_with('$') || !elf.Section(symbol.st_shndx, section))
    return;
  const std::string_view place = elf.NameOf(section);
  if (place.starts_with(kGlobal) || place == kConstant)
    found.push_back({std::string(name), place == kConstant});
}

}  // namespace

Result<std::vector<ModuleSymbol>> SymbolsOfCubin(std::string_view cubin) {
  Elf elf(cubin);
  if (!elf.Open()) return Invalid("the program's machine code is no ELF file");
  std::vector<ModuleSymbol> found;
  for (unsigned i = 0; i < elf.sections(); ++i) {
    Elf64_Shdr table, names;
    if (!elf.Section(i, table)) return Invalid("the program's machine code is cut off");
    if (table.sh_type != SHT_SYMTAB || !elf.Section(table.sh_link, names)) continue;
    Elf64_Sym symbol;
    for (uint64_t at = 0;
         at + sizeof symbol <= table.sh_size && ReadAt(cubin, table.sh_offset + at, symbol);
         at += sizeof symbol)
      AddSymbol(elf, symbol, TextAt(cubin, names.sh_offset + symbol.st_name), found);
  }
  return found;
}

}  // namespace atunner::recorder
