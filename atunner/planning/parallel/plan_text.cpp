#include "atunner/planning/parallel/plan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace atunner::planning {
namespace {

std::string LayersText(const ParallelRequest& request, size_t first, size_t last) {
  const auto& layers = request.model.layers;
  return first + 1 == last ? layers[first].name
                           : layers[first].name + " … " + layers[last - 1].name;
}

std::string StageText(const ParallelRequest& request, const PlannedStage& stage, size_t number) {
  return fmt::format(
      "stage {}  layers {}-{} ({}), {} recomputed, {:.1f} GB, {:.0f} us a microbatch\n", number + 1,
      stage.first + 1, stage.last, LayersText(request, stage.first, stage.last),
      stage.recomputed.size(), stage.cost.bytes / 1e9, stage.cost.us);
}

double Throughput(const ParallelRequest& request, const ParallelPlan& plan) {
  return static_cast<double>(request.facts.batch) * 1e6 / plan.step_us;
}

std::string LineOf(const ParallelRequest& request, const ParallelPlan& plan) {
  return fmt::format("{:>10.2f} ms {:>10.1f} samples/s {:>7.1f} GB  {}\n", plan.step_us / 1e3,
                     Throughput(request, plan), plan.bytes / 1e9, ToString(plan.strategy));
}

std::string Assumptions(const ParallelRequest& request) {
  const ClusterProfile& cluster = request.cluster;
  std::string text = "assumptions\n";
  text += fmt::format(
      "  products reach {:.0f} % of the peak, other kernels {:.0f} % of the bandwidth\n",
      100 * cluster.product_share, 100 * cluster.memory_share);
  text += fmt::format("  all-reduce: {:.1f} us + bytes at {:.0f} GB/s of bus bandwidth ({})\n",
                      cluster.link.alpha_us, cluster.link.bus_gbps, cluster.link.source);
  text += fmt::format(
      "  at most {:.0f} % of gradients' communication runs beside the backward pass\n",
      100 * cluster.overlap_share);
  for (const std::string& note : request.model.notes) text += "  " + note + "\n";
  return text;
}

Json ToJson(const ParallelStrategy& strategy) {
  return Json{{"pipeline", strategy.pipeline}, {"tensor", strategy.tensor},
              {"data", strategy.data},         {"zero", strategy.zero},
              {"sequence", strategy.sequence}, {"microbatches", strategy.microbatches}};
}

Json ToJson(const ParallelRequest& request, const ParallelPlan& plan) {
  Json stages = Json::array();
  for (const PlannedStage& stage : plan.stages) {
    Json recomputed = Json::array();
    for (const size_t layer : stage.recomputed)
      recomputed.push_back(request.model.layers[layer].name);
    stages.push_back({{"first", stage.first},
                      {"last", stage.last - 1},
                      {"recomputed", std::move(recomputed)},
                      {"microbatch_us", stage.cost.us},
                      {"compute_us", stage.cost.compute_us},
                      {"comm_us", stage.cost.comm_us},
                      {"bytes", stage.cost.bytes}});
  }
  return Json{{"strategy", ToJson(plan.strategy)},
              {"text", ToString(plan.strategy)},
              {"predicted",
               {{"step_us", plan.step_us},
                {"samples_per_second", Throughput(request, plan)},
                {"bubble_us", plan.bubble_us},
                {"exposed_us", plan.exposed_us},
                {"bytes", plan.bytes}}},
              {"stages", std::move(stages)}};
}

}  // namespace

std::string ToString(const ParallelStrategy& strategy) {
  std::string text = fmt::format("data {}", strategy.data);
  if (strategy.zero > 0) text += fmt::format(" (ZeRO {})", strategy.zero);
  if (strategy.tensor > 1)
    text += fmt::format(" x tensor {}{}", strategy.tensor, strategy.sequence ? " + sequence" : "");
  if (strategy.pipeline > 1) text += fmt::format(" x pipeline {}", strategy.pipeline);
  return text + fmt::format(", {} microbatch{}", strategy.microbatches,
                            strategy.microbatches == 1 ? "" : "es");
}

std::string TextOf(const ParallelRequest& request, const ParallelPlans& plans, bool explain) {
  const ParallelPlan& best = plans.best;
  double parameters = 0;
  for (const LayerProfile& layer : request.model.layers) parameters += layer.parameters;
  std::string text = fmt::format(
      "{}: {} layers, {:.1f} M parameters; batch {} on {} x {} (all times predicted)\n",
      request.model.name, request.model.layers.size(), parameters / 1e6, request.facts.batch,
      request.cluster.gpus, request.cluster.device.name);
  text += fmt::format("plan     {}\n", ToString(best.strategy));
  text += fmt::format("step     {:.2f} ms, {:.1f} samples/s\n", best.step_us / 1e3,
                      Throughput(request, best));
  text += fmt::format("memory   {:.1f} GB of {:.1f} GB\n", best.bytes / 1e9,
                      request.facts.capacity / 1e9);
  for (size_t i = 0; i < best.stages.size(); ++i) text += StageText(request, best.stages[i], i);
  text += "settings " + DumpJson(TorchSettings(request, best)) + "\n";
  if (!explain) return text;
  text += fmt::format("bubble   {:.2f} ms, exposed communication {:.2f} ms\n", best.bubble_us / 1e3,
                      best.exposed_us / 1e3);
  text += fmt::format("{} strategies, {} do not fit; the next ones:\n", plans.examined,
                      plans.too_large);
  for (const ParallelPlan& other : plans.others) text += LineOf(request, other);
  return text + Assumptions(request);
}

Json TorchSettings(const ParallelRequest& request, const ParallelPlan& plan) {
  Json settings = Json::object();
  const ParallelStrategy& strategy = plan.strategy;
  settings["micro_batch_size"] = request.facts.batch / strategy.data / strategy.microbatches;
  settings["gradient_accumulation_steps"] = strategy.pipeline == 1 ? strategy.microbatches : 1;
  if (strategy.data > 1 && strategy.zero <= 1) {
    settings["DistributedDataParallel"] = {
        {"bucket_cap_mb", BucketMegabytes(request.cluster.link, strategy.data)},
        {"gradient_as_bucket_view", true}};
    if (strategy.zero == 1) settings["ZeroRedundancyOptimizer"] = true;
  } else if (strategy.data > 1) {
    settings["fully_shard"] = {{"reshard_after_forward", strategy.zero == 3}};
  }
  if (strategy.tensor > 1)
    settings["tensor_parallel"] = {{"size", strategy.tensor},
                                   {"sequence_parallel", strategy.sequence}};
  Json checkpointed = Json::array(), splits = Json::array();
  for (const PlannedStage& stage : plan.stages) {
    if (stage.first > 0) splits.push_back(request.model.layers[stage.first].name);
    for (const size_t layer : stage.recomputed)
      checkpointed.push_back(request.model.layers[layer].name);
  }
  if (!checkpointed.empty()) settings["checkpoint_layers"] = std::move(checkpointed);
  if (strategy.pipeline > 1)
    settings["pipeline"] = {{"schedule", "1F1B"},
                            {"split_before", std::move(splits)},
                            {"n_microbatches", strategy.microbatches}};
  return settings;
}

Json ToJson(const ParallelRequest& request, const ParallelPlans& plans) {
  Json json{{"model", request.model.name},        {"layers", request.model.layers.size()},
            {"batch", request.facts.batch},       {"gpus", request.cluster.gpus},
            {"gpu", request.cluster.device.name}, {"capacity_bytes", request.facts.capacity},
            {"notes", request.model.notes}};
  json["plan"] = ToJson(request, plans.best);
  json["settings"] = TorchSettings(request, plans.best);
  json["others"] = Json::array();
  for (const ParallelPlan& other : plans.others) json["others"].push_back(ToJson(request, other));
  json["examined"] = plans.examined;
  json["too_large"] = plans.too_large;
  return json;
}

}  // namespace atunner::planning
