#include "atunner/graph/compose.h"

#include <algorithm>
#include <map>

namespace atunner::graph {
namespace {

std::vector<Value> OperandsOf(const Node& node, const std::vector<Value>& values) {
  std::vector<Value> operands;
  for (NodeId operand : node.operands) operands.push_back(values[operand]);
  return operands;
}

}  // namespace

std::vector<bool> NeededFor(const ValidGraph& graph, const std::vector<NodeId>& wanted,
                            const std::function<bool(NodeId)>& stops) {
  std::vector<bool> needed(graph.nodes().size(), false);
  for (NodeId id : wanted) needed[id] = true;
  for (size_t id = needed.size(); id-- > 0;) {
    if (!needed[id] || (stops && stops(static_cast<NodeId>(id)))) continue;
    for (NodeId operand : graph.nodes()[id].operands) needed[operand] = true;
  }
  return needed;
}

namespace {

std::unexpected<Error> NoOutput(const ValidGraph& graph, std::string_view name) {
  std::string known;
  for (const Output& output : graph.outputs()) known += (known.empty() ? "" : ", ") + output.name;
  return Invalid("no output is called '" + std::string(name) + "'", "graph " + graph.name(),
                 "there are " + known);
}

}  // namespace

Result<ValidGraph> OnlyOutput(const ValidGraph& graph, std::string_view name) {
  const auto wanted = std::ranges::find(graph.outputs(), name, &Output::name);
  if (wanted == graph.outputs().end()) return NoOutput(graph, name);
  const std::vector<bool> needed = NeededFor(graph, {wanted->node});
  GraphBuilder builder(graph.name());
  for (const auto& [symbol, range] : graph.symbols())
    ATUNNER_RETURN_IF_ERROR(builder.Symbol(symbol, range));
  std::vector<Value> values(graph.nodes().size());
  for (size_t id = 0; id < needed.size(); ++id) {
    const Node& node = graph.nodes()[id];
    if (!needed[id]) continue;
    values[id] = node.As<Input>() ? builder.Input(node.name, node.type)
                                  : builder.Copy(node, OperandsOf(node, values));
  }
  builder.Output(wanted->name, values[wanted->node]);
  return std::move(builder).Finish();
}

Result<ValidGraph> Together(std::string name, std::span<const ValidGraph> graphs) {
  GraphBuilder builder(std::move(name));
  std::map<std::string, Value> inputs;
  for (const ValidGraph& graph : graphs) {
    for (const auto& [symbol, range] : graph.symbols())
      ATUNNER_RETURN_IF_ERROR(builder.Symbol(symbol, range));
    std::vector<Value> values;
    for (const Node& node : graph.nodes()) {
      if (!node.As<Input>()) {
        values.push_back(builder.Copy(node, OperandsOf(node, values)));
        continue;
      }
      const auto [at, fresh] = inputs.try_emplace(node.name);
      if (fresh) at->second = builder.Input(node.name, node.type);
      if (builder.TypeOf(at->second) != node.type)
        return Invalid("the input '" + node.name + "' is of two types", "graph " + graph.name());
      values.push_back(at->second);
    }
    for (const Output& output : graph.outputs())
      builder.Output(graph.name() + "_" + output.name, values[output.node]);
  }
  return std::move(builder).Finish();
}

}  // namespace atunner::graph
