// Elements in memory seen through strides, for the evaluator: most nodes that move data only change
// the view.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "atunner/graph/tensor_type.h"

namespace atunner::graph {

using Extents = std::vector<int64_t>;

int64_t Product(std::span<const int64_t> extents);
/// Row-major strides.
Extents DenseStrides(const Extents& extents);

struct View {
  std::shared_ptr<const std::vector<Cell>> cells;
  int64_t offset = 0;
  Extents extents;
  Extents strides;  ///< in elements; 0 repeats, negative ones run backwards

  static View Dense(std::vector<Cell> cells, Extents extents);
  const Cell* base() const { return cells->data() + offset; }
  int64_t size() const { return Product(extents); }
  bool dense() const;
  /// The same elements, one after the other.
  View Packed() const;
  /// Strides towards `shape`, to which the view is broadcast.
  Extents StridesIn(const Extents& shape) const;
};

/// Visits the places of a shape in row-major order, in runs along the last axis: visit(first,
/// length, at) with the row-major number of the run's first place, and where each operand has its
/// element (`at[k]`, which moves by `steps[k]`). Neighbouring axes that all operands walk through
/// evenly are one.
class Walk {
 public:
  Walk(Extents extents, std::vector<Extents> strides);
  const Extents& steps() const { return steps_; }
  using Visit = std::function<void(int64_t first, int64_t length, std::span<const int64_t> at)>;
  void Run(const Visit& visit) const;

 private:
  Extents outer_;
  std::vector<Extents> outer_strides_;  ///< by operand
  int64_t length_ = 1;
  Extents steps_;
};

}  // namespace atunner::graph
