// Operators of the library on random inputs, in float64.
#pragma once

#include <cmath>

#include "atunner/graph/graph_support_test.h"
#include "atunner/graph/library/library.h"

namespace atunner::graph {

using Shapes = std::vector<std::vector<int64_t>>;

struct Case {
  ValidGraph graph;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  /// Element `i` of input `k`.
  double in(size_t k, size_t i) const { return ToReal(inputs[k].dtype, inputs[k].cells.at(i)); }
};
inline Case Of(const char* name, Shapes shapes, Attributes attributes = {}) {
  auto built = Build(*FindInLibrary(name),
                     {DType::kFloat64, std::move(shapes), std::move(attributes)});
  EXPECT_TRUE(built.has_value()) << (built ? "" : built.error().ToString());
  Case made{built.value(), {}, {}};
  made.inputs = RandomInputs(made.graph, 19);
  for (Tensor& input : made.inputs) {
    for (Cell& cell : input.cells) {
      if (input.dtype == DType::kInt64) cell.whole = std::abs(cell.whole) % 3;  // places
    }
  }
  made.outputs = Evaluate(made.graph, made.inputs).value();
  return made;
}
inline atunner::Value I(int64_t value) { return value; }

}  // namespace atunner::graph
