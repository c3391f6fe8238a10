// One operator of each name: the few that have a class of their own, and their graphs for what the
// class does not take.
#pragma once

#include <string_view>

#include "atunner/operators/operator.h"

namespace atunner {

/// Of the class by that name or alias, joined with its graph: attributes, shapes and types that the
/// class does not take go to the graph. nullptr for names without a class.
const Operator* FindJointOperator(std::string_view name);

}  // namespace atunner
