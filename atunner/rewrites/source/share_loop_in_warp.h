// Shares the loops of a thread among the lanes of a warp, and joins their results by shuffles. What
// was the work of a thread becomes that of a warp: its loads are neighbours.
#pragma once

#include "atunner/rewrites/rewrite.h"

namespace atunner::rewrites {

Result<std::vector<Proposal>> ShareLoopInWarp(const Subject& subject);

}  // namespace atunner::rewrites
