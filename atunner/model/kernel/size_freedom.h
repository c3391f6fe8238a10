// At which other problem sizes one binary is right: the dims its source is not specialised on, and
// what they must obey.
#pragma once

#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/model/space/parameter_space.h"
#include "atunner/model/value/value.h"

namespace atunner {

struct SizeFreedom {
  /// Names of dims that may differ from the task's; the others are baked in
  std::vector<std::string> dims;
  /// Over dims and attributes; all must hold at the wanted size
  std::vector<Constraint> constraints;
};

/// Success when a kernel made for `tuned` may be launched for `wanted`; else kInvalidInput with the
/// first obstacle.
Status Serves(const SizeFreedom& freedom, const Dims& tuned, const Dims& wanted,
              const Attributes& attributes);

}  // namespace atunner
