// How evaluation rounds.
#pragma once

#include <cstdint>

namespace atunner::graph {

enum class Precision : uint8_t {
  kExact,  ///< all floats are float64; only round_to rounds, and integers wrap
  /// Every node's result is rounded to its type. Arithmetic and sums are in float32, or float64 for
  /// float64 operands
  kDeclared,
};

}  // namespace atunner::graph
