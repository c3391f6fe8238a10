// Unrolls innermost loops, so that their loads are under way together.
#pragma once

#include "atunner/rewrites/rewrite.h"

namespace atunner::rewrites {

Result<std::vector<Proposal>> UnrollLoops(const Subject& subject);

}  // namespace atunner::rewrites
