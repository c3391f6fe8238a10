// Operators that are graphs: those of the graph library, and graphs of users.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/graph/graph.h"
#include "atunner/operators/operator.h"

namespace atunner {

/// The task of a graph; sizes that `dims` lacks take the upper end of their range. kInvalidInput
/// for wrong sizes and for an output called like an input; kUnsupported where no plain kernel
/// computes the graph.
Result<KernelSpec> SpecOfGraph(const graph::ValidGraph& graph, const Dims& dims);

/// The graph of a task whose oracle is one, with its symbols open. A task may come from a file:
/// kInvalidInput where it is not the task that SpecOfGraph makes of its graph.
Result<graph::ValidGraph> GraphOf(const KernelSpec& spec);

/// The inputs that the elements of an output are made of, but for those that count through single
/// elements alone (sums of all). nullopt for a task of no graph.
std::optional<std::vector<std::string>> SourcesOf(const KernelSpec& spec, std::string_view output);

/// What computes the right answer of tasks whose oracle is a graph.
const Operator& GraphOracle();

/// The library's operators that tasks can be made of, as operators.
const Operator* FindGraphOperator(std::string_view name);
std::vector<const Operator*> GraphOperators();

}  // namespace atunner
