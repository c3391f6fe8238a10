// Fuzzes the readers of a foreign cubin, of a kernel's name and of a report.
#include <cstdint>
#include <string>
#include <string_view>

#include "atunner/capture/comparison.h"
#include "faces/recorder/cubin_symbols.h"
#include "faces/recorder/order.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)atunner::recorder::SymbolsOfCubin(bytes);
  (void)atunner::capture::PointedTypes(bytes);
  (void)atunner::recorder::ReadAppliedReport(std::string(bytes));
  return 0;
}
