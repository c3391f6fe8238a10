// Strided views of tensors, for the evaluator: most layout operations only change the view.
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
  Extents strides;  ///< in elements; 0 for broadcast axes, negative for reversed ones

  static View Dense(std::vector<Cell> cells, Extents extents);
  const Cell* base() const { return cells->data() + offset; }
  int64_t size() const { return Product(extents); }
  bool dense() const;
  /// The elements in row-major order.
  View Packed() const;
  /// The strides of the view after it is broadcast to `shape`.
  Extents StridesIn(const Extents& shape) const;
};

/// Visits the elements of a shape in row-major order, in runs along the last axis: visit(first,
/// length, at), where `first` is the row-major index of the run's first element and at[k] its
/// offset in operand k, which grows by steps[k] from element to element. Neighbouring axes that are
/// contiguous in all operands are merged.
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
