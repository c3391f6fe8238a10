// Evaluation of one map, block by block.
#pragma once

#include <vector>

#include "atunner/graph/evaluate/precision.h"
#include "atunner/graph/evaluate/tensor_view.h"
#include "atunner/graph/scalar.h"

namespace atunner::graph {

std::vector<Cell> EvaluateMap(const ScalarExpression& body, const std::vector<View>& operands,
                              const Extents& shape, Precision precision);

}  // namespace atunner::graph
