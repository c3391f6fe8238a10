// Replaces names in expressions by their meanings.
#pragma once

#include <map>
#include <string>

#include "atunner/base/result.h"
#include "atunner/model/kernel/launch_plan.h"

namespace atunner {

/// For each name the text of the expression that replaces it.
using Meanings = std::map<std::string, std::string>;

/// The expression becomes a number when no name is left in it.
Status Substitute(Expr& expression, const Meanings& meanings);

/// Replaces names in all expressions of the plan. The plan's own parameters are replaced by their
/// values and removed, so that new names may equal theirs.
Status Substitute(LaunchPlan& plan, const Meanings& meanings);

}  // namespace atunner
