// Adds up in a register what a loop adds up in memory.
//
//     for (…) y[i] += e;  →  float y_sum = y[i]; for (…) y_sum += e; y[i] = y_sum;
#pragma once

#include "atunner/rewrites/rewrite.h"

namespace atunner::rewrites {

Result<std::vector<Proposal>> AccumulateInRegister(const Subject& subject);

}  // namespace atunner::rewrites
