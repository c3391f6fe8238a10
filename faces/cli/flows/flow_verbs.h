// The verbs that deal with flows and knowledge.
#pragma once

#include "faces/cli/verbs/verb_list.h"

namespace atunner::cli {

void AddWorkflow(VerbList& verbs);
void AddKnowledge(VerbList& verbs);

}  // namespace atunner::cli
