#include "atunner/fusion/boundaries.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "atunner/fusion/traffic.h"
#include "atunner/graph/partition/partition.h"

namespace atunner::fusion {
namespace {

using graph::GraphBuilder;
using graph::Node;
using graph::ValidGraph;
using graph::Value;

/// The costs of pairs that were asked for. Models repeat their layers.
using Known = std::map<Digest, StageCost>;

class BoundaryFinder {
 public:
  BoundaryFinder(const Stages& stages, const Dims& sizes, const StageRules& rules)
      : stages_(stages), sizes_(sizes), rules_(rules) {
    for (size_t i = 0; i < stages.stages.size(); ++i) {
      const ValidGraph& part = stages.stages[i].part;
      for (const graph::Output& output : part.outputs()) makers_[output.name] = i;
      for (const graph::NodeId input : part.inputs()) users_[part.node(input).name].insert(i);
    }
    for (const graph::Output& output : stages.graph.outputs()) results_.insert(output.name);
    reached_.resize(stages.stages.size());
  }

  std::vector<Boundary> Run() {
    std::vector<Boundary> boundaries;
    for (size_t to = 0; to < stages_.stages.size(); ++to) {
      const ValidGraph& part = PartOf(to);
      for (const graph::NodeId input : part.inputs()) {
        const Node& node = part.node(input);
        const auto maker = makers_.find(node.name);
        if (maker == makers_.end()) continue;
        reached_[to].insert(maker->second);
        reached_[to].insert(reached_[maker->second].begin(), reached_[maker->second].end());
        boundaries.push_back({.from = maker->second,
                              .to = to,
                              .value = node.name,
                              .type = node.type,
                              .bytes = BytesOf(node.type, sizes_)});
      }
    }
    for (Boundary& boundary : boundaries) Explain(boundary);
    return boundaries;
  }

 private:
  const ValidGraph& PartOf(size_t stage) const { return stages_.stages[stage].part; }

  void Explain(Boundary& boundary) {
    if (const auto third = Between(boundary)) {
      boundary.reason = BoundaryReason::kBetween;
      boundary.explanation = fmt::format(
          "group {} lies between: it needs group {}, and group {} needs it", *third + 1,
          boundary.from + 1, boundary.to + 1);
      return;
    }
    const StageCost both = CostOfBoth(boundary);
    switch (both.refusal) {
      case StageCost::Refusal::kAnchors:
        boundary.reason = BoundaryReason::kAnchors;
        boundary.explanation =
            "no family computes two products, scans, sorts or scatters in one kernel";
        return;
      case StageCost::Refusal::kNoFamily:
        boundary.reason = BoundaryReason::kNoFamily;
        boundary.explanation = fmt::format("no family computes {} and {} in one kernel",
                                           FamilyName(boundary.from), FamilyName(boundary.to));
        return;
      case StageCost::Refusal::kSmallReduction:
        boundary.reason = BoundaryReason::kSmallReduction;
        boundary.explanation = "a small reduction would be repeated for each element";
        return;
      case StageCost::Refusal::kNone:
      case StageCost::Refusal::kTooMuch:
        break;
    }
    ExplainByCost(boundary, both);
  }

  void ExplainByCost(Boundary& boundary, const StageCost& both) {
    const size_t users = users_[boundary.value].size() + results_.count(boundary.value);
    if (users > 1) {
      boundary.reason = BoundaryReason::kSeveralUsers;
      boundary.explanation = fmt::format("the value has {} users and is stored for them", users);
      return;
    }
    boundary.reason = BoundaryReason::kCostsMore;
    boundary.explanation = fmt::format(
        "as one kernel they cost {:.3g} MB of traffic, as two {:.3g} MB", both.cost / 1e6,
        (CostOf(PartOf(boundary.from)) + CostOf(PartOf(boundary.to))) / 1e6);
  }

  /// A stage that needs the boundary's first and that its second needs.
  std::optional<size_t> Between(const Boundary& boundary) const {
    for (const size_t third : reached_[boundary.to]) {
      if (third != boundary.from && reached_[third].contains(boundary.from)) return third;
    }
    return std::nullopt;
  }

  StageCost CostOfBoth(const Boundary& boundary) {
    const auto joined = Chained(
        PartOf(boundary.from), PartOf(boundary.to), [&](const std::string& output) {
          const auto& users = users_[output];
          return results_.contains(output) || users.size() > 1 || !users.contains(boundary.to);
        });
    if (!joined) return {.refusal = StageCost::Refusal::kNoFamily};
    const auto [known,
                fresh] = known_.try_emplace(graph::WithCanonicalNames(*joined).ContentDigest());
    if (fresh) known->second = CostOfStage(*joined, sizes_, rules_);
    return known->second;
  }
  double CostOf(const ValidGraph& part) const { return CostOfStage(part, sizes_, rules_).cost; }

  const std::string& FamilyName(size_t stage) {
    const Stage& first = stages_.stages[stages_.stages[stage].like];
    std::string& name = families_[stages_.stages[stage].like];
    if (!name.empty()) return name;
    const Family* family = FamilyOf(first.task.task, /*partitions=*/false);
    return name = family == nullptr ? "plain kernels" : fmt::format("'{}'", family->name);
  }

  const Stages& stages_;
  const Dims& sizes_;
  const StageRules rules_;
  std::map<std::string, size_t> makers_;
  std::map<std::string, std::set<size_t>> users_;
  std::set<std::string> results_;
  std::vector<std::set<size_t>> reached_;  ///< by stage: the stages that it needs
  Known known_;
  std::map<size_t, std::string> families_;  ///< by Stage::like
};

}  // namespace

Result<ValidGraph> Chained(const ValidGraph& first, const ValidGraph& second,
                           const std::function<bool(const std::string& output)>& kept) {
  GraphBuilder builder(second.name());
  std::map<std::string, Value> named;
  std::set<std::string> symbols;
  const auto add = [&](const ValidGraph& graph) -> Status {
    for (const auto& [symbol, range] : graph.symbols()) {
      if (symbols.insert(symbol).second) ATUNNER_RETURN_IF_ERROR(builder.Symbol(symbol, range));
    }
    std::vector<Value> values;
    for (const Node& node : graph.nodes()) {
      std::vector<Value> operands;
      for (const graph::NodeId operand : node.operands)
        operands.push_back(values[static_cast<size_t>(operand)]);
      if (!node.As<graph::Input>()) {
        values.push_back(builder.Copy(node, std::move(operands)));
        continue;
      }
      const auto [at, fresh] = named.try_emplace(node.name);
      if (fresh) at->second = builder.Input(node.name, node.type);
      values.push_back(at->second);
    }
    for (const graph::Output& output : graph.outputs()) {
      const Value value = values[static_cast<size_t>(output.node)];
      named[output.name] = value;
      if (&graph == &second || kept(output.name)) builder.Output(output.name, value);
    }
    return {};
  };
  ATUNNER_RETURN_IF_ERROR(add(first));
  ATUNNER_RETURN_IF_ERROR(add(second));
  return std::move(builder).Finish();
}

std::vector<Boundary> BoundariesOf(const Stages& stages, const Dims& sizes,
                                   const StageRules& rules) {
  return BoundaryFinder(stages, sizes, rules).Run();
}

}  // namespace atunner::fusion
