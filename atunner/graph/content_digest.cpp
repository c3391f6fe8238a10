// ValidGraph::ContentDigest: the digest of all fields of a graph.
#include <string>

#include "atunner/graph/graph.h"

namespace atunner::graph {
namespace {

/// Appends values as bytes. Strings and vectors begin with their length, so that different graphs
/// give different bytes.
class Bytes {
 public:
  template <class T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void Add(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void Add(const std::string& text) {
    Add(text.size());
    text_ += text;
  }
  void Add(const std::optional<DType>& dtype) { Add(dtype ? static_cast<int>(*dtype) : -1); }
  void Add(const Extent& extent) {
    Add(extent.factor());
    Add(extent.symbols());
  }
  template <class T>
  void Add(const std::vector<T>& values) {
    Add(values.size());
    for (const T& value : values) Add(value);
  }
  void Add(Cell cell) { Add(cell.whole); }
  void Add(const ScalarNode& node) {
    Add(node.op);
    Add(node.dtype);
    for (int arg : node.args) Add(arg);
    Add(node.number);
    Add(node.literal);
  }
  void Add(const Operation& operation) {
    Add(operation.index());
    std::visit([&](const auto& one) { AddFields(one); }, operation);
  }
  void Add(const Node& node) {
    Add(node.operation);
    Add(node.operands);
    Add(node.type.dtype);
    Add(node.type.shape);
    Add(node.name);
  }
  void Add(const Output& output) {
    Add(output.name);
    Add(output.node);
  }
  const std::string& text() const { return text_; }

 private:
  template <class T>
  void AddFields(const T& operation) {
    if constexpr (requires { operation.op; }) Add(operation.op);
    VisitFields(operation, [&](const char*, const auto& field, const auto&...) { Add(field); });
  }
  void AddFields(const Constant& constant) { Add(constant.values); }
  void AddFields(const graph::Map& map) {
    Add(map.body.nodes());
    Add(map.body.parameters());
    Add(map.shape);
  }

  std::string text_;
};

}  // namespace

Digest ValidGraph::ContentDigest() const {
  Bytes bytes;
  bytes.Add(name());
  for (const auto& [symbol, range] : symbols()) {
    bytes.Add(symbol);
    bytes.Add(range.low);
    bytes.Add(range.high);
  }
  bytes.Add(nodes());
  bytes.Add(outputs());
  return DigestOf(bytes.text());
}

}  // namespace atunner::graph
