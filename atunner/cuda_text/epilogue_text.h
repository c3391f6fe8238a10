// What a map makes of a product before it is stored, as text for whatever kernel multiplies
// (kernels/families/matmul/plain_epilogue.cuh says what kernels expect).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "atunner/graph/match/product.h"

namespace atunner::graph {

struct EpilogueText {
  std::string text;
  bool has_elements = false;  ///< are there operands that differ by row and by column?
  int64_t column_bytes = 0;   ///< of what differs by column alone
  /// Of the kernel's further parameters: names of tensors, then sizes as "i64:" and an expression.
  std::vector<std::string> arguments;
};

/// `twin`: another product that the map `result` takes, or -1. `narrow`: the functions that it may
/// call for results in few digits, if it may.
EpilogueText TextOfEpilogue(const ValidGraph& graph, const ProductForm& form, NodeId twin,
                            NodeId result, std::string_view narrow);

}  // namespace atunner::graph
