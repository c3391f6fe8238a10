// What makes a contraction a product of matrices, or many of them side by side: operands in memory,
// each axis one of batch, rows, columns or depth, and what a map may take besides the product.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// The axes of a contraction by what they are in a product: letters of its equation.
struct ProductAxes {
  std::string batch, m, n, k;
  bool a_batched = false, b_transposed = false;
  bool operator==(const ProductAxes&) const = default;
};

/// An input as an operand of the product: as it lies, or one side of its diagonal.
struct Factor {
  const Node* input = nullptr;
  /// What counts: 0 = all of it; 1 = nothing above the diagonal; 2 = nothing below
  int64_t triangle = 0;
};
/// An input, or one in another shape: its elements lie in the same order.
Factor FactorOf(const ValidGraph& graph, NodeId id);

/// c[batch, m, n] = a[batch, m, k] · b[batch, k, n] or b[batch, n, k]; either operand may be
/// without the batch.
struct ProductForm {
  NodeId product;
  ProductAxes axes;
  std::string letters;  ///< of the result's axes
  Shape shape;          ///< of the result
  Extent depth;
  Factor a, b;

  /// Elements of the result's axes of these letters.
  Extent Count(const std::string& some) const;
  /// Of the same first operand, and does its second one lie as this one's does?
  bool IsTwin(const ProductForm& other) const;
};

/// nullopt where operands are no inputs, or lie otherwise. Either operand may be the first.
std::optional<ProductForm> ProductFormOf(const ValidGraph& graph, NodeId product);

/// Does the map take these products, and besides them only what few elements make?
bool TakesProducts(const ValidGraph& graph, const std::vector<NodeId>& products, const Node& map);

}  // namespace atunner::graph
