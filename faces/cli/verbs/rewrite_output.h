// How a rewriting run is printed.
#pragma once

#include <string>

#include "atunner/jobs/evidence/rewrite_record.h"

namespace atunner::cli {

/// "12", "3.25", "1.68e+07"
std::string CounterText(double value);

/// The ideas, tried or not, with what came of them.
void PrintIdeas(const jobs::RewriteRecord& record);

/// The kept ideas with their counters, and the diff of the user's file.
void PrintDiff(const jobs::RewriteRecord& record);

}  // namespace atunner::cli
