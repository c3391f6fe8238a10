// The families of random inputs that every candidate is checked on. docs/verification.md says which
// errors each of them reveals.
#pragma once

#include <cstdint>
#include <string_view>

#include "atunner/verify/code/mined_values.h"

namespace atunner {

enum class InputFamily : uint8_t {
#define ATUNNER_INPUT_FAMILY(id, name, meaning) id,
#include "atunner/verify/inputs/input_family.def"
#undef ATUNNER_INPUT_FAMILY
};

constexpr std::string_view Name(InputFamily family) {
  switch (family) {
#define ATUNNER_INPUT_FAMILY(id, name, meaning) \
  case InputFamily::id:                         \
    return name;
#include "atunner/verify/inputs/input_family.def"
#undef ATUNNER_INPUT_FAMILY
  }
  return "";
}

/// True for families whose results are compared although passing proves nothing: a constant may be
/// right, or little of the result can be compared. A wrong result is still wrong.
constexpr bool OnlyRefutes(std::string_view family) {
  return family == Name(InputFamily::kNan) || family == Name(InputFamily::kInfinities) ||
         family == Name(InputFamily::kZeros);
}
constexpr bool OnlyRefutes(InputFamily family) { return OnlyRefutes(Name(family)); }

/// True for families that look for no certain values.
constexpr bool IsGeneral(std::string_view family) {
#define ATUNNER_INPUT_FAMILY(id, name, meaning) \
  if (family == name) return InputFamily::id < InputFamily::kNan;
#include "atunner/verify/inputs/input_family.def"
#undef ATUNNER_INPUT_FAMILY
  return false;
}

/// One set of values of all inputs. Equal instances give equal bytes on every device.
struct InputInstance {
  InputFamily family = InputFamily::kNormal;
  uint64_t seed = 1;
  /// One element of one input differs from the instance without this flag. A NaN is in the second
  /// argument in place of the first.
  bool mutated = false;
  MinedValues mined;  ///< of InputFamily::kMined

  auto operator<=>(const InputInstance&) const = default;
};

}  // namespace atunner
