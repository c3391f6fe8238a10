// Replaces the tree of a sum in shared memory by shuffles within warps.
#pragma once

#include "atunner/rewrites/rewrite.h"

namespace atunner::rewrites {

Result<std::vector<Proposal>> ShuffleTree(const Subject& subject);

}  // namespace atunner::rewrites
