// The problem sizes that one binary is valid for: the dims that its source is not specialised on,
// and constraints on them.
#pragma once

#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/model/space/parameter_space.h"
#include "atunner/model/value/value.h"

namespace atunner {

/// Example: dims = {"rows"}, constraints = {"rows % 2 == 0"}: a kernel tuned for rows = 64, cols =
/// 256 may be launched for any even number of rows and 256 columns.
struct ValidSizes {
  /// Names of dims that may differ from the task's; the others are constants in the binary.
  std::vector<std::string> dims;
  /// Conditions over dims and attributes. All must hold at the wanted size.
  std::vector<Constraint> constraints;
};

/// Success when a kernel tuned for the sizes `tuned` may be launched for the sizes `wanted`; else
/// kInvalidInput with the first reason against it.
Status Serves(const ValidSizes& valid, const Dims& tuned, const Dims& wanted,
              const Attributes& attributes);

}  // namespace atunner
