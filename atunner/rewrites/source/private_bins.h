#pragma once

#include "atunner/rewrites/rewrite.h"

namespace atunner::rewrites {

/// Updates counters in shared memory, one copy a block, and adds them to those in memory once.
Result<std::vector<Proposal>> PrivateBins(const Subject& subject);

}  // namespace atunner::rewrites
