// Functions of CUDA's driver interface that the virtual GPU does not implement. A program that is
// linked with the driver finds them, and starts; calling one is reported.
#include <algorithm>
#include <string_view>

#include "faces/program/redirect.h"
#include "faces/program/runtime_calls.h"

// NOLINTBEGIN(readability-identifier-naming): CUDA's names.
extern "C" {
#define ATUNNER_NOT_ANSWERED(name) \
  int name() { return atunner::program::NotAnswered(#name); }
#include "faces/program/driver_not_answered.def"
#undef ATUNNER_NOT_ANSWERED
}
// NOLINTEND(readability-identifier-naming)

namespace atunner::program {

bool IsDriverFunctionAnswered(std::string_view name) {
  constexpr std::string_view kNotAnswered[] = {
#define ATUNNER_NOT_ANSWERED(name) #name,
#include "faces/program/driver_not_answered.def"
#undef ATUNNER_NOT_ANSWERED
  };
  return std::ranges::find(kNotAnswered, name) == std::end(kNotAnswered);
}

}  // namespace atunner::program
