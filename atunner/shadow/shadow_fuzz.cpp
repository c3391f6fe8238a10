#include <cstdint>
#include <string>

#include "atunner/shadow/shadow.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)atunner::shadow::MakeShadow(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
