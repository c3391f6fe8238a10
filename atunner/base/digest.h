// Content addresses. XXH3 (128 bits): fast and collision-free in practice; not a defence against an
// adversary.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace atunner {

/// A 128-bit content address, printed as 32 hexadecimal digits.
struct Digest {
  uint64_t high = 0;
  uint64_t low = 0;

  auto operator<=>(const Digest&) const = default;
  std::string ToHex() const;
};

Digest DigestOf(std::string_view bytes);

/// Digest of a list of fields; lengths are mixed in, so {"ab","c"} and {"a","bc"} differ.
Digest DigestOf(std::span<const std::string> fields);

}  // namespace atunner
