// The order of a plan's steps: what lives meanwhile, and what must stay behind what.
#include "atunner/jobs/plans/step_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace atunner::jobs {
namespace {

using testing::ElementsAre;
using Buffer = PlanBuffer::Kind;

/// A plan whose steps are told from each other by their `target`.
class PlanMaker {
 public:
  size_t Add(Buffer kind, int64_t bytes) {
    plan.buffers.push_back(
        {"b" + std::to_string(plan.buffers.size()), kind, DType::kUInt8, {bytes}});
    return plan.buffers.size() - 1;
  }

  void Run(const std::string& name, const std::vector<size_t>& reads,
           const std::vector<size_t>& writes) {
    PlanStep step{PlanStep::Kind::kExtern, {}, {}};
    step.target = name;
    for (const size_t buffer : reads) step.reads.push_back({"r", buffer});
    for (const size_t buffer : writes) step.writes.push_back({"w", buffer});
    plan.steps.push_back(std::move(step));
  }

  std::vector<std::string> Order() {
    OrderForMemory(plan);
    std::vector<std::string> names;
    for (const PlanStep& step : plan.steps) names.push_back(step.target);
    return names;
  }

  ExecutionPlan plan;
};

/// Two layers; in the order of the results the first one's update comes first.
PlanMaker TwoLayers() {
  PlanMaker made;
  const size_t x = made.Add(Buffer::kInput, 4096);
  const size_t first = made.Add(Buffer::kInput, 8192), second = made.Add(Buffer::kInput, 8192);
  const auto value = [&] { return made.Add(Buffer::kIntermediate, 4096); };
  const auto weight = [&] { return made.Add(Buffer::kIntermediate, 8192); };
  const size_t y1 = value(), y2 = value(), d1 = value(), g1 = weight(), g2 = weight();
  made.Run("forward 1", {x, first}, {y1});
  made.Run("forward 2", {y1, second}, {y2});
  made.Run("backward", {y2, second}, {d1});
  made.Run("gradient 1", {x, d1}, {g1});
  made.Run("gradient 2", {y1, y2}, {g2});
  made.Run("update 1", {g1, first}, {first});
  made.Run("update 2", {g2, second}, {second});
  return made;
}

TEST(StepOrder, AnUpdateFollowsItsGradientAtOnce) {
  PlanMaker made = TwoLayers();
  const uint64_t before = LiveBytes(made.plan);
  EXPECT_THAT(made.Order(), ElementsAre("forward 1", "forward 2", "backward", "gradient 1",
                                        "update 1", "gradient 2", "update 2"));
  EXPECT_EQ(before, 4096u * 2 + 8192 * 2);
  EXPECT_EQ(LiveBytes(made.plan), 4096u * 3 + 8192);
}

TEST(StepOrder, AWeightIsReadBeforeItsUpdate) {
  PlanMaker made;
  const size_t w = made.Add(Buffer::kInput, 4096), y = made.Add(Buffer::kOutput, 4096);
  const size_t large = made.Add(Buffer::kIntermediate, 65536);
  const size_t kept = made.Add(Buffer::kIntermediate, 4096);
  made.Run("gradient", {}, {kept});
  made.Run("large", {w}, {large});
  made.Run("reads the old value", {w, large}, {y});
  made.Run("update", {kept, w}, {w});
  EXPECT_THAT(made.Order(), ElementsAre("large", "reads the old value", "gradient", "update"));
}

TEST(StepOrder, WhatIsNoBetterStays) {
  PlanMaker made;
  const size_t a = made.Add(Buffer::kIntermediate, 4096), b = made.Add(Buffer::kOutput, 4096);
  made.Run("one", {}, {a});
  made.Run("two", {a}, {b});
  EXPECT_THAT(made.Order(), ElementsAre("one", "two"));
}

}  // namespace
}  // namespace atunner::jobs
