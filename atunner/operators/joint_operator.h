// Operators that have a class and a graph of the same meaning: the class takes the requests for
// which it has families of its own, the graph takes all others.
#pragma once

#include <string_view>

#include "atunner/operators/operator.h"

namespace atunner {

/// The joint operator by name or alias; nullptr for names without a class. Requests with
/// attributes, shapes or types that the class does not take become tasks of the graph.
const Operator* FindJointOperator(std::string_view name);

}  // namespace atunner
