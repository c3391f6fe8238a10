#include <cstdint>
#include <string_view>

#include "atunner/ptx/module.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)atunner::ptx::Parse({reinterpret_cast<const char*>(data), size});
  return 0;
}
