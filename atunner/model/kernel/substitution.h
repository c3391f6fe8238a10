// Names in expressions, replaced by what they stand for.
#pragma once

#include <map>
#include <string>

#include "atunner/base/result.h"
#include "atunner/model/kernel/launch_plan.h"

namespace atunner {

/// By name: an expression's text.
using Meanings = std::map<std::string, std::string>;

/// A number where nothing is left open.
Status Substitute(Expr& expression, const Meanings& meanings);

/// All of the plan's expressions. Its own parameters become their values, and it has none any more:
/// the names that are put in may be called as they were.
Status Substitute(LaunchPlan& plan, const Meanings& meanings);

}  // namespace atunner
