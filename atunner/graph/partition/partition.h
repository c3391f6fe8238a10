// Graphs that no one kernel computes, as parts that follow one another.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// What it costs to compute a part, in whatever unit; nullopt where nothing computes it for less
/// than `most`.
using SubgraphCost = std::function<std::optional<double>(const ValidGraph& part, double most)>;

/// Parts in the order in which they run; one part where that is best. What a later part takes from
/// an earlier one is an output of the one and an input of the other, of the same name: the graph's
/// own name for it where it is an output of the graph anyway. Small values that inputs alone say
/// may be computed again wherever they are needed. Of all ways to divide the nodes, in the order in
/// which they are needed, the one that costs least, where open sizes are `sizes`; they stay open.
/// nullopt where there is none.
std::optional<std::vector<ValidGraph>> Partition(const ValidGraph& graph, const Dims& sizes,
                                                 const SubgraphCost& cost);

/// Has a part no more of what a kernel computes once than one: a product, a scan, a sort, a
/// scatter; or, with `pairs`, two products of one operand?
bool HasOneAnchor(const ValidGraph& part, bool pairs);

/// Is what a reduction takes little beside what the part writes, where open sizes are `sizes`?
bool HasSmallReduction(const ValidGraph& part, const Dims& sizes);

/// The same graph, called "part", with inputs a1, a2, … and outputs y1, y2, …, and the open sizes
/// that it has: equal parts of any graphs are equal.
ValidGraph WithCanonicalNames(const ValidGraph& part);

}  // namespace atunner::graph
