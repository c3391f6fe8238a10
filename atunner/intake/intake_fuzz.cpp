// Every importer on arbitrary bytes; the first byte chooses. What is accepted must also make a template or a message.
#include <cstddef>
#include <cstdint>
#include <string>

#include "atunner/intake/bare_source.h"
#include "atunner/intake/kernel_toml.h"
#include "atunner/intake/t1.h"
#include "atunner/intake/value_list.h"

namespace {

void Try(atunner::Result<atunner::UserKernel> kernel) {
  if (!kernel) return;
  const auto made = atunner::MakeUserTemplate(*kernel);
  if (made) (void)(*made)->Render((*made)->Default());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const atunner::FileReader any = [](const std::string&) {
    return atunner::Result<std::string>("__global__ void k() {}");
  };
  switch (data[0] % 4) {
    case 0:
      Try(atunner::ParseBareSource(text, "fuzz.cu", {.kernel = {}, .extra_tunables = true, .multiprocessors = 8}));
      break;
    case 1:
      Try(atunner::ParseKernelToml(text, "fuzz.toml", any));
      break;
    case 2:
      Try(atunner::ParseT1(text, "fuzz.json", any));
      break;
    default:
      (void)atunner::ParseValueList(text);
  }
  return 0;
}
