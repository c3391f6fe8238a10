// A task together with the graph that defines it, parsed once.
#pragma once

#include <optional>

#include "atunner/graph/graph.h"
#include "atunner/model/kernel/kernel_spec.h"

namespace atunner {

/// A KernelSpec holds its graph as text, because that is what stores and artifacts keep. A Task
/// adds the parsed graph, so that the schedule families, which look at the same task one after the
/// other, do not parse it again. Cheap to move; a copy copies the spec and shares the graphs.
class Task {
 public:
  /// The task of a spec that may come from a file. kInvalidInput if the spec has a graph whose
  /// arguments or dims are not the spec's (see GraphOf).
  static Result<Task> Make(KernelSpec spec);
  /// The task of a spec that SpecOfGraph or an Operator made: its graph is parsed, and not compared
  /// with the spec again.
  static Task Of(KernelSpec spec);

  const KernelSpec& spec() const { return spec_; }
  /// The graph with its symbols open; nullptr if the task's oracle is not a graph.
  const graph::ValidGraph* graph() const { return graph_ ? &*graph_ : nullptr; }
  /// The same graph after FuseMaps: every map is part of the nodes that use it.
  const graph::ValidGraph* fused() const { return fused_ ? &*fused_ : nullptr; }

 private:
  Task(KernelSpec spec, std::optional<graph::ValidGraph> graph);

  KernelSpec spec_;
  std::optional<graph::ValidGraph> graph_;
  std::optional<graph::ValidGraph> fused_;
};

}  // namespace atunner
