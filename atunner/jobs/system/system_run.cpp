#include "atunner/jobs/system/system_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "atunner/fusion/fusion_plan.h"
#include "atunner/importers/import_model.h"
#include "atunner/jobs/system/model_profile.h"
#include "atunner/planning/comm/comm_choice.h"
#include "atunner/planning/parallel/plan_text.h"
#include "atunner/workflow/flow.h"

namespace atunner::jobs {
namespace {

using planning::ParallelPlan;
using planning::ParallelRequest;
using workflow::NodeContext;
using workflow::NodeResult;

constexpr size_t kHotKernels = 8;

/// A plan for one batch.
struct Candidate {
  ParallelRequest request;
  ParallelPlan plan;

  double Rate() const { return static_cast<double>(request.facts.batch) * 1e6 / plan.step_us; }
};

/// What the nodes of the flow work on. The state of the flow says how far they are.
class SystemRun {
 public:
  explicit SystemRun(const SystemConfig& config) { result_.config = config; }

  Result<SystemResult> Run() {
    ATUNNER_TRY(const workflow::Graph graph, BuildGraph());
    workflow::Flow flow(graph, "system");
    ATUNNER_TRY(const workflow::Outcome outcome, flow.Start(Json::object()));
    if (outcome.kind != workflow::Outcome::Kind::kFinished)
      return Fail(ErrorCode::kCancelled, "the flow did not end");
    return std::move(result_);
  }

 private:
  Result<workflow::Graph> BuildGraph() {
    workflow::GraphBuilder builder("system");
    builder.Add(workflow::Appended("done"));
    const auto add = [&](const char* name, Status (SystemRun::*step)()) {
      builder.Node(name, [this, name, step](const NodeContext&) -> Result<NodeResult> {
        ATUNNER_RETURN_IF_ERROR((this->*step)());
        return NodeResult{.updates = {{"done", Json::array({name})}}};
      });
    };
    add("model", &SystemRun::ReadModel);
    add("fusion", &SystemRun::Fuse);
    add("communication", &SystemRun::ReadCommunication);
    add("parallel", &SystemRun::PlanBatches);
    add("choose", &SystemRun::Choose);
    builder.Edge(workflow::kStart, "model").Edge("model", "fusion").Edge("model", "communication");
    builder.Edge("communication", "parallel").Join({"fusion", "parallel"}, "choose");
    builder.Edge("choose", workflow::kEnd);
    return builder.Build();
  }

  Status ReadModel() {
    const SystemConfig& config = result_.config;
    auto model = importers::ImportModel(config.model);
    if (!model) return Fail(model.error().code, model.error().ToString(), "model.file");
    model_.emplace(*std::move(model));
    auto request = ReadParallelRequest({.gpus = config.gpus,
                                        .batch = config.batch,
                                        .capacity_gb = config.memory_gb,
                                        .optimizer_bytes = config.optimizer_bytes},
                                       *model_);
    if (!request)
      return Fail(request.error().code, request.error().ToString(), "the configuration");
    request_ = *std::move(request);
    result_.notes = request_.model.notes;
    return {};
  }

  /// Which nodes share a kernel, and which kernels take longest.
  Status Fuse() {
    fusion::PlanRequest request;
    const auto plan = fusion::PlanFusion(model_->graph, request, request_.cluster.device);
    if (!plan) {
      result_.notes.push_back("no plan of kernels: " + plan.error().ToString());
      return {};
    }
    result_.kernels_before = plan->before.launches;
    result_.kernels_after = plan->after.launches;
    result_.bytes_before = plan->before.bytes;
    result_.bytes_after = plan->after.bytes;
    for (size_t i = 0; i < plan->groups.size(); ++i) {
      const auto& group = plan->groups[i];
      result_.hot.push_back({.name = fmt::format("{}, group {}", group.family, i + 1),
                             .us = group.ns / 1e3,
                             .share = plan->ns > 0 ? group.ns / plan->ns : 0});
    }
    std::ranges::stable_sort(result_.hot, std::greater<>(), &HotKernel::us);
    result_.hot.resize(std::min(result_.hot.size(), kHotKernels));
    return {};
  }

  /// A table's all-reduces by NCCL's own choice are today's link; with the table's choices the
  /// tuned one.
  Status ReadCommunication() {
    tuned_link_ = request_.cluster.link;
    const std::string& file = result_.config.comm_table;
    if (file.empty()) return {};
    ATUNNER_TRY(const std::string text, ReadFile(file));
    auto table = planning::ReadCommTable(text);
    if (!table) return Invalid(table.error().ToString(), "hardware.comm_table");
    auto link = planning::FitLink(*table);
    if (!link) return Invalid(link.error().ToString(), "hardware.comm_table");
    tuned_link_ = request_.cluster.link = *link;
    const auto decisions = planning::ChooseComm(*table);
    if (!decisions) return {};
    tuned_sizes_ = static_cast<size_t>(std::ranges::count_if(
        *decisions, [](const planning::CommDecision& each) { return each.choice.has_value(); }));
    for (planning::CommRow& row : table->rows) {
      if (row.choice) continue;
      for (const auto& each : *decisions)
        if (each.collective == row.collective && each.bytes == row.bytes) row.us = {each.chosen_us};
    }
    if (auto tuned = planning::FitLink(*table)) tuned_link_ = *tuned;
    return {};
  }

  /// The batch of today and its doublings; for each the plans for time and for memory.
  Status PlanBatches() {
    ParallelRequest request = request_;
    request.cluster.link = tuned_link_;
    const int64_t most = std::max(result_.config.largest_batch, request.facts.batch);
    for (int64_t batch = request.facts.batch; batch <= most; batch *= 2) {
      request.facts.batch = batch;
      for (const auto objective :
           {planning::PlanObjective::kTime, planning::PlanObjective::kMemory}) {
        request.objective = objective;
        const auto plans = planning::PlanParallel(request);
        if (!plans && candidates_.empty()) return std::unexpected(plans.error());
        if (!plans) break;
        candidates_.push_back({request, plans->best});
        for (const ParallelPlan& other : plans->others) candidates_.push_back({request, other});
      }
    }
    return {};
  }

  Status Choose() {
    const double limit = result_.config.step_ms * 1e3;
    const double fastest = std::ranges::min(candidates_, {}, [](const Candidate& c) {
                             return c.plan.step_us;
                           }).plan.step_us;
    if (limit > 0)
      std::erase_if(candidates_, [&](const auto& c) { return c.plan.step_us > limit; });
    if (candidates_.empty())
      return Fail(ErrorCode::kUnsupported,
                  fmt::format("no plan has steps of {:.2f} ms or less; the fastest takes {:.2f} ms",
                              limit / 1e3, fastest / 1e3),
                  "limits.step_ms");
    const Candidate& best = BestFor(result_.config.objective);
    result_.request = best.request;
    result_.plan = best.plan;
    Explain(best);
    AddSteps(best);
    AddChanges(best);
    return {};
  }

  /// The smaller the better.
  double Score(const Candidate& c, SystemObjective objective) const {
    switch (objective) {
      case SystemObjective::kThroughput:
        return 1 / c.Rate();
      case SystemObjective::kLatency:
        return c.plan.step_us;
      case SystemObjective::kMemory:
        return c.plan.bytes;
      case SystemObjective::kWeights:
        break;
    }
    const SystemConfig& config = result_.config;
    return config.throughput_weight * Relative(c, SystemObjective::kThroughput) +
           config.latency_weight * Relative(c, SystemObjective::kLatency) +
           config.memory_weight * Relative(c, SystemObjective::kMemory);
  }

  /// 0 for the best one; 1 is twice as bad.
  double Relative(const Candidate& candidate, SystemObjective objective) const {
    return std::log2(Score(candidate, objective) / Score(BestFor(objective), objective));
  }

  const Candidate& BestFor(SystemObjective objective) const {
    return *std::ranges::min_element(candidates_, {},
                                     [&](const Candidate& c) { return Score(c, objective); });
  }

  static std::string Describe(const Candidate& c) {
    return fmt::format("batch {}: {}; {:.2f} ms a step, {:.1f} samples/s, {:.1f} GB",
                       c.request.facts.batch, planning::ToString(c.plan.strategy),
                       c.plan.step_us / 1e3, c.Rate(), c.plan.bytes / 1e9);
  }

  void Explain(const Candidate& best) {
    result_.explanation = fmt::format("objective {}: {}", Name(result_.config.objective),
                                      Describe(best));
    for (const auto objective :
         {SystemObjective::kThroughput, SystemObjective::kLatency, SystemObjective::kMemory}) {
      if (objective == result_.config.objective) continue;
      result_.explanation += fmt::format("\nfor {} alone: {}", Name(objective),
                                         Describe(BestFor(objective)));
    }
  }

  /// Data parallelism alone, as DistributedDataParallel does it. Recomputes what does not fit.
  std::optional<ParallelPlan> Plain(const ParallelRequest& request) const {
    const planning::ParallelStrategy strategy{.data = request.cluster.gpus};
    ParallelPlan plan = planning::PlanStrategy(request, strategy, request.facts.capacity);
    if (plan.stages.empty()) return std::nullopt;
    return plan;
  }

  void AddStep(const std::string& name, const ParallelRequest& request, const ParallelPlan& plan,
               const std::string& reason) {
    result_.steps.push_back(
        {.name = name,
         .step_us = plan.step_us,
         .samples_per_second = static_cast<double>(request.facts.batch) * 1e6 / plan.step_us,
         .bytes = plan.bytes,
         .reason = reason});
  }

  /// The run of today, then one change after the other.
  void AddSteps(const Candidate& best) {
    ParallelRequest fused = request_, eager = request_;
    eager.model = *ProfileOfModel(*model_, Kernels::kEachNode);
    const auto today = Plain(eager), faster = Plain(fused);
    if (today && faster) {
      AddStep("today", eager, *today, "each operator a kernel, data parallelism alone");
      AddStep("fused kernels", fused, *faster, "values between fused nodes stay in registers");
    } else {
      result_.notes.emplace_back("data parallelism alone does not fit: there is no run of today");
    }
    ParallelRequest planned = request_;
    planned.objective = best.request.objective;
    if (const auto plans = planning::PlanParallel(planned);
        plans && best.request.facts.batch != request_.facts.batch)
      AddStep("parallel plan", planned, plans->best, planning::ToString(plans->best.strategy));
    ParallelRequest own = best.request;
    own.cluster.link = request_.cluster.link;
    const ParallelPlan untuned = planning::PlanStrategy(own, best.plan.strategy,
                                                        best.plan.bytes * 1.000001);
    AddStep(best.request.facts.batch == request_.facts.batch ? "parallel plan" : "batch and plan",
            own, untuned, planning::ToString(best.plan.strategy));
    if (tuned_sizes_ > 0)
      AddStep("tuned collectives", best.request, best.plan,
              fmt::format("{} sizes beat NCCL's own choice in the table", tuned_sizes_));
    AddShares();
  }

  double Value(const SystemStep& step) const {
    switch (result_.config.objective) {
      case SystemObjective::kLatency:
        return step.step_us;
      case SystemObjective::kMemory:
        return step.bytes;
      default:
        return 1 / step.samples_per_second;
    }
  }

  void AddShares() {
    auto& steps = result_.steps;
    const double whole = std::log(Value(steps.front()) / Value(steps.back()));
    for (size_t i = 1; i < steps.size() && whole != 0; ++i)
      steps[i].share = std::log(Value(steps[i - 1]) / Value(steps[i])) / whole;
  }

  void AddChanges(const Candidate& best) {
    ParallelPlan plain{.strategy = {.data = request_.cluster.gpus}};
    Json today = planning::TorchSettings(request_, plain).flatten();
    if (today.contains("/DistributedDataParallel/bucket_cap_mb")) {
      today["/DistributedDataParallel/bucket_cap_mb"] = 25;  // PyTorch's default
      today["/DistributedDataParallel/gradient_as_bucket_view"] = false;
    }
    const Json after = planning::TorchSettings(best.request, best.plan).flatten();
    std::set<std::string> keys;
    for (const Json* each : std::initializer_list<const Json*>{&today, &after})
      for (const auto& [key, value] : each->items()) keys.insert(key);
    const auto text = [](const Json& json, const std::string& key) {
      return json.contains(key) ? DumpJson(json[key]) : std::string("-");
    };
    for (const std::string& key : keys)
      if (text(today, key) != text(after, key))
        result_.changes.push_back({key.substr(1), text(today, key), text(after, key)});
    if (best.request.facts.batch != request_.facts.batch)
      result_.changes.push_back({"batch", std::to_string(request_.facts.batch),
                                 std::to_string(best.request.facts.batch)});
  }

  SystemResult result_;
  std::optional<importers::ImportedModel> model_;
  ParallelRequest request_;
  planning::LinkModel tuned_link_;
  size_t tuned_sizes_ = 0;
  std::vector<Candidate> candidates_;
};

}  // namespace

Result<SystemResult> OptimizeSystem(const SystemConfig& config) { return SystemRun(config).Run(); }

}  // namespace atunner::jobs
