// Makes literals of type double float: 0.5 * x → 0.5f * x.
#pragma once

#include "atunner/rewrites/rewrite.h"

namespace atunner::rewrites {

Result<std::vector<Proposal>> FloatLiterals(const Subject& subject);

}  // namespace atunner::rewrites
