// `graph`: what was read of a model or a graph, and which kernels will compute it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/device/profiles.h"
#include "atunner/fusion/fusion_plan.h"
#include "atunner/fusion/plan_text.h"
#include "atunner/graph/operation.h"
#include "atunner/graph/text.h"
#include "atunner/importers/divide_model.h"
#include "atunner/importers/import_model.h"
#include "atunner/importers/model_file.h"
#include "faces/cli/flags/model_source.h"
#include "faces/cli/flags/task_flags.h"
#include "faces/cli/output/render.h"
#include "faces/cli/verbs/verb_list.h"

namespace atunner::cli {
namespace {

struct GraphFlags {
  std::string file;
  std::string target = "H100";
  std::string dot;
  std::vector<std::string> dims;
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

Result<fusion::FusionPlan> PlanOf(const ModelSource& source, const std::string& gpu) {
  ATUNNER_TRY(const DeviceProfile profile, FindProfile(gpu));
  const fusion::PlanRequest request{.inputs = InputFacts(source)};
  return fusion::PlanFusion(source.graph, request, profile);
}

/// A model with operators that are left to the framework: the graphs between them.
Result<int> GraphOfDivided(const importers::DividedModel& model, const GraphFlags& flags,
                           const Context& context) {
  if (!flags.dot.empty())
    return Fail(ErrorCode::kUnsupported, "a divided model is not drawn", "--dot");
  Json segments = Json::array();
  Json externs = Json::array();
  for (const auto& step : model.steps) {
    if (const auto* call = std::get_if<importers::ExternCall>(&step)) {
      externs.push_back(
          {{"target", call->target}, {"reads", call->reads}, {"writes", call->writes}});
      if (!context.common.json)
        fmt::print("left to the framework: {} ({})\n", Printable(call->target),
                   Printable(fmt::format("{}", fmt::join(call->writes, ", "))));
      continue;
    }
    const ModelSource source{std::get<importers::ModelSegment>(step).graph, std::nullopt};
    ATUNNER_TRY(const fusion::FusionPlan plan, PlanOf(source, flags.target));
    if (!context.common.json) PrintText(source, plan, context.common.explain);
    segments.push_back(JsonOf(source, plan));
  }
  if (context.common.json)
    PrintJson({{"segments", segments}, {"externs", externs}, {"notes", model.notes}});
  return 0;
}

/// The division of a model, if an operator of it is unknown.
Result<std::optional<importers::DividedModel>> DividedModelOf(const std::string& path) {
  if (!importers::IsModelFile(path) || importers::IsOnnxFile(path)) return std::nullopt;
  ATUNNER_TRY(const importers::ModelFile file, importers::ReadModelFile(path));
  const std::vector<bool> needed = importers::NeededNodes(file.program);
  bool known = true;
  for (size_t i = 0; i < needed.size(); ++i)
    known = known && (!needed[i] || importers::KnowsOperator(file.program.nodes[i].target));
  if (known) return std::nullopt;
  return importers::DivideModel(file, importers::GraphNameOf(path));
}

Result<int> Graph(GraphFlags flags, const Context& context) {
  ATUNNER_TRY(const auto exported, ExportIfPython(flags.file));
  ATUNNER_TRY(const auto divided, DividedModelOf(flags.file));
  if (divided) return GraphOfDivided(*divided, flags, context);
  ATUNNER_TRY(const Dims sizes, SizesOfAxes(flags.dims));
  ATUNNER_TRY(const ModelSource source, ReadModelSource(flags.file, sizes));
  if (!flags.dot.empty()) ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(flags.dot, DotOf(source.graph)));
  ATUNNER_TRY(const fusion::FusionPlan plan, PlanOf(source, flags.target));
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
  verb->add_option(
          "file", flags->file,
          "model.pt2 or model.json: a PyTorch program; model.py[:CLASS]: exported by python3; "
          "file.atg: a graph in text form")
      ->required();
  verb->add_option("--dim", flags->dims, "size of an open axis of an ONNX model, batch=8");
  verb->add_option("--target-gpu", flags->target, "the GPU whose kernels are counted");
  verb->add_option("--dot", flags->dot, "write the graph in Graphviz's language to this file");
}

}  // namespace atunner::cli
