// Drawings of graphs: Mermaid text for Markdown pages, and SVG.
#pragma once

#include <map>
#include <string>

#include "atunner/workflow/graph.h"

namespace atunner::workflow {

/// How often nodes ran, by name; nodes that ran are marked.
using Visits = std::map<std::string, int64_t>;

/// A Mermaid flow chart. Edges of routers are dashed, joins are bars.
std::string MermaidOf(const Graph& graph, const Visits& visits = {});
/// A complete SVG document: layers from top to bottom, by the longest way from the start without
/// edges that lead back.
std::string SvgOf(const Graph& graph, const Visits& visits = {});

}  // namespace atunner::workflow
