// A part of a graph as the task that it is in any graph.
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
  std::map<std::string, std::string> names;  ///< its tensors, as the graph calls them
  /// Those of the task's sizes that the graph has otherwise
  std::map<std::string, std::string> sizes = {};
};

/// An attribute of attention inside of a graph: what products before it make of large inputs are
/// scores of any size, of which the largest must be subtracted exactly.
inline constexpr std::string_view kScoresOfAnySize = "scores_of_any_size";

/// Attention as the library's operator, whatever the part's spelling; everything else by its own
/// graph, without names. An error where the part is no task. `sizes`: at which its open sizes are
/// tuned.
Result<PartTask> TaskOfPart(const graph::ValidGraph& part, const Dims& sizes, Accuracy accuracy);

}  // namespace atunner
