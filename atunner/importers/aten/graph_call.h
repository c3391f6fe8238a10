// What calls of ATen and of ONNX operators share while a graph is built: questions about values,
// and short ways to make some. An error is kept by the builder, and later calls are ignored.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "atunner/graph/graph.h"

namespace atunner::importers {

using Integers = std::vector<int64_t>;

/// The number of elements of a tensor of these sizes; 0 if one is below 1, or if it overflows.
int64_t CountOf(const Integers& sizes);

class GraphCall {
 public:
  explicit GraphCall(graph::GraphBuilder& builder) : g(builder) {}

  graph::GraphBuilder& g;

  const graph::Shape& ShapeOf(graph::Value x) const { return g.TypeOf(x).shape; }
  Integers SizesOf(graph::Value x) const;
  int64_t Rank(graph::Value x) const { return static_cast<int64_t>(ShapeOf(x).size()); }
  /// The extent of an axis that is counted from 0; 1 for an axis that x lacks.
  int64_t Size(graph::Value x, int64_t axis) const;
  DType TypeOf(graph::Value x) const { return g.TypeOf(x).dtype; }

  /// x in float32 if its type is narrower, for sums and norms.
  graph::Value Wide(graph::Value x) { return g.Cast(x, graph::ArithmeticType(TypeOf(x))); }
  graph::Value Reshape(graph::Value x, const Integers& sizes);
  graph::Value Broadcast(graph::Value x, const Integers& sizes);
  graph::Value Filled(const Integers& sizes, DType dtype, double value);

  /// kInvalidInput.
  graph::Value Fail(std::string what, std::string hint = {});
  /// Fails unless `condition`; returns `condition`.
  bool Check(bool condition, const std::string& what, const std::string& hint = {});
};

}  // namespace atunner::importers
