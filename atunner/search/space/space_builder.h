// From parameters and constraints to the valid configurations, numbered.
//
// The problem. A space has 10 to 20 parameters and up to 10^18 combinations of values, of which
// constraints leave a part. A search needs the number of valid configurations, the i-th of them,
// the index of a given one, uniform draws and neighbours. Listing all configurations is impossible,
// and drawing combinations until one is valid is hopeless where one in a million is.
//
// The data structure. DecisionDiagram has one level per parameter. An edge chooses a value, and a
// path from the root to the end is one valid configuration. Example: three parameters with values
// 1, 2, 4 and the constraint a * b * c == 8 (seven configurations).
//
//   level a           root
//                1 /   | 2   \ 4
//   level b    (1)    (2)     (4)           a node is the product so far
//             2/ \4  1/|2\4   1| \2
//   level c  (2) (4) (2)(4)(8) (4)(8)       equal products share one node: three nodes, not seven
//             4|  2|  1|
//   end
//
// Two prefixes share a node when the constraints cannot tell them apart: (1,4), (2,2) and (4,1) all
// leave the product 4. So the size grows with the number of distinct states, not with the number of
// combinations, and groups of parameters that share no constraint meet in a single node.
//
// The index. Each edge stores how many configurations come before it within its node ("before").
// The index of a configuration is the sum of `before` along its path, and the i-th configuration is
// found by a binary search in each level. A uniform draw is the configuration of a uniform index.
// In the example the edges of the root have before = 0, 2, 5: the configurations with a = 1 have
// the indices 0 and 1, those with a = 2 the indices 2 to 4, those with a = 4 the indices 5 and 6.
//
// Building it, level by level (space_builder.cpp):
//   1. Constraints joined by `and` are split. Each becomes a small program of cells (ExprProgram).
//   2. ChooseLevelOrder orders the parameters, so that constraints can be tested early.
//   3. A cell is computed at the level where its last parameter gets a value, and a constraint is
//      tested there. A cell is live at a level when a later level reads it: for a + b + c == 9
//      after b that is the cell a + b, and no longer a or b.
//   4. For each node of a level and each value the program of the level runs. When a constraint is
//      false there is no edge. Otherwise the live cells are the state of the child node, and
//      StateTable finds the node with an equal state or adds one.
//   5. DecisionDiagram::FromLevels removes nodes from which nothing is valid, from the end to the
//      root, and counts.
//
// A constraint whose partial results differ for almost every prefix, such as a sum of arbitrary
// numbers, needs too many states. The limits below end such a construction after some seconds with
// a message that names the parameter.
#pragma once

#include "atunner/model/space/parameter_space.h"
#include "atunner/search/space/decision_diagram.h"

namespace atunner {

/// Together some 10 seconds and 1 GB.
struct BuildLimits {
  size_t edges = 30'000'000;
  size_t cells = 30'000'000;   ///< of the states of all levels, 16 bytes each
  size_t steps = 200'000'000;  ///< pairs of a node and a value
};

/// kInvalidInput when nothing is valid (naming a smallest set of constraints that contradict each
/// other), when a constraint cannot be computed for a combination that nothing else rules out, or
/// when the diagram would exceed `limits`.
Result<DecisionDiagram> BuildDiagram(const ParameterSpace& space, const Dims& dims,
                                     const BuildLimits& limits = {});

}  // namespace atunner
