#pragma once

#include "atunner/rewrites/rewrite.h"

namespace atunner::rewrites {

/// Loads the elements a[i * 8 + 0 … 7] of thread i by accesses of 16 bytes, and stores those that
/// changed in the same way.
Result<std::vector<Proposal>> RowInRegisters(const Subject& subject);

}  // namespace atunner::rewrites
