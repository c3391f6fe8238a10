// Where plain kernels round: what two correct computations of the same graph may differ by, and
// what not.
#pragma once

#include <vector>

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// How one step of plain kernels comes by its result.
struct StepRounding {
  enum class Reading : uint8_t {
    /// Whole numbers, and what a comparison or a step function depends on: no rounding may decide
    /// that
    kAsIs,
    kValue,  ///< as good as any other correct computation of it
    kTerms,  ///< likewise, and its products and partial sums are rounded on the way
  };
  struct Operand {
    Reading reading = Reading::kAsIs;
    DType stored = DType::kFloat32;  ///< in memory
  };
  std::vector<Operand> operands;
  DType stored = DType::kFloat32;  ///< the result in memory
  bool rounds = false;             ///< is the result rounded, and not only moved or chosen?
};

/// Does a node of an expression decide something by its float operands? What is compared with
/// infinity is infinite or not, however it is rounded.
bool Decides(const std::vector<ScalarNode>& nodes, const ScalarNode& node);
/// Is its result rounded, casts to narrower floats included, and not only moved or chosen?
bool Rounds(const std::vector<ScalarNode>& nodes, const ScalarNode& node);

/// Of a node; how it is stored is for the caller to say.
StepRounding RoundingOf(const ValidGraph& graph, const Node& node);

}  // namespace atunner::graph
