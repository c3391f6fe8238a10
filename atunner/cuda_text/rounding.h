// Where baseline kernels round. The error budget is derived from it: two correct computations of a
// graph may differ where one of them rounds, and nowhere else.
#pragma once

#include <vector>

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// The roundings of one step (one launch) of the baseline kernels.
struct StepRounding {
  /// How the step uses an operand.
  enum class Reading : uint8_t {
    /// Exactly: integers, and values that decide a comparison or a step function
    kAsIs,
    kValue,  ///< as a number that any other correct rounding could replace
    kTerms,  ///< like kValue, and its products and partial sums are rounded too
  };
  struct Operand {
    Reading reading = Reading::kAsIs;
    DType stored = DType::kFloat32;  ///< its type in memory
  };
  std::vector<Operand> operands;
  DType stored = DType::kFloat32;  ///< the result's type in memory
  bool rounds = false;             ///< false if the result is only moved or selected
};

/// True if a node of an expression decides something by its float operands. Comparisons with
/// infinity do not count, because no rounding changes them.
bool Decides(const std::vector<ScalarNode>& nodes, const ScalarNode& node);
/// True if the node's result is rounded, also by a cast to a narrower float; false if it is only
/// moved or selected.
bool Rounds(const std::vector<ScalarNode>& nodes, const ScalarNode& node);

/// The roundings of one node of a graph, apart from StepRounding::stored, which the caller sets.
StepRounding RoundingOf(const ValidGraph& graph, const Node& node);

}  // namespace atunner::graph
