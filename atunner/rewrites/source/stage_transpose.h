// Copies a transposition through a tile in shared memory, so that both sides are coalesced.
#pragma once

#include "atunner/rewrites/rewrite.h"

namespace atunner::rewrites {

Result<std::vector<Proposal>> StageTranspose(const Subject& subject);

}  // namespace atunner::rewrites
