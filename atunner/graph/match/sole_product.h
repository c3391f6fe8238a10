// What may stand behind the one contraction of a kernel.
#pragma once

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// False if the part has one contraction, not a vector product (WithoutVectorProducts), and more
/// than the families of products and convolutions take: they have one output, and behind the sums
/// maps, reshapes, transposes, folds and slices alone (match/product.h, match/convolution.h). True
/// says nothing. It is quick to ask, unlike the families: of the subgraphs that a partition of a
/// convolutional network tries, more than a third are refused so.
bool MayEndBehindProduct(const ValidGraph& part);

}  // namespace atunner::graph
