// The conditions under which a place of a host function is reached.
#pragma once

#include <vector>

#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner {

/// `if (value)` or, with cases, `switch (value)`.
struct EnclosingCondition {
  TokenRange value;
  std::vector<TokenRange> cases;  ///< labels
  /// False: the place is where it does not hold, or where no label is met
  bool holds = true;
};

/// From the outside in. Loops are taken to be entered.
std::vector<EnclosingCondition> ConditionsAround(const CudaSyntax& syntax, TokenRange body,
                                                 size_t place);

}  // namespace atunner
