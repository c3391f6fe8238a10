// A foreign cubin, and a foreign log of ptxas.
#include <cstdint>
#include <string_view>

#include "atunner/compile/cubin.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto kernels = atunner::ReadCubin(bytes);
  if (!kernels) kernels.emplace().push_back({.entry = "k", .mangled = "k"});
  atunner::ApplySpills(bytes, *kernels);
  return 0;
}
