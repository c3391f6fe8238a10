// Tasks that are defined by graphs: operators of the library, and graphs of users.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/graph/graph.h"
#include "atunner/operators/operator.h"

namespace atunner {

/// The task of a graph. Symbols that `dims` lacks get the upper end of their range. kInvalidInput
/// for sizes out of range and for an output with the name of an input; kUnsupported if the graph
/// has no baseline kernels.
Result<KernelSpec> SpecOfGraph(const graph::ValidGraph& graph, const Dims& dims);

/// The graph of a task whose oracle is a graph, with its symbols. The task may come from a file:
/// kInvalidInput if its dims and arguments are not those that SpecOfGraph makes of its graph.
Result<graph::ValidGraph> GraphOf(const KernelSpec& spec);

/// The names of the inputs that an output depends on, except those that it depends on through
/// single elements only (sums over whole tensors). nullopt if the task is not a graph.
std::optional<std::vector<std::string>> SourcesOf(const KernelSpec& spec, std::string_view output);

/// The operator that computes the reference of tasks whose oracle is a graph.
const Operator& GraphOracle();

/// The library's operators. FindGraphOperator finds gradients too, and returns nullptr for an
/// unknown name.
const Operator* FindGraphOperator(std::string_view name);
std::vector<const Operator*> GraphOperators();

}  // namespace atunner
