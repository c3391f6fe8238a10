// The text of a fused epilogue: the map (bias, scale, activation) that follows a matrix product, as
// the struct Epilogue that kernels call before they store a tile. What kernels expect of it is
// written in kernels/families/matmul/plain_epilogue.cuh.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "atunner/graph/match/product.h"

namespace atunner::graph {

struct EpilogueText {
  std::string text;
  bool has_elements = false;  ///< true if an operand has a value for each row and column
  int64_t column_bytes = 0;   ///< bytes of the values of one column (a bias)
  /// The kernel's further arguments: names of tensors, then sizes as "i64:<expression>"
  std::vector<std::string> arguments;
};

/// `result` is the map behind the product. `twin` is a second product that it takes, or -1.
/// `narrow` is the text of the functions for 16-bit results if it may call them, else empty. `name`
/// is the struct's name; kernels make an `Epilogue` of the same members, which may derive from it.
EpilogueText TextOfEpilogue(const ValidGraph& graph, const ProductForm& form, NodeId twin,
                            NodeId result, std::string_view narrow,
                            std::string_view name = "Epilogue");

}  // namespace atunner::graph
