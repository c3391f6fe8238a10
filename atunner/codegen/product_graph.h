// Graphs that are a product of two matrices and what a map makes of it: scales, a bias, an activation.
#pragma once

#include <optional>

#include "atunner/codegen/maps_product.h"
#include "atunner/graph/graph.h"

namespace atunner {

struct ProductGraph {
  graph::ValidGraph graph;
  graph::NodeId product;
  ProductParts parts;
  std::string finish;                 ///< text like kernels/families/plain_finish.cuh
  std::vector<ArgBinding> arguments;  ///< what FINISH_PARAMETERS are given
};

/// nullopt for other graphs, and for types that tensor cores do not multiply or the kernels do not store.
std::optional<ProductGraph> ProductGraphOf(const KernelSpec& spec);

}  // namespace atunner
