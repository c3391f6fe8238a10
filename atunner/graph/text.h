// Graphs as text (.atg): what people read and write, what tests compare, what a task carries.
// docs/graph.md describes it.
#pragma once

#include <string>
#include <string_view>

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// kInvalidInput with file, line, column and what to do. `file` is what messages call the text.
Result<ValidGraph> Parse(std::string_view text, const std::string& file = "");

/// Text from which Parse makes the same graph; nodes without a name get one.
std::string Print(const ValidGraph& graph);

}  // namespace atunner::graph
