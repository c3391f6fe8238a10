// The values of an ONNX model by name while its graph is built: where each is in the graph, and
// what the model states of its elements.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/graph/evaluate/evaluate.h"
#include "atunner/graph/graph.h"
#include "atunner/importers/import_model.h"
#include "atunner/importers/onnx/onnx_model.h"

namespace atunner::importers {

/// A value of the model: its place in the graph, once it has one, and what is known of its
/// elements.
struct OnnxSlot {
  std::optional<graph::Value> value;
  std::shared_ptr<const graph::Tensor> known;
  const OnnxTensor* initializer = nullptr;
};

/// The values of a graph, or of the body of a function, by name.
using OnnxScope = std::map<std::string, OnnxSlot, std::less<>>;

/// What is computed from constants is computed while the model is read, up to so many elements.
inline constexpr int64_t kMostFolded = 4096;

void AddInitializers(const OnnxGraph& graph, OnnxScope& scope);

/// True for what a node may be computed from while the model is read.
bool IsFoldable(const OnnxSlot& slot);

/// The elements of a constant of the graph; nullptr if there are more than kMostFolded.
std::shared_ptr<const graph::Tensor> ElementsOf(const graph::Constant& constant,
                                                const graph::TensorType& type);

/// Makes values of the graph of the model's tensors, and keeps which inputs the graph has.
class OnnxTensors {
 public:
  /// `bytes` is the model's file, which initializers refer to; `folder` holds external data.
  OnnxTensors(graph::GraphBuilder& builder, std::string folder, std::string_view bytes)
      : builder_(builder), folder_(std::move(folder)), bytes_(bytes) {}

  /// Floats of more than one element become weights, which are inputs of the graph. So do large
  /// tensors of integers. All others become constants.
  graph::Value ValueOf(const std::string& name, OnnxSlot& slot);
  /// The elements, if the model states them; nullptr if not.
  Result<std::shared_ptr<const graph::Tensor>> KnownOf(OnnxSlot& slot) const;
  graph::Value AddUserInput(std::string_view wanted, graph::TensorType type);

  /// A name for an input or output of the graph: letters, digits and _, unlike all names before.
  std::string Unused(std::string_view wanted);
  std::vector<ModelInput>& inputs() { return inputs_; }

 private:
  graph::Value AddWeight(const std::string& name, const OnnxTensor& tensor, DType dtype);

  graph::GraphBuilder& builder_;
  std::string folder_;
  std::string_view bytes_;
  std::set<std::string> used_;
  std::vector<ModelInput> inputs_;
};

}  // namespace atunner::importers
