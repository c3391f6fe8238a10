#include "atunner/fusion/training_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "atunner/fusion/plan_text.h"

namespace atunner::fusion {
namespace {

std::string_view NameOf(StepRole role) {
  switch (role) {
    case StepRole::kLoss:
      return "loss";
    case StepRole::kGradient:
      return "gradient";
    case StepRole::kUpdate:
      return "update";
    case StepRole::kResult:
      break;
  }
  return "result";
}

std::string NumbersOf(const std::vector<size_t>& groups) {
  std::vector<size_t> numbers;
  for (const size_t group : groups) numbers.push_back(group + 1);
  return numbers.empty() ? "nothing" : fmt::format("{}", fmt::join(numbers, ", "));
}

/// The largest number of groups of one level.
size_t WidthOf(const TrainingPlan& plan) {
  std::map<size_t, size_t> widths;
  size_t most = 0;
  for (const GroupTiming& group : plan.groups) most = std::max(most, ++widths[group.level]);
  return most;
}

void AppendMemory(std::string& text, const TrainingPlan& plan) {
  fmt::format_to(std::back_inserter(text),
                 "memory: {:.4g} MB of weights, states and batch, {:.4g} MB saved for the backward "
                 "pass, peak {:.4g} MB at group {}\n",
                 plan.persistent_bytes / 1e6, plan.saved_bytes / 1e6, plan.peak_bytes / 1e6,
                 plan.peak_group + 1);
}

Json MemoryJson(const TrainingPlan& plan) {
  return {{"persistent_bytes", plan.persistent_bytes},
          {"saved_bytes", plan.saved_bytes},
          {"peak_bytes", plan.peak_bytes},
          {"peak_group", plan.peak_group + 1}};
}

const char* ColourOf(const Phases& phases) {
  if (phases.forward && (phases.backward || phases.optimizer)) return "plum";
  if (phases.forward) return "lightblue";
  if (phases.backward && phases.optimizer) return "gold";
  return phases.backward ? "lightsalmon" : "palegreen";
}

}  // namespace

std::string TextOf(const TrainingPlan& plan, bool explain) {
  std::string text = TextOf(plan.fusion, explain);
  const auto out = std::back_inserter(text);
  fmt::format_to(out,
                 "step: {:.4g} us one after the other, {:.4g} us on the critical path; up to {} "
                 "independent groups\n",
                 plan.fusion.ns / 1e3, plan.critical_ns / 1e3, WidthOf(plan));
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    const GroupTiming& group = plan.groups[i];
    fmt::format_to(out, "group {}: {}, level {}, from {:.4g} us{}, waits for {}, {:.4g} MB live\n",
                   i + 1, group.phases.ToString(), group.level, group.starts_ns / 1e3,
                   group.critical ? ", critical" : "", NumbersOf(group.needs),
                   group.live_bytes / 1e6);
  }
  for (const StepValue& value : plan.values) {
    if (explain)
      fmt::format_to(out, "{} {}: group {}, behind {}, ready at {:.4g} us\n",
                     NameOf(value.output.role),
                     value.output.of.empty() ? value.output.name : value.output.of, value.group + 1,
                     Counted(value.waits_for, "group"), value.ready_ns / 1e3);
  }
  for (const NamedFusion& fusion : plan.fusions)
    fmt::format_to(out, "fused in group {} ({}): {}{}\n", fusion.group + 1,
                   Counted(plan.fusion.groups[fusion.group].launches, "kernel"), fusion.name,
                   explain ? ": " + fusion.reason : "");
  AppendMemory(text, plan);
  return text;
}

Json JsonOf(const TrainingPlan& plan) {
  Json json = JsonOf(plan.fusion);
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    const GroupTiming& timing = plan.groups[i];
    Json& group = json["groups"][i];
    group["phases"] = timing.phases.ToString();
    group["level"] = timing.level;
    group["needs"] = Json::array();
    for (const size_t needed : timing.needs) group["needs"].push_back(needed + 1);
    group["starts_ns"] = timing.starts_ns;
    group["critical"] = timing.critical;
    group["live_bytes"] = timing.live_bytes;
  }
  json["values"] = Json::array();
  for (const StepValue& value : plan.values)
    json["values"].push_back({{"name", value.output.name},
                              {"role", NameOf(value.output.role)},
                              {"of", value.output.of},
                              {"group", value.group + 1},
                              {"waits_for", value.waits_for},
                              {"ready_ns", value.ready_ns}});
  json["fusions"] = Json::array();
  for (const NamedFusion& fusion : plan.fusions)
    json["fusions"].push_back(
        {{"name", fusion.name}, {"group", fusion.group + 1}, {"reason", fusion.reason}});
  json["critical_ns"] = plan.critical_ns;
  json["memory"] = MemoryJson(plan);
  return json;
}

std::string DotOf(const TrainingPlan& plan) {
  std::string text = fmt::format("digraph {} {{\n  node [shape=box, style=filled];\n",
                                 Quoted(plan.fusion.name));
  const auto out = std::back_inserter(text);
  std::map<size_t, std::vector<std::string>> levels;
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    const GroupTiming& group = plan.groups[i];
    levels[group.level].push_back(fmt::format("g{}", i + 1));
    fmt::format_to(
        out, "  g{} [label={}, fillcolor={}{}];\n", i + 1,
        Quoted(fmt::format("{}: {}\\n{}\\n{:.3g} us", i + 1, plan.fusion.groups[i].family,
                           group.phases.ToString(), plan.fusion.groups[i].ns / 1e3)),
        ColourOf(group.phases), group.critical ? ", penwidth=3" : "");
    for (const size_t needed : group.needs)
      fmt::format_to(out, "  g{} -> g{};\n", needed + 1, i + 1);
  }
  for (const auto& [level, groups] : levels)
    fmt::format_to(out, "  {{rank=same; {};}}\n", fmt::join(groups, "; "));
  return text + "}\n";
}

std::string PredictionText(const TrainingPlan& plan, const std::string& target) {
  std::string text = fmt::format(
      "{} on {}: {:.4g} us per step predicted, {:.4g} steps/s, {} launches\n", plan.fusion.name,
      target, plan.fusion.ns / 1e3, 1e9 / plan.fusion.ns, plan.fusion.after.launches);
  const auto out = std::back_inserter(text);
  for (size_t i = 0; i < plan.groups.size(); ++i)
    fmt::format_to(out, "{:>10.4g} us  {:<28} {:<20} {:.4g} MB live\n",
                   plan.fusion.groups[i].ns / 1e3, plan.groups[i].phases.ToString(),
                   plan.fusion.groups[i].family, plan.groups[i].live_bytes / 1e6);
  AppendMemory(text, plan);
  return text;
}

Json PredictionJson(const TrainingPlan& plan, const std::string& target) {
  Json groups = Json::array();
  for (size_t i = 0; i < plan.groups.size(); ++i)
    groups.push_back({{"family", plan.fusion.groups[i].family},
                      {"phases", plan.groups[i].phases.ToString()},
                      {"predicted_ns", plan.fusion.groups[i].ns},
                      {"launches", plan.fusion.groups[i].launches},
                      {"live_bytes", plan.groups[i].live_bytes}});
  return {{"name", plan.fusion.name},
          {"gpu", target},
          {"predicted_ns", plan.fusion.ns},
          {"critical_ns", plan.critical_ns},
          {"launches", plan.fusion.after.launches},
          {"groups", std::move(groups)},
          {"memory", MemoryJson(plan)}};
}

std::string PredictionText(const std::vector<BatchPrediction>& rows, const std::string& target) {
  std::string text = fmt::format("{} on {}, predicted\n{:>10}{:>15}{:>13}{:>15}{:>11}{:>15}\n",
                                 rows.empty() ? "step" : rows[0].plan.fusion.name, target, "batch",
                                 "step", "steps/s", "samples/s", "launches", "peak memory");
  for (const BatchPrediction& row : rows) {
    const double ns = row.plan.fusion.ns;
    fmt::format_to(std::back_inserter(text),
                   "{:>10}{:>12.4g} us{:>13.4g}{:>15.4g}{:>11}{:>12.4g} MB\n", row.batch, ns / 1e3,
                   1e9 / ns, 1e9 / ns * static_cast<double>(row.batch),
                   row.plan.fusion.after.launches, row.plan.peak_bytes / 1e6);
  }
  return text;
}

Json PredictionJson(const std::vector<BatchPrediction>& rows, const std::string& target) {
  Json batches = Json::array();
  for (const BatchPrediction& row : rows) {
    Json one = PredictionJson(row.plan, target);
    one["batch"] = row.batch;
    one["samples_per_second"] = 1e9 / row.plan.fusion.ns * static_cast<double>(row.batch);
    batches.push_back(std::move(one));
  }
  return {{"gpu", target}, {"batches", std::move(batches)}};
}

}  // namespace atunner::fusion
