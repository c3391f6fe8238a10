// The families of random inputs that every candidate is checked on. docs/verification.md says which
// errors each of them reveals.
#pragma once

#include <cstdint>
#include <string_view>

namespace atunner {

enum class InputFamily : uint8_t {
#define ATUNNER_INPUT_FAMILY(id, name, meaning) id,
#include "atunner/verify/input_family.def"
#undef ATUNNER_INPUT_FAMILY
};

constexpr std::string_view Name(InputFamily family) {
  switch (family) {
#define ATUNNER_INPUT_FAMILY(id, name, meaning) \
  case InputFamily::id:                         \
    return name;
#include "atunner/verify/input_family.def"
#undef ATUNNER_INPUT_FAMILY
  }
  return "";
}

/// One set of values of all inputs. Equal instances give equal bytes on every device.
struct InputInstance {
  InputFamily family = InputFamily::kNormal;
  uint64_t seed = 1;
  bool mutated = false;  ///< one element of one input differs from the instance without this flag

  auto operator<=>(const InputInstance&) const = default;
};

}  // namespace atunner
