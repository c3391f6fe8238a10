// The intermediate representation of tensor programs: an immutable, acyclic graph of typed values.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/digest.h"
#include "atunner/base/result.h"
#include "atunner/graph/operation.h"

namespace atunner::graph {

using NodeId = int32_t;

struct Node {
  Operation operation;
  std::vector<NodeId> operands;  ///< all smaller than the node's own id
  TensorType type;
  std::string name;  ///< unique, or empty

  template <class T>
  const T* As() const {
    return std::get_if<T>(&operation);
  }
};

struct Output {
  std::string name;
  NodeId node = 0;
};

/// A graph that passed every check: types and shapes agree, operands come before their users, names
/// are unique, and there is an output. Only GraphBuilder makes one; evaluation and code generation
/// take no other type. Copies share the data.
class ValidGraph {
 public:
  const std::string& name() const { return data_->name; }
  const Symbols& symbols() const { return data_->symbols; }
  const std::vector<Node>& nodes() const { return data_->nodes; }
  const Node& node(NodeId id) const { return data_->nodes[id]; }
  /// In the order of their declaration. An input need not be used.
  const std::vector<NodeId>& inputs() const { return data_->inputs; }
  const std::vector<Output>& outputs() const { return data_->outputs; }
  /// By node: the number of operands and outputs that refer to it.
  std::vector<int> UseCounts() const;
  /// Equal for graphs that are equal in everything, names included.
  Digest ContentDigest() const;

 private:
  friend class GraphBuilder;
  struct Data {
    std::string name;
    Symbols symbols;
    std::vector<Node> nodes;
    std::vector<NodeId> inputs;
    std::vector<Output> outputs;
  };
  explicit ValidGraph(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

/// A value while its graph is being built.
struct Value {
  NodeId id = -1;
};

/// Builds graphs and checks every node as it is added. The first error is kept until Finish and all
/// later calls are ignored, so that code that builds a graph needs no error handling of its own.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name) { data_.name = std::move(name); }

  /// Declares a symbol for extents, with the sizes that it may have.
  Status Symbol(const std::string& name, Range range);
  Value Input(std::string name, TensorType type);
  /// `values` holds one value for all elements, or all elements in row-major order.
  Value Constant(TensorType type, std::vector<Cell> values);
  Value Scalar(DType dtype, double value) { return Constant({dtype, {}}, {CellOf(dtype, value)}); }
  /// A map by the text of its expression, in which operands are called a, b, c, … in order.
  Value Map(std::string_view body, std::vector<Value> operands, Shape shape = {});
  Value Map(ScalarExpression body, std::vector<Value> operands, Shape shape = {});
  Value Add(Operation operation, std::vector<Value> operands);
  /// The operation of a node of another graph, on these operands. The node must not be an input.
  Value Copy(const Node& node, std::vector<Value> operands);

  // Shorter calls for common operations.
  Value Reduce(Combine op, Value x, std::vector<int64_t> axes, bool keep = false) {
    return Add(graph::Reduce{op, std::move(axes), keep}, {x});
  }
  Value Contract(std::string equation, Value a, Value b, std::optional<DType> as = {},
                 bool sparse = false) {
    return Add(graph::Contract{std::move(equation), as, sparse}, {a, b});
  }
  Value Reshape(Value x, Shape shape) { return Add(graph::Reshape{std::move(shape)}, {x}); }
  Value Transpose(Value x, std::vector<int64_t> order) {
    return Add(graph::Transpose{std::move(order)}, {x});
  }
  Value Cast(Value x, DType dtype);

  void Name(Value value, std::string name);
  void Output(std::string name, Value value);

  bool ok() const { return !error_.has_value(); }
  /// The type of a value; a scalar float32 after an error.
  const TensorType& TypeOf(Value value) const;
  const Node& NodeOf(Value value) const { return data_.nodes[value.id]; }
  /// Keeps the error if it is the first.
  Value Fail(Error error);
  /// Sets Error::where for the nodes that follow, for example "norm.atg:4:7".
  void SetLocation(std::string location) { location_ = std::move(location); }

  Result<ValidGraph> Finish() &&;

 private:
  Value Append(Node node);
  Status CheckType(const TensorType& type) const;
  bool Missing(std::span<const Value> operands);

  ValidGraph::Data data_;
  std::optional<Error> error_;
  std::string location_;
};

/// Replaces symbols by sizes. kInvalidInput for an unknown symbol or a size outside of its range.
Result<ValidGraph> Specialise(const ValidGraph& graph, const Dims& sizes);

/// Puts `prefix` before the names of the graph's symbols.
ValidGraph WithSymbolsPrefixed(const ValidGraph& graph, const std::string& prefix);

}  // namespace atunner::graph
