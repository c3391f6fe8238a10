// Evaluates graphs on the CPU, one node after the other: the reference of a task's results.
#pragma once

#include <span>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/graph/evaluate/precision.h"
#include "atunner/graph/graph.h"

namespace atunner::graph {

/// A dense tensor, elements in row-major order.
struct Tensor {
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  std::vector<Cell> cells;

  static Tensor Of(DType dtype, std::vector<int64_t> shape, std::span<const double> values);
  std::vector<double> Reals() const;
};

/// One tensor for each output, from one tensor for each input. Input floats are not rounded to
/// their types. kInvalidInput if the inputs' types or shapes differ from the graph's, or if the
/// graph has symbols (see Specialise).
Result<std::vector<Tensor>> Evaluate(const ValidGraph& graph, std::span<const Tensor> inputs,
                                     Precision precision = Precision::kExact);

}  // namespace atunner::graph
