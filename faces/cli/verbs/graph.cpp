// `graph`: what was read of a model or a graph, and which kernels will compute it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "atunner/base/files.h"
#include "atunner/device/profiles.h"
#include "atunner/fusion/fusion_plan.h"
#include "atunner/fusion/plan_text.h"
#include "atunner/graph/operation.h"
#include "atunner/importers/import_model.h"
#include "faces/cli/flags/model_source.h"
#include "faces/cli/output/render.h"
#include "faces/cli/verbs/verb_list.h"

namespace atunner::cli {
namespace {

struct GraphFlags {
  std::string file;
  std::string target = "H100";
  std::string dot;
};

std::string_view NameOf(importers::InputKind kind) {
  switch (kind) {
    case importers::InputKind::kUser:
      return "user";
    case importers::InputKind::kParameter:
      return "parameter";
    case importers::InputKind::kBuffer:
      return "buffer";
    case importers::InputKind::kConstant:
      return "constant";
  }
  return "";
}

/// How often each kind of node is in the graph.
std::map<std::string, int> KindsOf(const graph::ValidGraph& graph) {
  std::map<std::string, int> kinds;
  for (const graph::Node& node : graph.nodes()) {
    if (node.As<graph::Input>()) continue;
    const std::string name = graph::CallName(node.operation);
    ++kinds[!name.empty() ? name : node.As<graph::Map>() ? "map" : "constant"];
  }
  return kinds;
}

Json JsonOfInputs(const ModelSource& source) {
  Json inputs = Json::array();
  for (size_t i = 0; i < source.graph.inputs().size(); ++i) {
    const graph::Node& node = source.graph.node(source.graph.inputs()[i]);
    Json input{{"name", node.name}, {"type", node.type.ToString()}};
    if (source.model) {
      const importers::ModelInput& from = source.model->inputs[i];
      input["kind"] = NameOf(from.kind);
      if (!from.qualified_name.empty()) input["qualified_name"] = from.qualified_name;
      if (from.place) {
        input["file"] = from.place->file;
        input["offset"] = from.place->file_offset;
      }
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

double BytesOfEnds(const graph::ValidGraph& graph) {
  double bytes = 0;
  for (const graph::NodeId input : graph.inputs())
    bytes += fusion::BytesOf(graph.node(input).type, {});
  for (const graph::Output& output : graph.outputs())
    bytes += fusion::BytesOf(graph.node(output.node).type, {});
  return bytes;
}

Json JsonOf(const ModelSource& source, const fusion::FusionPlan& plan) {
  Json outputs = Json::array();
  for (const graph::Output& output : source.graph.outputs())
    outputs.push_back(
        {{"name", output.name}, {"type", source.graph.node(output.node).type.ToString()}});
  Json operators = Json::object();
  Json notes = Json::array();
  if (source.model) {
    for (const auto& [name, count] : source.model->operators) operators[name] = count;
    for (const std::string& note : source.model->notes) notes.push_back(note);
  }
  Json fused = fusion::JsonOf(plan);
  return {{"name", source.graph.name()},
          {"nodes", source.graph.nodes().size() - source.graph.inputs().size()},
          {"kinds", KindsOf(source.graph)},
          {"operators", operators},
          {"inputs", JsonOfInputs(source)},
          {"outputs", outputs},
          {"bytes", BytesOfEnds(source.graph)},
          {"flops", plan.flops},
          {"kernels", plan.after.launches},
          {"parts", fused["groups"]},
          {"boundaries", fused["boundaries"]},
          {"notes", notes}};
}

std::string Counted(const std::map<std::string, int>& counts) {
  std::vector<std::string> texts;
  for (const auto& [name, count] : counts)
    texts.push_back(count == 1 ? name : fmt::format("{} × {}", count, name));
  return fmt::format("{}", fmt::join(texts, ", "));
}

void PrintText(const ModelSource& source, const fusion::FusionPlan& plan, bool explain) {
  fmt::print("{}: {} nodes, {:.3g} MB in and out\n", source.graph.name(),
             source.graph.nodes().size() - source.graph.inputs().size(),
             BytesOfEnds(source.graph) / 1e6);
  if (source.model) {
    fmt::print("operators: {}\n", Counted(source.model->operators));
    for (const std::string& note : source.model->notes) fmt::print("note: {}\n", Printable(note));
  }
  fmt::print("nodes: {}\n", Counted(KindsOf(source.graph)));
  fmt::print("{}", Printable(fusion::TextOf(plan, explain)));
}

/// The graph in Graphviz's language.
std::string DotOf(const graph::ValidGraph& graph) {
  std::string text = fmt::format("digraph {} {{\n", graph.name());
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    const graph::Node& node = graph.nodes()[id];
    const std::string call = graph::CallName(node.operation);
    const std::string label = node.As<graph::Input>() ? node.name
                              : !call.empty()         ? call
                              : node.As<graph::Map>() ? "map"
                                                      : "constant";
    text += fmt::format("  n{} [label=\"{}\\n{}\"{}];\n", id, label, node.type.ToString(),
                        node.As<graph::Input>() ? ", shape=box" : "");
    for (const graph::NodeId operand : node.operands)
      text += fmt::format("  n{} -> n{};\n", operand, id);
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    text += fmt::format("  o{0} [label=\"{1}\", shape=box];\n  n{2} -> o{0};\n", i,
                        graph.outputs()[i].name, graph.outputs()[i].node);
  return text + "}\n";
}

Result<int> Graph(const GraphFlags& flags, const Context& context) {
  ATUNNER_TRY(const ModelSource source, ReadModelSource(flags.file));
  if (!flags.dot.empty()) ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(flags.dot, DotOf(source.graph)));
  ATUNNER_TRY(const DeviceProfile profile, FindProfile(flags.target));
  const fusion::PlanRequest request{.inputs = InputFacts(source)};
  ATUNNER_TRY(const fusion::FusionPlan plan, fusion::PlanFusion(source.graph, request, profile));
  if (context.common.json)
    PrintJson(JsonOf(source, plan));
  else
    PrintText(source, plan, context.common.explain);
  return 0;
}

}  // namespace

void AddGraph(VerbList& verbs) {
  const auto flags = std::make_shared<GraphFlags>();
  CLI::App* verb = verbs.Add("graph", "what is read of a model, and which kernels compute it",
                             [flags](const Context& c) { return Graph(*flags, c); });
  verb->add_option("file", flags->file,
                   "model.pt2 or model.json: a PyTorch program; file.atg: a graph in text form")
      ->required();
  verb->add_option("--target-gpu", flags->target, "the GPU whose kernels are counted");
  verb->add_option("--dot", flags->dot, "write the graph in Graphviz's language to this file");
}

}  // namespace atunner::cli
