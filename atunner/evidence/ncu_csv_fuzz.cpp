// Fuzz target: ParseNcuCsv must take any bytes.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "atunner/evidence/ncu_csv.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)atunner::evidence::ParseNcuCsv({reinterpret_cast<const char*>(data), size});
  return 0;
}
