// Computes a matrix product in tiles: operands in shared memory, 4 x 4 results in the registers of
// each thread.
#pragma once

#include "atunner/rewrites/rewrite.h"

namespace atunner::rewrites {

Result<std::vector<Proposal>> BlockProduct(const Subject& subject);

}  // namespace atunner::rewrites
