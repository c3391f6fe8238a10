// The text form of graphs (.atg files), which users write and tasks are stored in. docs/graph.md
// describes it.
#pragma once

#include <string>
#include <string_view>

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// kInvalidInput with line, column and a hint. `file` is the name of the text in messages.
Result<ValidGraph> Parse(std::string_view text, const std::string& file = "");

/// The text from which Parse makes the same graph. Nodes without a name are called v<id>.
std::string Print(const ValidGraph& graph);

}  // namespace atunner::graph
