// Fuzzes the readers of a program's device code: of a fat binary, and of the ELF file.
#include <cstdint>
#include <string_view>

#include "faces/program/fat_binary.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)atunner::program::ReadFatBinary(bytes);
  (void)atunner::program::PtxArchitectures(bytes);
  return 0;
}
