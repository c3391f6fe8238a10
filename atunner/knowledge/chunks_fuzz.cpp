// Documents of others: any text is divided, and no piece is much longer than asked for.
#include <cstdint>
#include <string>
#include <string_view>

#include "atunner/base/result.h"
#include "atunner/knowledge/chunks.h"

namespace atunner::knowledge {

void FuzzChunks(std::string_view text) {
  constexpr size_t kBytes = 64;
  for (const Chunk& chunk : ChunksOfMarkdown(TextOfHtml(text), kBytes))
    ATUNNER_CHECK(chunk.text.size() <= 11 * kBytes);
  for (const Chunk& chunk : ChunksOfMarkdown(text, kBytes))
    ATUNNER_CHECK(chunk.text.size() <= 11 * kBytes);
}

}  // namespace atunner::knowledge

#ifdef ATUNNER_FUZZER  // tests call the function above
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  atunner::knowledge::FuzzChunks({reinterpret_cast<const char*>(data), size});
  return 0;
}
#endif
