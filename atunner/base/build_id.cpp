#include "atunner/base/build_id.h"

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdio>
#include <cstring>

namespace atunner {
namespace {

size_t RoundedUp(size_t size, size_t to) { return (size + to - 1) / to * to; }

/// Looks through one segment of notes: a header, a name and a description each, aligned as the
/// segment is.
void FindIn(const std::byte* notes, size_t bytes, size_t alignment, std::string& id) {
  size_t at = 0;
  while (at + sizeof(ElfW(Nhdr)) <= bytes) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes + at, sizeof(note));
    const size_t name = at + sizeof(note), description = RoundedUp(name + note.n_namesz, alignment);
    if (description + note.n_descsz > bytes) return;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(notes + name, "GNU", 4) == 0) {
      for (size_t i = 0; i < note.n_descsz; ++i) {
        char hex[3];
        std::snprintf(hex, sizeof(hex), "%02x", std::to_integer<unsigned>(notes[description + i]));
        id += hex;
      }
      return;
    }
    at = RoundedUp(description + note.n_descsz, alignment);
  }
}

int FindInProgram(dl_phdr_info* object, size_t, void* id) {
  for (size_t i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader gives addresses as numbers
    const auto* notes = reinterpret_cast<const std::byte*>(object->dlpi_addr + segment.p_vaddr);
    FindIn(notes, segment.p_memsz, segment.p_align == 8 ? 8 : 4, *static_cast<std::string*>(id));
  }
  return 1;  // stops after the first object, which is the program
}

}  // namespace

std::string BuildId() {
  std::string id;
  dl_iterate_phdr(FindInProgram, &id);
  return id;
}

}  // namespace atunner
