// The verbs of whole runs: timelines, memory, communication, parallelism, the system.
#pragma once

#include "faces/cli/verbs/verb_list.h"

namespace atunner::cli {

void AddTimeline(VerbList& verbs);
void AddMemory(VerbList& verbs);
void AddComm(VerbList& verbs);
void AddParallel(VerbList& verbs);
void AddSystem(VerbList& verbs);

}  // namespace atunner::cli
