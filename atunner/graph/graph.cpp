#include "atunner/graph/graph.h"

#include <algorithm>
#include <set>

#include "atunner/graph/expression_text.h"
#include "atunner/model/expr/expr.h"

namespace atunner::graph {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 40;

const TensorType& NoType() {
  static const TensorType none;
  return none;
}

/// An expression whose operands are all used and all different.
struct Tidied {
  ScalarExpression body;
  std::vector<Value> operands;
};
Tidied Tidy(const ScalarExpression& body, const std::vector<Value>& operands) {
  std::vector<Value> kept;
  std::vector<DType> types;
  std::vector<int> place(operands.size(), 0);
  for (const ScalarNode& node : body.nodes()) {
    if (node.op != ScalarOp::kParameter) continue;
    const NodeId id = operands[node.number].id;
    const auto at = std::ranges::find(kept, id, &Value::id);
    place[node.number] = static_cast<int>(at - kept.begin());
    if (at != kept.end()) continue;
    kept.push_back({id});
    types.push_back(node.dtype);
  }
  ScalarBuilder builder(types);
  std::vector<int> arguments(operands.size(), -1);
  for (const ScalarNode& node : body.nodes()) {
    if (node.op == ScalarOp::kParameter)
      arguments[node.number] = builder.Parameter(place[node.number]);
  }
  // The types do not change, so that building cannot fail.
  return {builder.Finish(builder.Import(body, arguments).value()).value(), std::move(kept)};
}

}  // namespace

std::vector<int> ValidGraph::UseCounts() const {
  std::vector<int> counts(nodes().size(), 0);
  for (const Node& node : nodes()) {
    for (NodeId operand : node.operands) ++counts[operand];
  }
  for (const auto& output : outputs()) ++counts[output.node];
  return counts;
}

Value GraphBuilder::Fail(Error error) {
  if (error.where.empty()) error.where = location_.empty() ? "graph " + data_.name : location_;
  if (!error_) error_ = std::move(error);
  return {};
}

bool GraphBuilder::Missing(std::span<const Value> operands) {
  if (error_) return true;
  const auto unknown = [this](Value v) {
    return v.id < 0 || v.id >= static_cast<NodeId>(data_.nodes.size());
  };
  if (std::ranges::any_of(operands, unknown))
    Fail(Invalid("an operand is no value of this graph").error());
  return error_.has_value();
}

const TensorType& GraphBuilder::TypeOf(Value value) const {
  return value.id < 0 ? NoType() : data_.nodes[value.id].type;
}

Status GraphBuilder::Symbol(const std::string& name, Range range) {
  // Launches and shapes are expressions over symbols.
  const auto expression = Expr::Parse(name);
  if (!IsName(name) || !expression || expression->Names() != std::vector<std::string>{name})
    return Invalid("'" + name + "' is no name for a size", location_,
                   "letters, digits and _, and no word of expressions");
  if (range.low < 1 || range.high < range.low || range.high >= kMostElements)
    return Invalid(
        "dim " + name + " = " + std::to_string(range.low) + ".." + std::to_string(range.high),
        location_, "a range goes from at least 1 up to less than 2^40");
  if (!data_.symbols.try_emplace(name, range).second)
    return Invalid("dim " + name + " is declared twice", location_);
  return {};
}

Status GraphBuilder::CheckType(const TensorType& type) const {
  Dims largest;
  for (const auto& [name, range] : data_.symbols) largest[name] = range.high;
  for (const Extent& extent : type.shape) {
    if (extent.factor() < 1)
      return Invalid("extent " + extent.ToString(), {}, "extents are at least 1");
    for (const std::string& symbol : extent.symbols()) {
      if (!data_.symbols.contains(symbol))
        return Invalid("unknown symbol '" + symbol + "'", {},
                       "declare it before: dim " + symbol + " = 1..4096");
    }
  }
  if (ElementCount(type.shape).Bound(largest).factor() >= kMostElements)
    return Invalid(type.ToString() + " may have 2^40 elements or more", {},
                   "use a smaller shape or range");
  if (type.dtype == DType::kUInt64) return Invalid("uint64 is no type of graphs", {}, "use int64");
  return {};
}

Value GraphBuilder::Append(Node node) {
  if (const Status checked = CheckType(node.type); !checked) return Fail(checked.error());
  data_.nodes.push_back(std::move(node));
  return {static_cast<NodeId>(data_.nodes.size()) - 1};
}

Value GraphBuilder::Input(std::string name, TensorType type) {
  if (error_) return {};
  const Value value = Append({graph::Input{}, {}, std::move(type), {}});
  if (error_) return {};
  Name(value, std::move(name));
  data_.inputs.push_back(value.id);
  return value;
}

Value GraphBuilder::Constant(TensorType type, std::vector<Cell> values) {
  if (error_) return {};
  const Extent count = ElementCount(type.shape);
  if (values.empty() ||
      (values.size() != 1 && !(count == Extent(static_cast<int64_t>(values.size())))))
    return Fail(Invalid("a constant of type " + type.ToString() + " with " +
                            std::to_string(values.size()) + " values",
                        {}, "give one value, or one per element")
                    .error());
  for (Cell& value : values) {
    if (!IsFloat(type.dtype)) value = Rounded(type.dtype, value);
  }
  const bool uniform = std::ranges::all_of(values,
                                           [&](Cell c) { return c.whole == values[0].whole; });
  if (uniform) values.resize(1);
  return Append({graph::Constant{std::move(values)}, {}, std::move(type), {}});
}

Value GraphBuilder::Map(std::string_view body, std::vector<Value> operands, Shape shape) {
  if (Missing(operands)) return {};
  std::vector<DType> types;
  for (Value operand : operands) types.push_back(TypeOf(operand).dtype);
  auto parsed = ParseExpression(body, types);
  if (!parsed) return Fail(parsed.error());
  return Map(*std::move(parsed), std::move(operands), std::move(shape));
}

Value GraphBuilder::Map(ScalarExpression body, std::vector<Value> operands, Shape shape) {
  if (Missing(operands)) return {};
  if (body.parameters().size() != operands.size())
    return Fail(Invalid("an expression over " + std::to_string(body.parameters().size()) +
                        " operands, " + std::to_string(operands.size()) + " given")
                    .error());
  // All operands determine the shape, also those that the expression does not use.
  Tidied tidy = Tidy(body, operands);
  Operation untidy = graph::Map{std::move(body), std::move(shape)};
  std::vector<TensorType> types;
  for (Value operand : operands) types.push_back(TypeOf(operand));
  auto type = Infer(untidy, types);
  if (!type) return Fail(type.error());
  if (tidy.body.IsIdentity() && TypeOf(tidy.operands[0]) == *type) return tidy.operands[0];
  return Add(graph::Map{std::move(tidy.body), type->shape}, std::move(tidy.operands));
}

Value GraphBuilder::Cast(Value x, DType dtype) {
  if (TypeOf(x).dtype == dtype) return x;
  return Map("cast(a, " + std::string(atunner::Name(dtype)) + ")", {x});
}

Value GraphBuilder::Copy(const Node& node, std::vector<Value> operands) {
  if (const auto* constant = node.As<graph::Constant>())
    return Constant(node.type, constant->values);
  return Add(node.operation, std::move(operands));
}

Value GraphBuilder::Add(Operation operation, std::vector<Value> operands) {
  if (Missing(operands)) return {};
  std::vector<TensorType> types;
  Node node;
  for (Value operand : operands) {
    types.push_back(TypeOf(operand));
    node.operands.push_back(operand.id);
  }
  auto type = Infer(operation, types);
  if (!type) {
    Error error = type.error();
    const std::string call = CallName(operation);
    if (!call.empty()) error.what = call + ": " + error.what;
    return Fail(std::move(error));
  }
  node.operation = std::move(operation);
  node.type = *std::move(type);
  return Append(std::move(node));
}

void GraphBuilder::Name(Value value, std::string name) {
  if (Missing({&value, 1}) || name.empty()) return;
  if (!IsName(name)) {
    Fail(Invalid("'" + name + "' is no name", {},
                 "letters, digits and _, not beginning with a digit")
             .error());
    return;
  }
  if (std::ranges::find(data_.nodes, name, &Node::name) != data_.nodes.end()) {
    Fail(Invalid("'" + name + "' is defined twice").error());
    return;
  }
  data_.nodes[value.id].name = std::move(name);
}

void GraphBuilder::Output(std::string name, Value value) {
  if (Missing({&value, 1})) return;
  if (!IsName(name) ||
      std::ranges::find(data_.outputs, name, &graph::Output::name) != data_.outputs.end()) {
    Fail(Invalid("the output '" + name + "' is no name, or there are two of it").error());
    return;
  }
  data_.outputs.push_back({std::move(name), value.id});
}

Result<ValidGraph> GraphBuilder::Finish() && {
  if (error_) return std::unexpected(*std::move(error_));
  if (data_.outputs.empty())
    return Invalid("a graph without outputs", "graph " + data_.name,
                   "say what it computes: output y");
  return ValidGraph(std::make_shared<const ValidGraph::Data>(std::move(data_)));
}

namespace {

template <class Changed>
Node WithExtents(Node node, const Changed& changed) {
  std::ranges::transform(node.type.shape, node.type.shape.begin(), changed);
  if (auto* map = std::get_if<graph::Map>(&node.operation)) map->shape = node.type.shape;
  if (auto* reshape = std::get_if<graph::Reshape>(&node.operation))
    reshape->shape = node.type.shape;
  return node;
}

/// Copies a graph with other symbols; `changed` maps each extent.
template <class Changed>
Result<ValidGraph> WithExtents(const ValidGraph& graph, const Symbols& symbols,
                               const Changed& changed) {
  GraphBuilder builder(graph.name());
  for (const auto& [name, range] : symbols) ATUNNER_RETURN_IF_ERROR(builder.Symbol(name, range));
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    const Node node = WithExtents(graph.nodes()[id], changed);
    std::vector<Value> operands;
    for (NodeId operand : node.operands) operands.push_back({operand});
    const bool input = node.As<graph::Input>();
    const Value made = input ? builder.Input(node.name, node.type)
                             : builder.Copy(node, std::move(operands));
    if (!input) builder.Name(made, node.name);
    if (!builder.ok()) break;
    ATUNNER_CHECK(made.id == static_cast<NodeId>(id));
  }
  for (const auto& output : graph.outputs()) builder.Output(output.name, {output.node});
  return std::move(builder).Finish();
}

}  // namespace

Result<ValidGraph> Specialise(const ValidGraph& graph, const Dims& sizes) {
  Symbols open = graph.symbols();
  for (const auto& [name, size] : sizes) {
    const auto at = open.find(name);
    if (at == open.end()) return Invalid("unknown symbol '" + name + "'", "graph " + graph.name());
    const auto [low, high] = at->second;
    if (size < low || size > high)
      return Invalid(name + " = " + std::to_string(size) + " is not within " + std::to_string(low) +
                         ".." + std::to_string(high),
                     "graph " + graph.name());
    open.erase(at);
  }
  return WithExtents(graph, open, [&](const Extent& extent) { return extent.Bound(sizes); });
}

ValidGraph WithSymbolsPrefixed(const ValidGraph& graph, const std::string& prefix) {
  Symbols prefixed;
  for (const auto& [name, range] : graph.symbols()) prefixed[prefix + name] = range;
  auto made = WithExtents(graph, prefixed, [&](const Extent& extent) {
    Extent renamed(extent.factor());
    for (const std::string& symbol : extent.symbols())
      renamed = renamed * Extent::Symbol(prefix + symbol);
    return renamed;
  });
  ATUNNER_CHECK(made.has_value());
  return *std::move(made);
}

}  // namespace atunner::graph
