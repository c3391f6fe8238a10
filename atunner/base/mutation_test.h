// Damaged copies of good bytes: test inputs for readers of foreign data where no fuzzer runs.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "atunner/base/random.h"

namespace atunner {

/// One to four random changes: flipped, dropped, repeated or swapped pieces, numbers at their
/// limits, a cut end.
inline std::string Mutated(std::string_view good, Random& random) {
  static constexpr std::string_view kNasty[] = {"0",
                                                "-1",
                                                "9223372036854775807",
                                                "-9223372036854775808",
                                                "1e308",
                                                "null",
                                                "[]",
                                                "{}",
                                                "\"\"",
                                                "((((((((",
                                                "",
                                                "\\u0000",
                                                "**",
                                                "//",
                                                "%",
                                                "<<",
                                                "true",
                                                "\xff\xff\xff\xff"};
  std::string bytes(good);
  for (uint64_t changes = 1 + random.Below(4); changes > 0 && !bytes.empty(); --changes) {
    const size_t at = random.Below(bytes.size());
    const size_t length = std::min<size_t>(1 + random.Below(12), bytes.size() - at);
    const size_t other = random.Below(bytes.size());
    switch (random.Below(7)) {
      case 0:
        bytes[at] = static_cast<char>(random.Next());
        break;
      case 1:
        bytes.erase(at, length);
        break;
      case 2:
        bytes.insert(other, bytes.substr(at, length));
        break;
      case 3:
        bytes[at] = bytes[other];
        break;
      case 4:
        bytes.replace(at, length, kNasty[random.Below(std::size(kNasty))]);
        break;
      case 5:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.Below(8)));
        break;
      default:
        if (random.Below(8) == 0) bytes.resize(at);
    }
  }
  return bytes;
}

}  // namespace atunner
