// The verbs that plan whole runs: communication, parallelism, the system.
#pragma once

#include "faces/cli/verbs/verb_list.h"

namespace atunner::cli {

void AddComm(VerbList& verbs);
void AddParallel(VerbList& verbs);
void AddSystem(VerbList& verbs);

}  // namespace atunner::cli
