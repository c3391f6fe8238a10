// How a graph is divided into parts, each of which one schedule family computes. The family
// `stages` schedules the parts; the room `fusion` explains them.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "atunner/codegen/template/family.h"
#include "atunner/graph/graph.h"
#include "atunner/operators/part_task.h"

namespace atunner {

/// What one kernel, or the kernels of one family, would cost that compute a subgraph.
struct StageCost {
  enum class Refusal {
    kNone,
    kAnchors,         ///< two products, scans, sorts or scatters that are no attention
    kNoFamily,        ///< no family computes the nodes together
    kSmallReduction,  ///< the family would repeat a small reduction for each element
    kTooMuch,         ///< bytes alone cost more than the limit
  };
  Refusal refusal = Refusal::kNone;
  const Family* family = nullptr;  ///< nullptr for plain kernels, and where refused
  /// As bytes of DRAM traffic: the bytes that it reads and writes, the bytes that could move during
  /// a launch (two microseconds), and an eighth of the bytes that elements read again from caches
  double cost = std::numeric_limits<double>::infinity();
};

/// Which subgraphs may be parts.
struct StageRules {
  bool pairs = true;   ///< a subgraph may have two products of one operand, for GPUs of Hopper
  bool plain = false;  ///< nodes that no family computes are parts for plain kernels
};

/// An attribute of a task: 16-bit products between its parts are stored as frameworks store them.
/// Plans of models have it, whose parts are judged one by one; an operator is judged as a whole,
/// where such roundings would count as its error.
inline constexpr std::string_view kProductsInOwnType = "products_in_own_type";

/// The cost of a subgraph at these sizes, exact only if it is below `most`.
StageCost CostOfStage(const graph::ValidGraph& part, const Dims& sizes, const StageRules& rules,
                      double most = std::numeric_limits<double>::infinity());

/// The graph as it is divided: products canonical, tables written out, maps fused into their users.
graph::ValidGraph PreparedForStages(const graph::ValidGraph& graph);

struct Stage {
  graph::ValidGraph part;  ///< its inputs and outputs have the names of the whole graph
  PartTask task;
  std::vector<graph::NodeId> nodes;  ///< of Stages::graph
  size_t like = 0;  ///< the first stage of the same task: itself, or an earlier one
};

struct Stages {
  graph::ValidGraph graph;    ///< PreparedForStages
  std::vector<Stage> stages;  ///< in the order in which they run
};

/// The parts of a task's graph. Sizes stay open if every part can be computed so; otherwise the
/// parts are those of the graph at the task's own sizes, and only then some are left to plain
/// kernels. nullopt for a task without a graph, and for one that is a single node for plain
/// kernels.
std::optional<Stages> StagesOf(const Task& task, bool pairs);

}  // namespace atunner
