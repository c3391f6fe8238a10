// Evaluation of one map, block by block.
#pragma once

#include <vector>

#include "atunner/graph/evaluate/evaluate.h"
#include "atunner/graph/evaluate/tensor_view.h"

namespace atunner::graph {

std::vector<Cell> EvaluateMap(const ScalarExpression& body, const std::vector<View>& operands,
                              const Extents& shape, Precision precision);

}  // namespace atunner::graph
