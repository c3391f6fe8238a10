#include "faces/program/redirect.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/files.h"
#include "faces/program/virtual_device.h"

namespace atunner::program {
namespace {

/// Functions that need no device: the program keeps its own.
constexpr std::string_view kHarmless[] = {"cudaGetErrorString", "cudaGetErrorName",
                                          "cudaCreateChannelDesc"};

/// Functions of CUDA that are not implemented here. Others that begin with "cuda" belong to the
/// program.
constexpr std::string_view kNotAnswered[] = {
#define ATUNNER_NOT_ANSWERED(name) #name,
#include "faces/program/not_answered.def"
#undef ATUNNER_NOT_ANSWERED
};

struct LoadedObject {
  std::string path;
  uintptr_t base = 0;
  std::vector<std::pair<uintptr_t, uintptr_t>> code;  ///< executable segments
};

struct Symbol {
  std::string name;
  uintptr_t address = 0;
};

int Note(dl_phdr_info* info, size_t, void* list) {
  LoadedObject object{info->dlpi_name, info->dlpi_addr, {}};
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X))
      object.code.emplace_back(begin, begin + segment.p_memsz);
  }
  static_cast<std::vector<LoadedObject>*>(list)->push_back(std::move(object));
  return 0;
}

std::vector<LoadedObject> LoadedObjects() {
  std::vector<LoadedObject> objects;
  dl_iterate_phdr(Note, &objects);
  if (!objects.empty() && objects.front().path.empty()) objects.front().path = "/proc/self/exe";
  return objects;
}

template <class T>
bool Read(const std::string& file, uint64_t at, T& value) {
  if (at > file.size() || sizeof value > file.size() - at) return false;
  std::memcpy(&value, file.data() + at, sizeof value);
  return true;
}

/// Functions of the object whose names have the prefix of CUDA's runtime.
std::vector<Symbol> RuntimeFunctions(const LoadedObject& object) {
  std::vector<Symbol> found;
  const auto file = ReadFile(object.path);
  Elf64_Ehdr header;
  if (!file || !Read(*file, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return found;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr table, names;
    if (!Read(*file, header.e_shoff + i * sizeof table, table) ||
        (table.sh_type != SHT_SYMTAB && table.sh_type != SHT_DYNSYM) ||
        !Read(*file, header.e_shoff + table.sh_link * sizeof names, names))
      continue;
    Elf64_Sym symbol;
    for (uint64_t at = 0;
         at + sizeof symbol <= table.sh_size && Read(*file, table.sh_offset + at, symbol);
         at += sizeof symbol) {
      const uint64_t name = names.sh_offset + symbol.st_name;
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF ||
          name >= file->size())
        continue;
      const char* text = file->data() + name;
      if (std::strncmp(text, "cuda", 4) == 0 || std::strncmp(text, "__cuda", 6) == 0)
        found.push_back({text, object.base + symbol.st_value});
    }
  }
  return found;
}

/// movabs rax, target; jmp rax
using Jump = std::array<unsigned char, 12>;
Jump JumpTo(uintptr_t target) {
  Jump jump{0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
  std::memcpy(jump.data() + 2, &target, sizeof target);
  return jump;
}

/// Writes code that calls NotAnswered with the name of a function.
class Refusals {
 public:
  Refusals() {
    page_ = static_cast<unsigned char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  uintptr_t Of(std::string_view name) {
    if (page_ == MAP_FAILED || used_ + kEach > kBytes) return 0;
    unsigned char* code = page_ + used_;
    used_ += kEach;
    const char* text = name.data();  // a literal, which ends with zero
    code[0] = 0x48;                  // movabs rdi, text
    code[1] = 0xbf;
    std::memcpy(code + 2, static_cast<const void*>(&text), sizeof text);
    const Jump jump = JumpTo(reinterpret_cast<uintptr_t>(&NotAnswered));
    std::memcpy(code + 10, jump.data(), jump.size());
    return reinterpret_cast<uintptr_t>(code);
  }

 private:
  static constexpr size_t kEach = 32, kBytes = 1 << 16;
  unsigned char* page_;
  size_t used_ = 0;
};

/// Where calls of this function are to go; 0 = they are not redirected.
uintptr_t TargetOf(std::string name, void* ours, Refusals& refusals) {
  // the variant of a function with one default stream per thread
  for (const char* suffix : {"_ptsz", "_ptds"}) {
    if (name.ends_with(suffix)) name.resize(name.size() - 5);
  }
  for (const std::string_view harmless : kHarmless) {
    if (name == harmless) return 0;
  }
  if (void* answer = dlsym(ours, name.c_str())) return reinterpret_cast<uintptr_t>(answer);
  for (const std::string_view unanswered : kNotAnswered) {
    if (name == unanswered) return refusals.Of(unanswered);
  }
  return 0;
}

bool Protect(uintptr_t begin, uintptr_t end, int protection) {
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  begin = begin / page * page;
  return mprotect(reinterpret_cast<void*>(begin), end - begin, protection) ==
         0;  // NOLINT(performance-no-int-to-ptr)
}

using Jumps = std::vector<std::pair<Symbol, uintptr_t>>;  // from, to

/// Overwrites the first instructions of the object's functions by jumps.
void Write(const Jumps& jumps, const LoadedObject& object) {
  for (const auto& [begin, end] : object.code) {
    if (!Protect(begin, end, PROT_READ | PROT_WRITE | PROT_EXEC)) continue;
    for (const auto& [symbol, target] : jumps) {
      const Jump jump = JumpTo(target);
      if (symbol.address < begin || symbol.address + jump.size() > end) continue;
      void* code = reinterpret_cast<void*>(symbol.address);  // NOLINT(performance-no-int-to-ptr)
      std::memcpy(code, jump.data(), jump.size());
    }
    Protect(begin, end, PROT_READ | PROT_EXEC);
  }
}

}  // namespace

int NotAnswered(const char* name) {
  VirtualDevice& virtual_device = VirtualDevice::Get();
  const std::lock_guard lock(virtual_device.mutex);
  return virtual_device.Misuse(kNotSupported,
                               std::string("the virtual GPU does not answer ") + name);
}

void RedirectRuntime() {
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(&RedirectRuntime), &self) == 0) return;
  void* ours = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (ours == nullptr) return;
  static Refusals refusals;
  for (const LoadedObject& object : LoadedObjects()) {
    if (object.base == reinterpret_cast<uintptr_t>(self.dli_fbase)) continue;
    Jumps jumps;
    for (Symbol& symbol : RuntimeFunctions(object)) {
      if (const uintptr_t target = TargetOf(symbol.name, ours, refusals))
        jumps.emplace_back(std::move(symbol), target);
    }
    if (!jumps.empty()) Write(jumps, object);
  }
}

}  // namespace atunner::program
