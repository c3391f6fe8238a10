// Several results a thread: what they have in common is loaded and computed once.
#pragma once

#include "atunner/rewrites/rewrite.h"

namespace atunner::rewrites {

/// Example: four rows of a filter share the pixels that they have in common.
Result<std::vector<Proposal>> CoarsenThreads(const Subject& subject);

}  // namespace atunner::rewrites
