#include "atunner/operators/task.h"

#include <utility>

#include "atunner/graph/rewrite/rewrite.h"
#include "atunner/graph/text.h"
#include "atunner/operators/graph_operator.h"

namespace atunner {

Task::Task(KernelSpec spec, std::optional<graph::ValidGraph> graph)
    : spec_(std::move(spec)), graph_(std::move(graph)) {
  if (graph_) fused_ = graph::FuseMaps(*graph_);
}

Result<Task> Task::Make(KernelSpec spec) {
  if (spec.oracle.kind != Oracle::Kind::kGraph) return Task(std::move(spec), std::nullopt);
  ATUNNER_TRY(graph::ValidGraph graph, GraphOf(spec));
  return Task(std::move(spec), std::move(graph));
}

Task Task::Of(KernelSpec spec) {
  if (spec.oracle.kind != Oracle::Kind::kGraph) return Task(std::move(spec), std::nullopt);
  auto graph = graph::Parse(spec.oracle.graph, spec.name + ".atg");
  ATUNNER_CHECK(graph.has_value());
  return Task(std::move(spec), *std::move(graph));
}

}  // namespace atunner
