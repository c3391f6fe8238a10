#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "atunner/base/random.h"
#include "atunner/planning/parallel/parallel_plan.h"
#include "atunner/planning/parallel/plan_text.h"
#include "atunner/planning/parallel/topology.h"

namespace atunner::planning {
namespace {

using testing::HasSubstr;

DeviceProfile Gpu() {
  DeviceProfile device;
  device.name = "H200";
  device.sms = 100;
  device.clock_ghz = 1;
  device.tensor_fp16_fma_per_clk = 4096;
  device.tensor_tf32_fma_per_clk = 2048;
  device.fp32_per_clk = 128;
  device.dram_gbps = 3000;
  device.dram_bytes = int64_t{80} << 30;
  device.launch_overhead_us = 2;
  return device;
}

LayerProfile Layer(const std::string& name, double scale) {
  return {.name = name,
          .kernels = {{.flops = scale * 4e9,
                       .bytes = 4e6,
                       .weight_bytes = scale * 4e7,
                       .product = true,
                       .split = true},
                      {.flops = 1e6, .bytes = scale * 8e6}},
          .parameters = scale * 2e7,
          .split_parameters = scale * 1.9e7,
          .saved_bytes = scale * 3e7,
          .split_saved_bytes = scale * 2e7,
          .output_bytes = 2e6,
          .reduced_bytes = 4e6};
}

ParallelRequest Request(int layers, int gpus, int64_t batch, double capacity) {
  ParallelRequest request;
  request.model = {.name = "test", .parameter_bytes = 2};
  for (int i = 0; i < layers; ++i)
    request.model.layers.push_back(Layer("h." + std::to_string(i), 1 + 0.3 * (i % 3)));
  request.cluster = {.gpus = gpus, .device = Gpu()};
  request.cluster.link = LinkOf(request.cluster.device);
  request.facts = {.batch = batch, .capacity = capacity};
  return request;
}

/// Every division into stages, with every choice of recomputed layers.
double BruteForce(const ParallelRequest& request, const ParallelStrategy& strategy) {
  const CostModel costs(request.model, request.cluster, request.facts, strategy);
  const size_t layers = request.model.layers.size();
  double best = std::numeric_limits<double>::infinity();
  for (uint32_t cuts = 0; cuts < (1u << (layers - 1)); ++cuts) {
    if (std::popcount(cuts) != strategy.pipeline - 1) continue;
    for (uint32_t chosen = 0; chosen < (1u << layers); ++chosen) {
      std::vector<bool> recomputed(layers);
      for (size_t l = 0; l < layers; ++l) recomputed[l] = (chosen >> l & 1) != 0;
      std::vector<StageCost> stages;
      size_t first = 0;
      bool fits = true;
      for (size_t last = 1; last <= layers; ++last) {
        if (last < layers && (cuts >> (last - 1) & 1) == 0) continue;
        stages.push_back(costs.Stage(first, last, static_cast<int>(stages.size()), recomputed));
        fits &= stages.back().bytes <= request.facts.capacity;
        first = last;
      }
      if (fits) best = std::min(best, costs.StepUs(stages));
    }
  }
  return best;
}

class AgainstBruteForce : public testing::TestWithParam<double> {};

TEST_P(AgainstBruteForce, EveryStrategyOfFourGpus) {
  ParallelRequest request = Request(6, 4, 16, GetParam() * 1e9);
  Random random(11);
  for (LayerProfile& layer : request.model.layers) {
    layer = Layer(layer.name, random.Uniform(0.5, 2));
    layer.saved_bytes *= random.Uniform(1, 4);
  }
  size_t compared = 0, possible = 0;
  for (const ParallelStrategy& strategy : Strategies(request)) {
    const double expected = BruteForce(request, strategy);
    const ParallelPlan plan = PlanStrategy(request, strategy, request.facts.capacity);
    ++compared;
    ASSERT_EQ(plan.stages.empty(), std::isinf(expected)) << ToString(strategy);
    if (plan.stages.empty()) continue;
    ++possible;
    EXPECT_NEAR(plan.step_us, expected, 1e-6 * expected) << ToString(strategy);
    EXPECT_LE(plan.bytes, request.facts.capacity);
  }
  EXPECT_GT(compared, 50u);
  EXPECT_GT(possible, 3u);
}

INSTANTIATE_TEST_SUITE_P(Capacities, AgainstBruteForce, testing::Values(0.9, 1.5, 3.0, 50.0));

TEST(ParallelPlan, PlentyOfMemoryNeedsNoRecomputation) {
  const auto plans = PlanParallel(Request(12, 8, 64, 80e9)).value();
  for (const PlannedStage& stage : plans.best.stages) EXPECT_TRUE(stage.recomputed.empty());
  ASSERT_FALSE(plans.others.empty());
  for (const ParallelPlan& other : plans.others) EXPECT_GE(other.step_us, plans.best.step_us);
}

TEST(ParallelPlan, LessMemoryCostsTime) {
  const auto rich = PlanParallel(Request(12, 8, 64, 80e9)).value();
  const auto poor = PlanParallel(Request(12, 8, 64, 1e9)).value();
  EXPECT_GT(poor.best.step_us, rich.best.step_us);
  EXPECT_LE(poor.best.bytes, 1e9);
  EXPECT_GT(poor.too_large, 0u);
}

TEST(ParallelPlan, MemoryAsObjectiveNeedsLess) {
  ParallelRequest request = Request(8, 4, 16, 80e9);
  const auto fastest = PlanParallel(request).value();
  request.objective = PlanObjective::kMemory;
  const auto smallest = PlanParallel(request).value();
  EXPECT_LT(smallest.best.bytes, 0.5 * fastest.best.bytes);
  EXPECT_GE(smallest.best.step_us, fastest.best.step_us);
}

TEST(ParallelPlan, OneGpuHasOneStrategyForEachMicrobatch) {
  const auto strategies = Strategies(Request(3, 1, 8, 1e9));
  ASSERT_EQ(strategies.size(), 4u);
  for (const auto& strategy : strategies)
    EXPECT_EQ(strategy.pipeline * strategy.tensor * strategy.data, 1);
}

TEST(ParallelPlan, MessagesNameTheField) {
  const auto error = [](const ParallelRequest& request) {
    return PlanParallel(request).error().ToString();
  };
  EXPECT_THAT(error(Request(3, 4, 16, 1e6)), HasSubstr("no plan fits into 0.0 GB"));
  EXPECT_THAT(error(Request(3, 4, 0, 1e9)), HasSubstr("request.batch"));
  EXPECT_THAT(error(Request(0, 4, 16, 1e9)), HasSubstr("request.model"));
  ParallelRequest odd = Request(1, 4, 3, 80e9);
  odd.model.layers[0].split_parameters = 0;
  EXPECT_THAT(error(odd), HasSubstr("3 samples cannot be divided among 4 GPUs"));
}

TEST(ParallelPlan, BubbleIsThatOfEqualStages) {
  ParallelRequest request = Request(4, 4, 64, 80e9);
  for (LayerProfile& layer : request.model.layers) {
    layer = Layer(layer.name, 1);
    layer.output_bytes = 0;
  }
  request.cluster.link.alpha_us = 0;
  const ParallelPlan plan = PlanStrategy(request, {.pipeline = 4, .microbatches = 16}, 80e9);
  const double passes = plan.step_us - plan.stages[0].cost.update_us;
  EXPECT_NEAR(plan.bubble_us / passes, 3.0 / 19, 1e-9);  // (p - 1) / (m + p - 1)
}

TEST(ParallelPlan, TextAndSettingsSayWhatWasChosen) {
  const ParallelRequest request = Request(6, 8, 64, 3e9);
  const auto plans = PlanParallel(request).value();
  const std::string text = TextOf(request, plans, true);
  EXPECT_THAT(text, HasSubstr(ToString(plans.best.strategy)));
  EXPECT_THAT(text, HasSubstr("predicted"));
  EXPECT_THAT(text, HasSubstr("assumptions"));
  const Json json = ToJson(request, plans);
  EXPECT_EQ(json["plan"]["stages"].size(), plans.best.stages.size());
  EXPECT_EQ(json["settings"], TorchSettings(request, plans.best));
}

TEST(ParallelPlan, SettingsFollowTheStrategy) {
  const ParallelRequest request = Request(4, 8, 64, 80e9);
  const auto settings = [&](const ParallelStrategy& strategy) {
    return TorchSettings(request, PlanStrategy(request, strategy, 80e9));
  };
  EXPECT_TRUE(settings({.data = 8}).contains("DistributedDataParallel"));
  EXPECT_EQ(settings({.data = 8, .zero = 2})["fully_shard"]["reshard_after_forward"], false);
  EXPECT_EQ(settings({.data = 8, .zero = 3})["fully_shard"]["reshard_after_forward"], true);
  EXPECT_EQ(
      settings({.pipeline = 2, .data = 4, .microbatches = 4})["pipeline"]["split_before"].size(),
      1u);
  EXPECT_EQ(settings({.tensor = 8})["tensor_parallel"]["size"], 8);
}

MeasuredPass Pass(double samples) {
  return {.samples = samples,
          .forward_us = 1000 + 500 * samples,
          .backward_us = 2000 + 1100 * samples,
          .update_us = 700,
          .layers_us = {{"h.0", 100 + 40 * samples}, {"h.1", 200 + 90 * samples}}};
}

TEST(MeasuredPasses, OneGpuTakesWhatWasMeasured) {
  ParallelRequest request = Request(5, 1, 6, 80e9);
  request.model.measured.passes = {Pass(4), Pass(8)};
  const ParallelPlan plan = PlanStrategy(request, {}, 80e9);
  const MeasuredPass expected = Pass(6);
  EXPECT_NEAR(plan.step_us, expected.forward_us + expected.backward_us + 700, 1e-6 * plan.step_us);
  const ParallelPlan twice = PlanStrategy(request, {.microbatches = 2}, 80e9);
  EXPECT_NEAR(twice.step_us, 2 * (Pass(3).forward_us + Pass(3).backward_us) + 700,
              1e-6 * twice.step_us);
}

TEST(MeasuredPasses, ReplicasThatDivideTheStatesDivideTheUpdate) {
  ParallelRequest request = Request(5, 2, 12, 80e9);
  request.cluster.link.alpha_us = 0;
  request.cluster.link.bus_gbps = 1e9;
  request.model.measured.passes = {Pass(6)};
  const double whole = PlanStrategy(request, {.data = 2}, 80e9).step_us;
  const double divided = PlanStrategy(request, {.data = 2, .zero = 1}, 80e9).step_us;
  EXPECT_NEAR(whole - divided, 350, 1);
}

TEST(MeasuredPasses, NoStepIsShorterThanTheHostsWork) {
  ParallelRequest request = Request(5, 2, 12, 80e9);
  request.model.measured = {.passes = {Pass(6)}, .host = {.pass_us = 100, .zero3_us = 50000}};
  const auto step = [&](const ParallelStrategy& strategy) {
    return PlanStrategy(request, strategy, 80e9).step_us;
  };
  EXPECT_LT(step({.data = 2}), 50000);
  EXPECT_EQ(step({.data = 2, .zero = 3}), 50000);
  EXPECT_EQ(step({.data = 2, .zero = 3, .microbatches = 2}), 100000);
}

TEST(MeasuredPasses, TheFileIsReadAndItsFaultsAreNamed) {
  const auto read = ReadMeasuredPasses(
      R"({"measured": [
        {"samples": 8, "forward_ms": 4, "backward_ms": 9, "update_ms": 1, "blocks_ms": {"h": 2}},
        {"samples": 4, "forward_ms": 3, "backward_ms": 5, "update_ms": 1}],
        "host": {"pass_ms": 7}})");
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(read->passes[0].samples, 4);
  EXPECT_EQ(read->passes[1].layers_us.at("h"), 2000);
  EXPECT_EQ(read->host.pass_us, 7000);
  EXPECT_EQ(read->host.zero2_us, 0);
  const auto error = [](const char* text) { return ReadMeasuredPasses(text).error().ToString(); };
  EXPECT_THAT(error("[]"), HasSubstr("measured"));
  EXPECT_THAT(error(R"({"measured": [3]})"), HasSubstr("measured[0]"));
  EXPECT_THAT(error(R"({"measured": [{"samples": 8, "forward_ms": -1}]})"),
              HasSubstr("forward_ms"));
  EXPECT_THAT(error(R"({"measured": [{"samples": 8, "forward_ms": 4, "backward_ms": 9,
                        "update_ms": 1, "blocks_ms": {"h": 0}}]})"),
              HasSubstr("blocks_ms.h"));
  EXPECT_THAT(error(R"({"measured": [
        {"samples": 8, "forward_ms": 4, "backward_ms": 9, "update_ms": 1},
        {"samples": 8, "forward_ms": 4, "backward_ms": 9, "update_ms": 1}]})"),
              HasSubstr("two passes of 8 samples"));
}

TEST(Topology, ParsesCountsOfGpus) {
  EXPECT_EQ(ParseGpus("8xH200", "f").value(), std::pair(8, std::string("H200")));
  for (const char* text : {"", "8", "8x", "xH200", "0xH200", "-2xH100", "H200"})
    EXPECT_FALSE(ParseGpus(text, "f")) << text;
}

TEST(Topology, FitFindsTheLineOfATable) {
  const LinkModel truth{.alpha_us = 14, .bus_gbps = 250};
  CommTable table{.gpus = 2};
  for (int64_t bytes = 1024; bytes <= 1 << 28; bytes *= 4)
    table.rows.push_back({.collective = Collective::kAllReduce,
                          .bytes = bytes,
                          .us = {AllReduceUs(truth, static_cast<double>(bytes), 2)}});
  const LinkModel fitted = FitLink(table).value();
  EXPECT_NEAR(fitted.alpha_us, 14, 0.1);
  EXPECT_NEAR(fitted.bus_gbps, 250, 1);
  table.rows.resize(1);
  EXPECT_FALSE(FitLink(table));
}

TEST(Topology, NvlinkIsFasterThanPcie) {
  DeviceProfile pcie = Gpu();
  pcie.name = "L40S";
  EXPECT_LT(AllReduceUs(LinkOf(Gpu()), 1e8, 8), AllReduceUs(LinkOf(pcie), 1e8, 8) / 10);
  EXPECT_EQ(AllReduceUs(LinkOf(pcie), 1e8, 1), 0);
  EXPECT_GE(BucketMegabytes(LinkOf(Gpu()), 8), 25);
  EXPECT_LE(BucketMegabytes(LinkOf(Gpu()), 8), 200);
}

}  // namespace
}  // namespace atunner::planning
