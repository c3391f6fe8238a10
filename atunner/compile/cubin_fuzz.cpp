// A foreign cubin, and a foreign log of ptxas.
#include <cstdint>
#include <string_view>

#include "atunner/compile/cubin.h"
#include "atunner/compile/machine_code.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto kernels = atunner::ReadCubin(bytes);
  if (!kernels) kernels.emplace().push_back({.entry = "k", .mangled = "k"});
  atunner::ApplySpills(bytes, *kernels);
  (void)atunner::ReadMachineCode(bytes, kernels->empty() ? "k" : kernels->front().mangled,
                                 "sm_90a");
  return 0;
}
