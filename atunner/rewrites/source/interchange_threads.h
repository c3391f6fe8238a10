// Interchanges the axes of the threads of a block, so that neighbouring threads take neighbouring
// elements. Blocks cover the same elements as before.
#pragma once

#include "atunner/rewrites/rewrite.h"

namespace atunner::rewrites {

Result<std::vector<Proposal>> InterchangeThreads(const Subject& subject);

}  // namespace atunner::rewrites
