// Transposed operands of contractions.
#pragma once

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// Puts transposes of operands into the equations of contractions, also where axes are merged
/// behind the transpose. Matrix products read either layout.
ValidGraph WithTransposesInProducts(const ValidGraph& graph);

}  // namespace atunner::graph
