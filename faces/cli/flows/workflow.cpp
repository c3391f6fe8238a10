// `workflow` and `lineage`: flows of optimisation in rounds, and the kernels that they kept.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "atunner/agents/rounds.h"
#include "atunner/agents/rounds_graph.h"
#include "atunner/agents/story.h"
#include "atunner/workflow/drawing.h"
#include "faces/cli/flows/flow_verbs.h"
#include "faces/cli/output/render.h"
#include "faces/cli/verbs/rounds_output.h"
#include "faces/cli/verbs/verb_list.h"
#include "faces/wiring/flows.h"

namespace atunner::cli {
namespace {

constexpr int kMostFlows = 50;

struct WorkflowFlags {
  std::string action;
  std::string flow = "last";
  int64_t at = 0;
  int rounds = 0;
  bool svg = false;
  std::string answer = "go on";
};

using Flows = workflow::Checkpoints;

Result<int> List(const Context& context, Flows& flows) {
  ATUNNER_TRY(const auto all, flows.Flows(kMostFlows));
  Json json = Json::array();
  for (const workflow::FlowRecord& flow : all) {
    if (context.common.json) {
      json.push_back({{"flow", flow.id},
                      {"graph", flow.graph},
                      {"created", flow.created},
                      {"status", flow.status},
                      {"parent", flow.parent},
                      {"command", flow.title}});
    } else {
      fmt::print("{}",
                 Printable(fmt::format("{:<44} {:<12} {}\n", flow.id, flow.status, flow.title)));
    }
  }
  if (context.common.json)
    PrintJson(json);
  else if (all.empty())
    fmt::print("no flows yet; `atunner optimize … --rounds 3` makes one\n");
  return 0;
}

/// The nodes of a list of tasks, each with its number: "implement ×8".
std::string NodesOf(const std::vector<workflow::Target>& tasks) {
  std::map<std::string, int> counts;
  for (const workflow::Target& task : tasks) ++counts[task.node];
  std::string text;
  for (const auto& [node, count] : counts)
    text += (text.empty() ? "" : ", ") + node + (count > 1 ? fmt::format(" ×{}", count) : "");
  return text.empty() ? "(the end)" : text;
}

Result<int> Show(const WorkflowFlags& flags, const Context& context, Flows& flows) {
  ATUNNER_TRY(const workflow::FlowRecord flow, agents::FindFlow(flows, flags.flow));
  ATUNNER_TRY(const auto checkpoints, flows.List(flow.id));
  ATUNNER_TRY(
      const agents::RoundsState state,
      agents::StateOf(flows, flow.id, flags.at > 0 ? std::optional(flags.at) : std::nullopt));
  if (context.common.json) {
    Json json = ToJson(flow);
    json["checkpoints"] = Json::array();
    for (const workflow::Checkpoint& one : checkpoints) json["checkpoints"].push_back(ToJson(one));
    PrintJson(json);
    return 0;
  }
  std::string text = fmt::format("{}  {}\n{}\n", flow.id, flow.status, flow.title);
  if (!flow.parent.empty())
    text += fmt::format("forked from {} at step {}\n", flow.parent, flow.parent_number);
  if (!flow.error.empty()) text += "error: " + flow.error + "\n";
  text += "\nstep  from  written               origin  next\n";
  for (const workflow::Checkpoint& one : checkpoints)
    text += fmt::format("{:>4}  {:>4}  {:<20}  {:<6}  {}\n", one.number, one.parent, one.created,
                        one.origin, NodesOf(one.next));
  fmt::print("{}\n{}", Printable(text), Printable(agents::StoryOf(state)));
  return 0;
}

Result<int> Draw(const WorkflowFlags& flags, Flows& flows) {
  ATUNNER_TRY(const workflow::FlowRecord flow, agents::FindFlow(flows, flags.flow));
  ATUNNER_TRY(const auto checkpoints, flows.List(flow.id));
  workflow::Visits visits;
  for (size_t i = 0; i + 1 < checkpoints.size(); ++i) {
    for (const workflow::Target& task : checkpoints[i].next) ++visits[task.node];
  }
  const workflow::Graph graph = agents::RoundsGraph(nullptr);
  fmt::print("{}", flags.svg ? SvgOf(graph, visits) : MermaidOf(graph, visits));
  return 0;
}

Result<int> Fork(const WorkflowFlags& flags, const Context& context, Flows& flows) {
  if (flags.at <= 0)
    return Invalid("a fork needs the step where it begins", "--at",
                   "`atunner workflow show` lists the steps");
  Json changes = Json::object();
  if (flags.rounds > 0) changes["rounds"] = flags.rounds;
  ATUNNER_TRY(const std::string id, agents::ForkRounds(flows, flags.flow, flags.at, changes));
  if (context.common.json)
    PrintJson({{"flow", id}});
  else
    fmt::print("{}; `atunner workflow resume {}` runs it\n", id, id);
  return 0;
}

Result<int> Cancel(const WorkflowFlags& flags, const Context& context, Flows& flows) {
  ATUNNER_TRY(const workflow::FlowRecord flow, agents::FindFlow(flows, flags.flow));
  const bool runs = flow.status == "running";
  if (runs)
    ATUNNER_RETURN_IF_ERROR(flows.RequestCancel(flow.id, true));
  else if (flow.status != "finished")
    ATUNNER_RETURN_IF_ERROR(flows.SetStatus(flow.id, "cancelled", ""));
  const std::string status = runs                        ? "will stop when its step ends"
                             : flow.status == "finished" ? "has finished already"
                                                         : "is cancelled";
  if (context.common.json)
    PrintJson({{"flow", flow.id}, {"status", status}});
  else
    fmt::print("{} {}\n", flow.id, status);
  return 0;
}

Result<int> Workflow(const WorkflowFlags& flags, const Context& context) {
  if (flags.action == "resume") return ResumeFlow(context, flags.flow, flags.answer);
  ATUNNER_TRY(const auto flows, OpenFlows(context.common.store));
  if (flags.action == "list") return List(context, *flows);
  if (flags.action == "show") return Show(flags, context, *flows);
  if (flags.action == "graph") return Draw(flags, *flows);
  if (flags.action == "fork") return Fork(flags, context, *flows);
  return Cancel(flags, context, *flows);
}

Result<int> Lineage(const std::string& name, const Context& context) {
  ATUNNER_TRY(const auto flows, OpenFlows(context.common.store));
  ATUNNER_TRY(const workflow::FlowRecord flow, agents::FindFlow(*flows, name));
  ATUNNER_TRY(const agents::RoundsState state, agents::StateOf(*flows, flow.id));
  if (context.common.json)
    PrintJson(agents::LineageJson(state));
  else
    fmt::print("{}", Printable(agents::LineageText(state)));
  return 0;
}

}  // namespace

void AddWorkflow(VerbList& verbs) {
  const auto flags = std::make_shared<WorkflowFlags>();
  CLI::App* verb = verbs.Add("workflow", "flows of `optimize --rounds`: list, show, resume, …",
                             [flags](const Context& c) { return Workflow(*flags, c); });
  verb->add_option("action", flags->action, "list, show, graph, resume, fork or cancel")
      ->required()
      ->check(CLI::IsMember({"list", "show", "graph", "resume", "fork", "cancel"}));
  verb->add_option("run", flags->flow, "flow, beginning of its name, or last");
  verb->add_option("--at", flags->at, "step: show the state there, or fork there");
  verb->add_option("--rounds", flags->rounds, "fork: the new flow's number of rounds");
  verb->add_option("--answer", flags->answer, "resume: the answer to what the flow asks");
  verb->add_flag("--svg", flags->svg, "graph: as SVG instead of Mermaid");
  const auto name = std::make_shared<std::string>("last");
  CLI::App* lineage = verbs.Add("lineage", "the kernels that `optimize --rounds` kept, as a tree",
                                [name](const Context& c) { return Lineage(*name, c); });
  lineage->add_option("run", *name, "flow, beginning of its name, or last");
}

}  // namespace atunner::cli
