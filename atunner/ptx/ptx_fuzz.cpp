#include <cstdint>
#include <string>
#include <vector>

#include "atunner/ptx/link.h"
#include "atunner/ptx/module.h"
#include "atunner/ptx/statements.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  (void)atunner::ptx::Parse(text);
  (void)atunner::ptx::Statements(text);
  if (const auto linked = atunner::ptx::Link(std::vector{text, text}))
    (void)atunner::ptx::Parse(*linked);
  return 0;
}
