// The conditions under which a statement of a host function is reached.
#pragma once

#include <vector>

#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner {

/// An `if (value)` or, with `cases`, a `switch (value)` around the statement.
struct EnclosingCondition {
  TokenRange value;
  std::vector<TokenRange> cases;  ///< the labels that lead to the statement
  /// False for an else branch, or if no label leads to the statement
  bool holds = true;
};

/// The conditions around the token `place`, outer ones first. Loop conditions do not count: loops
/// are assumed to be entered.
std::vector<EnclosingCondition> ConditionsAround(const CudaSyntax& syntax, TokenRange body,
                                                 size_t place);

}  // namespace atunner
