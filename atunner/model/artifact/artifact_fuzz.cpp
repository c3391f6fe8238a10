// A foreign artifact manifest; what is accepted can be written and is then accepted again, the
// same.
#include <cstdint>
#include <string_view>

#include "atunner/model/artifact/artifact.h"

namespace atunner {

void FuzzManifest(std::string_view text) {
  const auto artifact = ParseArtifactManifest(text, "manifest.json");
  if (!artifact) return;
  const std::string once = ArtifactManifest(*artifact);
  const auto again = ParseArtifactManifest(once, "manifest.json");
  if (again) ATUNNER_CHECK(ArtifactManifest(*again) == once);
}

}  // namespace atunner

#ifdef ATUNNER_FUZZER  // tests call the function above
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  atunner::FuzzManifest({reinterpret_cast<const char*>(data), size});
  return 0;
}
#endif
