// Pads the rows of a tile in shared memory: float t[32][32] → float t[32][33].
#pragma once

#include "atunner/rewrites/rewrite.h"

namespace atunner::rewrites {

Result<std::vector<Proposal>> PadShared(const Subject& subject);

}  // namespace atunner::rewrites
