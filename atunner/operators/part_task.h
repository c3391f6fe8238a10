// A subgraph as a task of its own, which does not depend on the graph that it is from.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "atunner/graph/graph.h"
#include "atunner/model/kernel/accuracy.h"
#include "atunner/operators/task.h"

namespace atunner {

struct PartTask {
  Task task;
  std::map<std::string, std::string> names;  ///< the graph's name of each of the task's tensors
  /// The graph's expression for each size of the task that has another name there
  std::map<std::string, std::string> sizes = {};
};

/// An attribute of attention tasks inside of graphs: scores may be arbitrarily large, because
/// products of large inputs come before them, so that their maximum must be subtracted exactly.
inline constexpr std::string_view kScoresOfAnySize = "scores_of_any_size";

/// The task of a subgraph. Attention becomes the library's operator, however it is written; any
/// other subgraph becomes its own graph with canonical names, so that equal subgraphs share their
/// trials. `sizes` are the values of its symbols for tuning. An error if it cannot be a task.
Result<PartTask> TaskOfPart(const graph::ValidGraph& part, const Dims& sizes, Accuracy accuracy);

}  // namespace atunner
