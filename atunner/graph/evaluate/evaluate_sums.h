// Evaluation of reductions and contractions.
#pragma once

#include <vector>

#include "atunner/graph/evaluate/tensor_view.h"
#include "atunner/graph/operation.h"

namespace atunner::graph {

/// The neutral element: 0 of sums, 1 of products, -infinity of maxima, …
Cell Neutral(Combine op, DType dtype);
/// a op b; floats in float64 if `wide`, else in float32. NaN wins in max and min.
Cell Combined(Combine op, DType dtype, Cell a, Cell b, bool wide);

std::vector<Cell> EvaluateReduce(const Reduce& reduce, const View& x, DType dtype, bool wide);
std::vector<Cell> EvaluateContract(const Contract& contract, const View& a, const View& b,
                                   bool real, bool wide);

}  // namespace atunner::graph
