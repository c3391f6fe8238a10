#include "atunner/measure/collective_sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "atunner/base/random.h"
#include "atunner/measure/nccl_runner.h"
#include "atunner/planning/comm/comm_choice.h"

namespace atunner {
namespace {

using planning::Algorithm;
using planning::Collective;
using planning::CommChoice;
using planning::Protocol;

/// Times after latency and bandwidth, with noise. Its default is ring simple with 4 channels.
class SimulatedRunner : public CollectiveRunner {
 public:
  explicit SimulatedRunner(ManualClock& clock) : clock_(clock) {}
  Result<std::optional<double>> Run(Collective collective, int64_t bytes,
                                    const std::optional<CommChoice>& choice, int count) override {
    ++runs;
    if (choice && choice->algorithm == Algorithm::kTree && collective != Collective::kAllReduce)
      return std::nullopt;
    CommChoice taken = choice.value_or(CommChoice{Algorithm::kRing, Protocol::kSimple, 4});
    if (taken.channels < 0) taken.channels = 4;
    const double us = Time(taken, bytes) * (0.98 + 0.04 * random_.Uniform());
    clock_.Sleep(us * count * 1e-6);
    return us;
  }
  static double Time(const CommChoice& choice, int64_t bytes) {
    const double rate = choice.protocol == Protocol::kLl      ? 2e3
                        : choice.protocol == Protocol::kLl128 ? 8e3
                                                              : 10e3;  // bytes/us a channel
    const double latency = choice.protocol == Protocol::kSimple ? 16 : 8;
    return latency + 0.1 * choice.channels + static_cast<double>(bytes) / rate / choice.channels;
  }
  int runs = 0;

 private:
  ManualClock& clock_;
  Random random_{7};
};

TEST(CollectiveSweep, FindsTheChoiceThatTheSimulationPrefers) {
  ManualClock clock;
  SimulatedRunner runner(clock);
  planning::CommTable table{.device = "simulated", .nccl = "0", .gpus = 2};
  CollectiveSweep sweep{.smallest = 4096, .largest = 1 << 20};
  ASSERT_TRUE(SweepCollectives(sweep, runner, clock, nullptr, table));
  EXPECT_THAT(table.notes, testing::IsEmpty());
  const auto decisions = planning::ChooseComm(table).value();
  ASSERT_EQ(decisions.size(), 27u);  // three collectives, nine sizes
  for (const auto& decision : decisions) {
    double best = 1e9;
    for (const int channels : {1, 2, 4, 8, 16, 24, 32})
      for (const auto protocol : {Protocol::kLl, Protocol::kLl128, Protocol::kSimple})
        best = std::min(
            best, SimulatedRunner::Time({Algorithm::kRing, protocol, channels}, decision.bytes));
    EXPECT_LT(decision.chosen_us, best * 1.05) << decision.bytes;
    EXPECT_GE(decision.gain(), 0);
  }
}

TEST(CollectiveSweep, ItsTableSurvivesTheFile) {
  ManualClock clock;
  SimulatedRunner runner(clock);
  planning::CommTable table{.device = "simulated", .nccl = "0", .gpus = 2};
  CollectiveSweep sweep{.collectives = {Collective::kAllReduce}, .largest = 2048};
  ASSERT_TRUE(SweepCollectives(sweep, runner, clock, nullptr, table));
  const auto again = planning::ReadCommTable(DumpJson(planning::ToJson(table)));
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(DumpJson(planning::ToJson(*again)), DumpJson(planning::ToJson(table)));
}

TEST(CollectiveSweep, TimeRunsOut) {
  ManualClock clock;
  SimulatedRunner runner(clock);
  planning::CommTable table{.gpus = 2};
  const CollectiveSweep sweep{.seconds = 0.2};
  ASSERT_TRUE(SweepCollectives(sweep, runner, clock, nullptr, table));
  ASSERT_EQ(table.notes.size(), 1u);
  EXPECT_THAT(table.notes[0], testing::HasSubstr("were left out"));
  EXPECT_FALSE(table.rows.empty());
}

TEST(CollectiveSweep, RefusesSizesThatDescend) {
  ManualClock clock;
  SimulatedRunner runner(clock);
  planning::CommTable table;
  const auto status = SweepCollectives({.smallest = 4096, .largest = 1024}, runner, clock, nullptr,
                                       table);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().where, "sweep.sizes");
}

TEST(NcclRunner, OneGpuIsNotEnough) {
  const auto runner = NcclRunner::Open({.gpus = 1});
  ASSERT_FALSE(runner);
  EXPECT_EQ(runner.error().where, "request.gpus");
}

}  // namespace
}  // namespace atunner
