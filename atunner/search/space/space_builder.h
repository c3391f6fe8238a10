// From parameters and constraints to the diagram of what is valid.
#pragma once

#include "atunner/model/space/parameter_space.h"
#include "atunner/search/space/decision_diagram.h"

namespace atunner {

/// Level by level: a node is what the constraints still need to know of the values chosen so far
/// (the subexpressions that are complete while something above them is not), and equal nodes are
/// one. Constraints are tested as soon as their names are bound. kInvalidInput when nothing is
/// valid (naming a smallest set of constraints that contradict each other), when a constraint
/// cannot be computed for a combination that nothing else rules out, or when the diagram needs more
/// than `most_edges` (two dozen bytes each).
Result<DecisionDiagram> BuildDiagram(const ParameterSpace& space, const Dims& dims,
                                     size_t most_edges = 30'000'000);

}  // namespace atunner
