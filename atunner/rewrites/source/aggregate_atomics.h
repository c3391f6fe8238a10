// Adds up the values of a warp before one of its threads updates memory atomically.
#pragma once

#include "atunner/rewrites/rewrite.h"

namespace atunner::rewrites {

Result<std::vector<Proposal>> AggregateAtomics(const Subject& subject);

}  // namespace atunner::rewrites
