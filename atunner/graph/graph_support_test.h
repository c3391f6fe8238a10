// Shared by this room's tests: graphs from text, tensors of random numbers.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "atunner/base/random.h"
#include "atunner/graph/evaluate/evaluate.h"
#include "atunner/graph/text.h"

namespace atunner::graph {

inline ValidGraph MustParse(const std::string& text) {
  auto parsed = Parse(text, "test.atg");
  EXPECT_TRUE(parsed.has_value()) << (parsed ? "" : parsed.error().ToString()) << "\n" << text;
  return parsed.value();
}

inline std::string ErrorOf(const std::string& text) {
  const auto parsed = Parse(text, "test.atg");
  return parsed ? "no error" : parsed.error().ToString();
}

/// Normal numbers for floats; small integers of both signs; bits.
inline Tensor RandomTensor(const TensorType& type, uint64_t seed) {
  Tensor tensor{type.dtype, {}, {}};
  for (const Extent& extent : type.shape) tensor.shape.push_back(extent.factor());
  Random random(seed);
  const int64_t count = ElementCount(type.shape).factor();
  for (int64_t i = 0; i < count; ++i) {
    const double value = IsFloat(type.dtype)          ? random.Normal()
                         : type.dtype == DType::kBool ? static_cast<double>(random.Below(2))
                         : KindOf(type.dtype) == DTypeKind::kUnsigned
                             ? static_cast<double>(random.Below(9))
                             : static_cast<double>(random.Below(17)) - 8;
    tensor.cells.push_back(Rounded(type.dtype, CellOf(type.dtype, value)));
  }
  return tensor;
}

inline std::vector<Tensor> RandomInputs(const ValidGraph& graph, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (NodeId id : graph.inputs())
    inputs.push_back(RandomTensor(graph.node(id).type, seed + inputs.size()));
  return inputs;
}

/// The graph's only output.
inline Tensor RunGraph(const ValidGraph& graph, const std::vector<Tensor>& inputs,
                       Precision precision = Precision::kExact) {
  auto outputs = Evaluate(graph, inputs, precision);
  EXPECT_TRUE(outputs.has_value()) << (outputs ? "" : outputs.error().ToString());
  return outputs.value().at(0);
}

inline void ExpectNear(const Tensor& got, const std::vector<double>& want,
                       double tolerance = 1e-12) {
  const std::vector<double> values = got.Reals();
  ASSERT_EQ(values.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i]))
      EXPECT_TRUE(std::isnan(values[i])) << i;
    else if (std::isinf(want[i]))
      EXPECT_EQ(values[i], want[i]) << i;
    else
      ASSERT_NEAR(values[i], want[i], tolerance * (1 + std::fabs(want[i]))) << "element " << i;
  }
}

}  // namespace atunner::graph
