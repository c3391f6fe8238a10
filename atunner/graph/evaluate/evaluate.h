// What a graph means, in numbers: evaluation on the CPU, one node after the other.
#pragma once

#include <span>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/graph/graph.h"

namespace atunner::graph {

/// Elements in row-major order.
struct Tensor {
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  std::vector<Cell> cells;

  static Tensor Of(DType dtype, std::vector<int64_t> shape, std::span<const double> values);
  std::vector<double> Reals() const;
};

enum class Precision : uint8_t {
  kExact,  ///< floats are float64 throughout; only round_to, integers and bools are rounded
  /// Every node's result is rounded to its type; arithmetic and sums are float32 below float64
  kDeclared,
};

/// One tensor per output, for one per input (floats are taken as they are, whatever precision their
/// type has). kInvalidInput where the inputs' types differ from the graph's, or where it still has
/// symbols (see Specialise).
Result<std::vector<Tensor>> Evaluate(const ValidGraph& graph, std::span<const Tensor> inputs,
                                     Precision precision = Precision::kExact);

}  // namespace atunner::graph
