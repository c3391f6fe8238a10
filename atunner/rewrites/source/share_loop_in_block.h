// The warps of a block share a loop, where neighbouring threads read neighbouring elements already.
#pragma once

#include "atunner/rewrites/rewrite.h"

namespace atunner::rewrites {

/// Example: a thread adds up a column. 32 columns a block are as well coalesced, and each warp of
/// it takes every eighth row.
Result<std::vector<Proposal>> ShareLoopInBlock(const Subject& subject);

}  // namespace atunner::rewrites
