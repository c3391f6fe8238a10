#include "atunner/fusion/training.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "atunner/fusion/training_patterns.h"

namespace atunner::fusion {
namespace {

using graph::ValidGraph;

/// Order, times and memory of the groups of a step.
class StepAnalysis {
 public:
  StepAnalysis(TrainingPlan& plan, const TrainingRequest& request, const std::vector<Phases>& nodes)
      : plan_(plan), request_(request), nodes_(nodes) {
    const std::vector<FusedGroup>& groups = plan.fusion.groups;
    for (size_t i = 0; i < groups.size(); ++i) {
      for (const std::string& output : groups[i].outputs) makers_[output] = i;
    }
    plan_.groups.resize(groups.size());
  }

  void Run() {
    for (size_t i = 0; i < plan_.groups.size(); ++i) Place(i);
    MarkCritical();
    for (const StepOutput& output : request_.outputs) AddValue(output);
    FindMemory();
  }

 private:
  const FusedGroup& Fused(size_t group) const { return plan_.fusion.groups[group]; }
  double EndOf(size_t group) const { return plan_.groups[group].starts_ns + Fused(group).ns; }

  /// Groups stand in an order in which each comes behind those that it needs.
  void Place(size_t group) {
    GroupTiming& timing = plan_.groups[group];
    for (const graph::NodeId id : Fused(group).nodes) {
      const Phases& phases = nodes_[static_cast<size_t>(id)];
      timing.phases.forward |= phases.forward;
      timing.phases.backward |= phases.backward;
      timing.phases.optimizer |= phases.optimizer;
    }
    std::set<size_t> needs;
    for (const std::string& input : Fused(group).inputs) {
      if (const auto maker = makers_.find(input); maker != makers_.end())
        needs.insert(maker->second);
    }
    timing.needs.assign(needs.begin(), needs.end());
    for (const size_t before : timing.needs) {
      timing.level = std::max(timing.level, plan_.groups[before].level + 1);
      timing.starts_ns = std::max(timing.starts_ns, EndOf(before));
    }
    plan_.critical_ns = std::max(plan_.critical_ns, EndOf(group));
  }

  void MarkCritical() {
    std::vector<double> latest(plan_.groups.size(), plan_.critical_ns);  // ends without delay
    for (size_t group = latest.size(); group-- > 0;) {
      GroupTiming& timing = plan_.groups[group];
      const double start = latest[group] - Fused(group).ns;
      timing.critical = start - timing.starts_ns < 1e-6 * plan_.critical_ns;
      for (const size_t before : timing.needs) latest[before] = std::min(latest[before], start);
    }
  }

  std::set<size_t> AllNeeds(size_t group) const {
    std::set<size_t> all;
    std::vector<size_t> open = {group};
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      for (const size_t before : plan_.groups[at].needs) {
        if (all.insert(before).second) open.push_back(before);
      }
    }
    return all;
  }

  void AddValue(const StepOutput& output) {
    const auto maker = makers_.find(output.name);
    if (maker == makers_.end() || output.role == StepRole::kResult) return;
    plan_.values.push_back({.output = output,
                            .group = maker->second,
                            .waits_for = AllNeeds(maker->second).size(),
                            .ready_ns = EndOf(maker->second)});
  }

  /// A value lives from its group to the last one that reads it. Updates take the place of what
  /// they replace; other results live to the end. Groups run in the order of the plan.
  void FindMemory() {
    const ValidGraph& graph = plan_.fusion.graph;
    for (const graph::NodeId input : graph.inputs())
      plan_.persistent_bytes += BytesOf(graph.node(input).type, request_.plan.sizes);
    std::map<std::string, double> bytes;
    std::map<std::string, size_t> last;
    for (const Boundary& boundary : plan_.fusion.boundaries) {
      bytes[boundary.value] = boundary.bytes;
      size_t& user = last[boundary.value];
      user = std::max(user, boundary.to);
    }
    for (const graph::Output& output : graph.outputs()) {
      if (IsUpdate(output.name)) continue;
      bytes[output.name] = BytesOf(graph.node(output.node).type, request_.plan.sizes);
      last[output.name] = plan_.groups.size();
    }
    for (size_t group = 0; group < plan_.groups.size(); ++group) {
      double& live = plan_.groups[group].live_bytes = plan_.persistent_bytes;
      for (const auto& [value, end] : last) {
        const auto maker = makers_.find(value);
        if (maker != makers_.end() && maker->second <= group && group <= end) live += bytes[value];
      }
      if (live > plan_.peak_bytes) plan_.peak_bytes = live, plan_.peak_group = group;
    }
    FindSaved(bytes);
  }

  void FindSaved(const std::map<std::string, double>& bytes) {
    std::set<std::string> saved;
    for (const Boundary& boundary : plan_.fusion.boundaries) {
      const bool read_later = !plan_.groups[boundary.to].phases.forward;
      if (plan_.groups[boundary.from].phases.forward && read_later &&
          saved.insert(boundary.value).second)
        plan_.saved_bytes += bytes.at(boundary.value);
    }
  }

  bool IsUpdate(const std::string& name) const {
    return std::ranges::any_of(request_.outputs, [&](const StepOutput& output) {
      return output.name == name && output.role == StepRole::kUpdate;
    });
  }

  TrainingPlan& plan_;
  const TrainingRequest& request_;
  const std::vector<Phases>& nodes_;
  std::map<std::string, size_t> makers_;  ///< the group of each stored value
};

}  // namespace

std::string Phases::ToString() const {
  std::string text;
  const auto add = [&](bool is, const char* name) {
    if (is) text += (text.empty() ? "" : " + ") + std::string(name);
  };
  add(forward, "forward");
  add(backward, "backward");
  add(optimizer, "optimizer");
  return text.empty() ? "none" : text;
}

Result<TrainingPlan> PlanTraining(const ValidGraph& graph, const TrainingRequest& request,
                                  const DeviceProfile& profile) {
  const bool trains = std::ranges::any_of(request.outputs, [](const StepOutput& output) {
    return output.role == StepRole::kGradient || output.role == StepRole::kUpdate;
  });
  if (!trains)
    return Invalid("no result of the graph is a gradient or an update", graph.name(),
                   "capture the whole step with atunner.capture_step");
  ATUNNER_TRY(FusionPlan fusion, PlanFusion(graph, request.plan, profile));
  const std::vector<Phases> nodes = PhasesOfNodes(fusion.graph, request.outputs);
  TrainingPlan plan{.fusion = std::move(fusion)};
  StepAnalysis(plan, request, nodes).Run();
  plan.fusions = TrainingFusions(plan.fusion, request.outputs, nodes);
  return plan;
}

}  // namespace atunner::fusion
