// Runs every reader on arbitrary bytes. A kernel that is accepted must make a template or an error.
#include <cstddef>
#include <cstdint>
#include <string>

#include "atunner/intake/bare/bare_source.h"
#include "atunner/intake/described/kernel_toml.h"
#include "atunner/intake/described/t1.h"
#include "atunner/intake/rewrite/source_headers.h"
#include "atunner/intake/value_list.h"

namespace atunner {
namespace {

bool Use(Result<UserKernel> kernel) {
  if (!kernel) return false;
  const auto made = MakeUserTemplate(*kernel);
  return made && (*made)->Render((*made)->Default());
}

}  // namespace

/// True if any reader makes a kernel of `text`.
bool FuzzIntake(const std::string& text) {
  const FileReader any = [](const std::string&) {
    return Result<std::string>("__global__ void k() {}");
  };
  (void)ParseValueList(text);
  (void)WithHeaders(text, "fuzz.cu", any);
  const bool bare = Use(ParseBareSource(
      text, "fuzz.cu", {.kernel = {}, .extra_tunables = true, .multiprocessors = 8}));
  const bool toml = Use(ParseKernelToml(text, "fuzz.toml", any));
  const bool t1 = Use(ParseT1(text, "fuzz.json", any));
  return bare || toml || t1;
}

}  // namespace atunner

#ifdef ATUNNER_FUZZER  // tests call the function above
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)atunner::FuzzIntake({reinterpret_cast<const char*>(data), size});
  return 0;
}
#endif
