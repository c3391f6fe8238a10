// One node of an ONNX model while its graph is built: inputs by their position, attributes by name
// with defaults, and operators of PyTorch and of the library that compute the same.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/graph/evaluate/evaluate.h"
#include "atunner/importers/aten/aten_call.h"
#include "atunner/importers/onnx/onnx_model.h"

namespace atunner::importers {

/// An input of a node. `known` is what the model states of its elements: an initializer, or what
/// was computed from such. `value` makes it a value of the graph.
struct OnnxOperand {
  std::function<graph::Value()> value;
  std::function<Result<std::optional<graph::Tensor>>()> known;
};

/// A tensor of elements as a constant of the graph.
graph::Value ConstantOf(graph::GraphBuilder& builder, const graph::Tensor& tensor);

class OnnxCall : public GraphCall {
 public:
  /// Inputs that are left out are nullopt. `version` is that of the node's operator set.
  OnnxCall(graph::GraphBuilder& builder, const OnnxNode& node, int64_t version,
           std::vector<std::optional<OnnxOperand>> operands, LibraryCache& cache)
      : GraphCall(builder),
        opset(version),
        node_(node),
        operands_(std::move(operands)),
        cache_(cache) {}

  const int64_t opset;

  // Inputs.
  size_t inputs() const { return operands_.size(); }
  bool Has(size_t input) const { return input < operands_.size() && operands_[input].has_value(); }
  /// The input; fails if it is left out.
  graph::Value In(size_t input);
  std::vector<graph::Value> AllInputs();
  /// True for an input that is known to have no elements.
  bool IsEmpty(size_t input);
  /// The elements of an input that the model states; nullopt if it is left out or computed.
  std::optional<graph::Tensor> Known(size_t input);
  /// Integers that have to be known: shapes and axes. Fails otherwise.
  Integers Wholes(size_t input);
  double Number(size_t input);
  bool UsesOutput(size_t output) const {
    return output < node_.outputs.size() && !node_.outputs[output].empty();
  }
  size_t outputs() const { return node_.outputs.size(); }

  // Attributes.
  const OnnxAttribute* Find(std::string_view name) const;
  bool HasAttribute(std::string_view name) const { return Find(name) != nullptr; }
  int64_t Whole(std::string_view name, int64_t fallback) const;
  double Real(std::string_view name, double fallback) const;
  std::string Text(std::string_view name, const std::string& fallback) const;
  Integers List(std::string_view name, const Integers& fallback = {}) const;
  /// Integers of an input (newer operator sets), or of an attribute (older ones).
  Integers ListOf(size_t input, std::string_view attribute, const Integers& fallback = {});

  /// An axis counted from 0; fails if there is none.
  int64_t Axis(int64_t axis, int64_t rank);

  graph::Value Constant(DType dtype, const Integers& sizes, const Integers& elements);
  graph::Value SliceOf(graph::Value x, int64_t axis, int64_t start, int64_t stop,
                       int64_t step = 1) {
    return g.Add(graph::Slice{axis, start, stop, step}, {x});
  }

  /// An integer input less its zero point, in 32-bit integers. A zero point of one number for each
  /// index of an axis belongs to the last axis but one of the first input.
  graph::Value LessZeroPoint(size_t input, size_t zero_point);
  /// x, rounded already, limited to the range of the integer type.
  graph::Value Saturated(graph::Value x, DType type);

  /// Makes a value an argument of an ATen operator.
  TensorRef Ref(graph::Value value);
  /// The results of an ATen operator.
  std::vector<graph::Value> Aten(std::string_view target, std::vector<NamedArgument> arguments);
  /// The first result of an operator of the library (AtenCall::Library).
  graph::Value Library(std::string_view name, DType dtype,
                       const std::vector<graph::Value>& operands, const Attributes& attributes = {},
                       size_t stated = 3);

  /// The node's result has no elements. Graphs have no such tensors, but what is computed from
  /// constants may: the shape of a scalar.
  std::vector<graph::Value> NoElements(DType dtype);
  std::optional<DType> without_elements() const { return without_elements_; }

  /// What ONNX allows and graphs cannot express.
  graph::Value Unsupported(std::string what, std::string hint = {});

 private:
  const OnnxNode& node_;
  std::vector<std::optional<OnnxOperand>> operands_;
  LibraryCache& cache_;
  Values refs_;
  std::optional<DType> without_elements_;
};

}  // namespace atunner::importers
