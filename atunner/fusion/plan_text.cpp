#include "atunner/fusion/plan_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

namespace atunner::fusion {
namespace {

constexpr size_t kMostListed = 8;  ///< names in a line of text

size_t NodesOf(const graph::ValidGraph& graph) {
  return graph.nodes().size() - graph.inputs().size();
}

/// "contract, 2 × map, transpose"
std::string KindsOf(const FusionPlan& plan, const FusedGroup& group) {
  std::map<std::string, size_t> counts;
  for (const graph::NodeId id : group.nodes) ++counts[LabelOf(plan.graph.node(id))];
  std::vector<std::string> kinds;
  for (const auto& [kind, count] : counts)
    kinds.push_back(count == 1 ? kind : fmt::format("{} × {}", count, kind));
  return fmt::format("{}", fmt::join(kinds, ", "));
}

std::string Listed(const std::vector<std::string>& names) {
  if (names.size() <= kMostListed) return fmt::format("{}", fmt::join(names, ", "));
  const std::vector<std::string> first(names.begin(), names.begin() + kMostListed);
  return fmt::format("{} and {} more", fmt::join(first, ", "), names.size() - kMostListed);
}

Json JsonOf(const Traffic& traffic) {
  return {{"launches", traffic.launches}, {"bytes", traffic.bytes}};
}

Json JsonOf(const FusionPlan& plan, const FusedGroup& group) {
  Json nodes = Json::array();
  for (const graph::NodeId id : group.nodes) {
    const graph::Node& node = plan.graph.node(id);
    nodes.push_back({{"id", id},
                     {"operation", LabelOf(node)},
                     {"name", node.name},
                     {"type", node.type.ToString()}});
  }
  return {{"family", group.family},     {"nodes", std::move(nodes)}, {"inputs", group.inputs},
          {"outputs", group.outputs},   {"bytes", group.bytes},      {"flops", group.flops},
          {"launches", group.launches}, {"predicted_ns", group.ns},  {"once", group.once}};
}

Json JsonOf(const Boundary& boundary) {
  return {{"from", boundary.from + 1},
          {"to", boundary.to + 1},
          {"value", boundary.value},
          {"type", boundary.type.ToString()},
          {"bytes", boundary.bytes},
          {"reason", Name(boundary.reason)},
          {"explanation", boundary.explanation}};
}

/// By node of the graph: its group, or -1.
std::vector<int> GroupsOfNodes(const FusionPlan& plan) {
  std::vector<int> groups(plan.graph.nodes().size(), -1);
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    for (const graph::NodeId id : plan.groups[i].nodes)
      groups[static_cast<size_t>(id)] = static_cast<int>(i);
  }
  return groups;
}

void AppendNode(std::string& text, const graph::ValidGraph& graph, size_t id, const char* indent) {
  const graph::Node& node = graph.nodes()[id];
  fmt::format_to(std::back_inserter(text), "{}n{} [label={}{}];\n", indent, id,
                 Quoted(LabelOf(node) + "\\n" + node.type.ToString()),
                 node.As<graph::Input>() ? ", shape=box" : "");
}

}  // namespace

std::string LabelOf(const graph::Node& node) {
  const std::string call = graph::CallName(node.operation);
  if (!call.empty()) return call;
  return node.As<graph::Input>() ? node.name : node.As<graph::Map>() ? "map" : "constant";
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string Counted(size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string TextOf(const FusionPlan& plan, bool explain) {
  std::string text = fmt::format(
      "{}: {} in {}; launches {} -> {}, {:.4g} -> {:.4g} MB, {:.4g} GFLOP, {:.4g} us predicted\n",
      plan.name, Counted(NodesOf(plan.graph), "node"), Counted(plan.groups.size(), "group"),
      plan.before.launches, plan.after.launches, plan.before.bytes / 1e6, plan.after.bytes / 1e6,
      plan.flops / 1e9, plan.ns / 1e3);
  const auto out = std::back_inserter(text);
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    const FusedGroup& group = plan.groups[i];
    fmt::format_to(out, "group {}: {}, {}, {}, {:.4g} MB, {:.4g} GFLOP, {:.4g} us{}\n", i + 1,
                   group.family, Counted(group.nodes.size(), "node"),
                   Counted(group.launches, "kernel"), group.bytes / 1e6, group.flops / 1e9,
                   group.ns / 1e3, group.once ? ", of weights alone: once" : "");
    if (!explain) continue;
    fmt::format_to(out, "  computes {}\n  reads {}\n  writes {}\n", KindsOf(plan, group),
                   Listed(group.inputs), Listed(group.outputs));
    for (const Boundary& boundary : plan.boundaries) {
      if (boundary.to == i)
        fmt::format_to(out, "  apart from group {} at {} ({}, {:.4g} MB): {}\n", boundary.from + 1,
                       boundary.value, boundary.type.ToString(), boundary.bytes / 1e6,
                       boundary.explanation);
    }
  }
  for (const std::string& rounding : plan.roundings)
    fmt::format_to(out, "rounding kept at {}\n", rounding);
  return text;
}

Json JsonOf(const FusionPlan& plan) {
  Json groups = Json::array(), boundaries = Json::array();
  for (const FusedGroup& group : plan.groups) groups.push_back(JsonOf(plan, group));
  for (const Boundary& boundary : plan.boundaries) boundaries.push_back(JsonOf(boundary));
  return {{"name", plan.name},           {"nodes", NodesOf(plan.graph)},
          {"groups", std::move(groups)}, {"boundaries", std::move(boundaries)},
          {"roundings", plan.roundings}, {"before", JsonOf(plan.before)},
          {"after", JsonOf(plan.after)}, {"flops", plan.flops},
          {"predicted_ns", plan.ns}};
}

std::string DotOf(const FusionPlan& plan) {
  const std::vector<int> groups = GroupsOfNodes(plan);
  std::string text = fmt::format("digraph {} {{\n", Quoted(plan.name));
  const auto out = std::back_inserter(text);
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    fmt::format_to(out, "  subgraph cluster_{} {{\n    label={};\n", i,
                   Quoted(fmt::format("{}: {}", i + 1, plan.groups[i].family)));
    for (const graph::NodeId id : plan.groups[i].nodes)
      AppendNode(text, plan.graph, static_cast<size_t>(id), "    ");
    text += "  }\n";
  }
  for (size_t id = 0; id < groups.size(); ++id) {
    const graph::Node& node = plan.graph.nodes()[id];
    if (groups[id] < 0) AppendNode(text, plan.graph, id, "  ");
    for (const graph::NodeId operand : node.operands)
      fmt::format_to(out, "  n{} -> n{};\n", operand, id);
  }
  for (size_t i = 0; i < plan.graph.outputs().size(); ++i) {
    const graph::Output& output = plan.graph.outputs()[i];
    fmt::format_to(out, "  o{0} [label={1}, shape=box];\n  n{2} -> o{0};\n", i, Quoted(output.name),
                   output.node);
  }
  return text + "}\n";
}

}  // namespace atunner::fusion
