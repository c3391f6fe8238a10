#include "atunner/base/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdio>

namespace atunner {

std::string Digest::ToHex() const {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(high),
                static_cast<unsigned long long>(low));
  return text;
}

Digest DigestOf(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

Digest DigestOf(std::span<const std::string> fields) {
  std::string joined;
  for (const std::string& field : fields) {
    joined += std::to_string(field.size());
    joined += ':';
    joined += field;
  }
  return DigestOf(joined);
}

}  // namespace atunner
