#include "atunner/fusion/fusion_plan.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "atunner/codegen/stages.h"
#include "atunner/codegen/template/family.h"
#include "atunner/fusion/boundaries.h"
#include "atunner/graph/rewrite/rewrite.h"
#include "atunner/model/value/capabilities.h"
#include "atunner/operators/graph_operator.h"

namespace atunner::fusion {
namespace {

using graph::ValidGraph;

/// The kernels of the default configuration.
struct Kernels {
  size_t launches = 0;
  double ns = 0;
};
/// The family and the kernels of each distinct task, by the first stage that has it (Stage::like).
struct KnownTask {
  std::string family;
  Kernels kernels;
};
using KnownTasks = std::map<size_t, KnownTask>;

Result<Kernels> KernelsOf(const Task& task, const DeviceProfile& profile) {
  const KernelSpec& spec = task.spec();
  ATUNNER_TRY(const std::unique_ptr<ScheduleTemplate> schedule, MakeTemplate(task, profile));
  ATUNNER_TRY(const RenderedKernel rendered, schedule->Render(schedule->Default()));
  Kernels kernels{.launches = rendered.plan.steps.size()};
  const double moved = MinimumBytes(spec, spec.dims).value_or(0) / profile.dram_gbps;
  const double launches = kLaunchNs * static_cast<double>(kernels.launches);
  kernels.ns = std::max(schedule->Cost(schedule->Default(), profile).value_or(0), moved + launches);
  return kernels;
}

std::string FamilyName(const Task& task) {
  const Family* family = FamilyOf(task, /*partitions=*/false);
  return family == nullptr ? "plain kernels" : std::string(family->name);
}

Result<KnownTask> TaskOf(const Stage& stage, const DeviceProfile& profile, KnownTasks& known) {
  if (const auto found = known.find(stage.like); found != known.end()) return found->second;
  ATUNNER_TRY(const Kernels kernels, KernelsOf(stage.task.task, profile));
  return known[stage.like] = {FamilyName(stage.task.task), kernels};
}

/// True for a part that reads no input that varies, and no result of a part that does.
bool IsComputedOnce(const ValidGraph& part, const std::set<std::string>& varying) {
  return std::ranges::none_of(
      part.inputs(), [&](graph::NodeId input) { return varying.contains(part.node(input).name); });
}

std::set<std::string> VaryingInputs(const ValidGraph& graph, const PlanRequest& request) {
  std::set<std::string> varying;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const bool weight = i < request.inputs.size() && request.inputs[i].weight;
    if (!weight) varying.insert(graph.node(graph.inputs()[i]).name);
  }
  return varying;
}

/// The graph as one stage, for graphs that one family computes at once.
Stages WholeGraph(const Task& task) {
  const ValidGraph& graph = *task.fused();
  std::vector<graph::NodeId> nodes;
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    if (!graph.nodes()[id].As<graph::Input>()) nodes.push_back(static_cast<graph::NodeId>(id));
  }
  Stages stages{graph, {}};
  stages.stages.push_back({graph, {.task = task, .names = {}}, std::move(nodes), 0});
  return stages;
}

Stages Divided(const Task& task, bool pairs) {
  if (FamilyOf(task, /*partitions=*/false) != nullptr) return WholeGraph(task);
  auto stages = StagesOf(task, pairs);
  return stages ? *std::move(stages) : WholeGraph(task);
}

Result<FusedGroup> GroupOf(const Stage& stage, const DeviceProfile& profile, const Dims& sizes,
                           KnownTasks& known) {
  const KernelSpec& spec = stage.task.task.spec();
  ATUNNER_TRY(const KnownTask task, TaskOf(stage, profile, known));
  FusedGroup group{.family = task.family, .nodes = stage.nodes};
  for (const graph::NodeId input : stage.part.inputs()) {
    const graph::Node& node = stage.part.node(input);
    group.inputs.push_back(node.name);
    group.bytes += BytesOf(node.type, sizes);
  }
  for (const graph::Output& output : stage.part.outputs()) {
    group.outputs.push_back(output.name);
    group.bytes += BytesOf(stage.part.node(output.node).type, sizes);
  }
  group.flops = FlopCount(spec, spec.dims).value_or(0);
  group.launches = task.kernels.launches;
  group.ns = task.kernels.ns;
  return group;
}

Status AddGroups(FusionPlan& plan, const Stages& stages, const PlanRequest& request,
                 const DeviceProfile& profile) {
  std::set<std::string> varying = VaryingInputs(plan.graph, request);
  KnownTasks known;
  for (const Stage& stage : stages.stages) {
    ATUNNER_TRY(FusedGroup group, GroupOf(stage, profile, request.sizes, known));
    group.once = IsComputedOnce(stage.part, varying);
    plan.flops += group.flops;
    if (!group.once) {
      varying.insert(group.outputs.begin(), group.outputs.end());
      plan.after.launches += group.launches;
      plan.after.bytes += group.bytes;
      plan.ns += group.ns;
    }
    plan.groups.push_back(std::move(group));
  }
  return {};
}

}  // namespace

std::string_view Name(BoundaryReason reason) {
  switch (reason) {
    case BoundaryReason::kSeveralUsers:
      return "several_users";
    case BoundaryReason::kAnchors:
      return "two_anchors";
    case BoundaryReason::kNoFamily:
      return "no_family";
    case BoundaryReason::kSmallReduction:
      return "small_reduction";
    case BoundaryReason::kCostsMore:
      return "costs_more";
    case BoundaryReason::kBetween:
      return "group_between";
  }
  return "";
}

Result<FusionPlan> PlanFusion(const ValidGraph& graph, const PlanRequest& request,
                              const DeviceProfile& profile) {
  const ValidGraph simple = graph::Simplify(graph);
  RoundedGraph rounded = WithRoundings(simple, request.roundings);
  ATUNNER_TRY(KernelSpec spec, SpecOfGraph(rounded.graph, request.sizes));
  spec.attributes[std::string(kProductsInOwnType)] = true;
  const Task task = Task::Of(spec);
  const bool pairs = CapabilitiesOf(profile).wgmma;
  const Stages stages = Divided(task, pairs);
  FusionPlan plan{.name = graph.name(),
                  .graph = stages.graph,
                  .roundings = std::move(rounded.kept),
                  .before = TrafficOfNodes(simple, spec.dims)};
  PlanRequest sized = request;
  sized.sizes = spec.dims;
  ATUNNER_RETURN_IF_ERROR(AddGroups(plan, stages, sized, profile));
  plan.boundaries = BoundariesOf(stages, spec.dims, {.pairs = pairs});
  return plan;
}

}  // namespace atunner::fusion
