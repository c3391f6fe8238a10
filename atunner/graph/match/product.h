// Recognises contractions that are matrix products, one or a batch of them: both operands are
// tensors in memory, each axis is one of batch, rows, columns or depth, and a map may follow.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// The axes of a contraction by their role in a matrix product, as letters of its equation.
/// "bmk,bnk->bmn" has batch "b", m "m", n "n" and k "k", with b_transposed.
struct ProductAxes {
  std::string batch, m, n, k;
  bool a_batched = false, b_transposed = false;
  bool operator==(const ProductAxes&) const = default;
};

/// An input that is an operand of the product: all of it, or one triangle.
struct Factor {
  const Node* input = nullptr;
  /// 0 = the whole matrix; 1 = zero above the diagonal; 2 = zero below the diagonal
  int64_t triangle = 0;
};
/// The input behind node `id`, which is the input itself, a reshape of it or a triangle of it.
/// Factor::input is nullptr for other nodes.
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

  /// The product of the extents of the result's axes with these letters.
  Extent Count(const std::string& some) const;
  /// True if `other` multiplies the same first operand, and its second operand has this one's
  /// layout and type.
  bool IsTwin(const ProductForm& other) const;
};

/// nullopt if an operand is not an input, or its axes are in an order that no matrix product has.
/// Either operand of the contraction may become `a`.
std::optional<ProductForm> ProductFormOf(const ValidGraph& graph, NodeId product);

/// True if `map` takes these products, and its other operands can be computed from a few stored
/// elements.
bool TakesProducts(const ValidGraph& graph, const std::vector<NodeId>& products, const Node& map);

}  // namespace atunner::graph
