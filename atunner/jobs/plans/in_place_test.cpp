// Updates in place: which kernels may, and what becomes of a plan's copies.
#include "atunner/jobs/plans/in_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "atunner/graph/text.h"
#include "atunner/operators/graph_operator.h"

namespace atunner::jobs {
namespace {

using testing::ElementsAre;
using Step = PlanStep::Kind;
using Buffer = PlanBuffer::Kind;

/// A kernel for a graph, with a launch for each list of tensors.
PlannedKernel Kernel(const std::string& lines,
                     const std::vector<std::vector<std::string>>& launches) {
  PlannedKernel kernel{"kernels/1", {}};
  kernel.artifact.spec = SpecOfGraph(graph::Parse("graph g\n" + lines).value(), {}).value();
  for (const auto& tensors : launches) {
    LaunchStep step;
    for (const std::string& name : tensors) step.args.push_back(ArgBinding::Tensor(name));
    kernel.artifact.plan.steps.push_back(std::move(step));
  }
  return kernel;
}

/// A parameter's update by its gradient and a rate out of a list.
constexpr const char* kUpdate = R"(input p: float32[6, 4]
input g: float32[24]
input rates: float32[2]
rate = slice(rates, axis=0, start=1, stop=2)
same = reshape(g, shape=[6, 4])
next = p - same * rate
output next
)";

bool InPlace(const std::string& lines, const std::vector<std::vector<std::string>>& launches) {
  return WritesInPlace(Kernel(lines, launches), "p", "next");
}

TEST(InPlace, ElementByElementAtTheSamePlace) {
  EXPECT_TRUE(InPlace(kUpdate, {{"p", "g", "rates", "next"}}));
  EXPECT_TRUE(InPlace(kUpdate, {{"g"}, {"p", "rates", "next"}})) << "the last launch reads it";
}

TEST(InPlace, ALaterLaunchNeedsTheOldValue) {
  EXPECT_FALSE(InPlace(kUpdate, {{"p", "g", "rates", "next"}, {"p"}}));
  EXPECT_FALSE(InPlace(kUpdate, {{"p", "next"}, {"next"}})) << "it adds to a part of the result";
  EXPECT_FALSE(InPlace(kUpdate, {{"p"}})) << "nothing writes it";
}

TEST(InPlace, ParametersThatTheCodeDoesNotUseAreNotRead) {
  PlannedKernel kernel = Kernel(kUpdate,
                                {{"p", "g", "rates", "next"}, {"p", "g", "rates", "next"}});
  kernel.artifact.plan.steps[0].entry = "sums";
  kernel.artifact.plan.steps[1].entry = "finish";
  EXPECT_FALSE(WritesInPlace(kernel, "p", "next")) << "both may use all tensors";
  kernel.ptx =
      ".entry sums(.param .u64 sums_param_0, .param .u64 sums_param_1, "
      ".param .u64 sums_param_2, .param .u64 sums_param_3) "
      "{ ld.param.u64 %rd1, [sums_param_1]; } .entry finish(";
  EXPECT_TRUE(WritesInPlace(kernel, "p", "next"));
  kernel.ptx += "ld.param.u64 %rd2, [sums_param_3];";
  EXPECT_FALSE(WritesInPlace(kernel, "p", "next")) << "it keeps partial results there";
}

TEST(InPlace, BehindSumsOfColumnsAndNotOfRows) {
  const std::string sums = R"(input p: float32[4]
input g: float32[3, 4]
)";
  EXPECT_TRUE(InPlace(sums + "s = reduce_sum(g, axes=[0])\nnext = p - s\noutput next\n",
                      {{"p", "g", "next"}}));
  EXPECT_FALSE(InPlace(R"(input p: float32[3]
input g: float32[3, 4]
s = reduce_sum(g, axes=[1])
next = p - s
output next
)",
                       {{"p", "g", "next"}}))
      << "several threads may finish a row";
}

TEST(InPlace, OtherThreadsReadTheElement) {
  EXPECT_FALSE(InPlace(R"(input p: float32[4, 4]
next = transpose(p, order=[1,0])
output next
)",
                       {{"p", "next"}}));
  EXPECT_FALSE(InPlace(R"(input p: float32[4, 4]
sum = reduce_sum(p, axes=[1], keep=true)
next = p / sum
output next
)",
                       {{"p", "next"}}));
  EXPECT_FALSE(InPlace(R"(input p: float32[1, 4]
input g: float32[3, 4]
next = p + g
output next
)",
                       {{"p", "next"}}))
      << "one element is read for three";
}

TEST(InPlace, WhatAnotherResultNeedsDoesNotMatter) {
  const std::string two = std::string(kUpdate) + R"(input x: float32[4, 4]
loss = reduce_sum(x, axes=[1])
output loss
)";
  EXPECT_TRUE(InPlace(two, {{"p", "g", "rates", "next"}, {"x", "loss"}}));
  EXPECT_FALSE(InPlace(std::string(kUpdate) + R"(rows = reduce_sum(next, axes=[1])
output rows
)",
                       {{"p", "g", "rates", "next", "rows"}}))
      << "another result adds what was updated";
}

TEST(InPlace, AResultThatDoesNotDependOnIt) {
  EXPECT_FALSE(InPlace(R"(input p: float32[4]
input g: float32[4]
next = g * 2
other = p + 1
output next
output other
)",
                       {{"p", "g", "next", "other"}}));
}

// Plans: w' = update(w, g, rates) is copied into w.

/// Buffers: w, x, rates, h, g, next, y. Steps: h = f(x); the update; and, where `late`, y = f(w).
ExecutionPlan Plan(bool late, size_t late_reads) {
  ExecutionPlan plan;
  plan.kernels = {"kernels/1"};
  plan.buffers = {{"w", Buffer::kInput, DType::kFloat32, {6, 4}},
                  {"x", Buffer::kInput, DType::kFloat32, {24}},
                  {"rates", Buffer::kInput, DType::kFloat32, {2}},
                  {"g", Buffer::kIntermediate, DType::kFloat32, {24}},
                  {"next", Buffer::kIntermediate, DType::kFloat32, {6, 4}},
                  {"y", Buffer::kOutput, DType::kFloat32, {24}}};
  PlanStep gradient{Step::kExtern, {{"x", 1}}, {{"g", 3}}};
  gradient.target = "mine.gradient.default";
  plan.steps.push_back(gradient);
  plan.steps.push_back({Step::kLaunch, {{"p", 0}, {"g", 3}, {"rates", 2}}, {{"next", 4}}, 0});
  PlanStep reader{Step::kExtern, {{"w", 0}, {"other", late_reads}}, {{"y", 5}}};
  reader.target = "mine.reader.default";
  if (late) plan.steps.push_back(reader);
  plan.steps.push_back({Step::kCopy, {{"", 4}}, {{"", 0}}});
  return plan;
}

/// "launch -> w" and so on.
std::vector<std::string> After(ExecutionPlan plan) {
  UpdateInPlace(plan, {Kernel(kUpdate, {{"p", "g", "rates", "next"}})});
  std::vector<std::string> steps;
  for (const PlanStep& step : plan.steps)
    steps.push_back(std::string(Name(step.kind)) + " -> " +
                    plan.buffers[step.writes[0].buffer].name);
  return steps;
}

TEST(InPlace, TheCopyIsGone) {
  EXPECT_THAT(After(Plan(false, 1)), ElementsAre("extern -> g", "launch -> w"));
}

TEST(InPlace, ALaterReaderComesFirst) {
  EXPECT_THAT(After(Plan(true, 3)), ElementsAre("extern -> g", "extern -> y", "launch -> w"));
}

TEST(InPlace, AReaderOfBothValuesKeepsTheCopy) {
  EXPECT_THAT(After(Plan(true, 4)),
              ElementsAre("extern -> g", "launch -> next", "extern -> y", "copy -> w"));
}

TEST(InPlace, AReaderBehindTheCopyKeepsIt) {
  ExecutionPlan plan = Plan(true, 1);
  std::swap(plan.steps[2], plan.steps[3]);
  EXPECT_THAT(After(plan),
              ElementsAre("extern -> g", "launch -> next", "copy -> w", "extern -> y"));
}

TEST(InPlace, OtherKindsOfCopiesStay) {
  ExecutionPlan plan = Plan(false, 1);
  plan.buffers[4].kind = Buffer::kOutput;  // the caller wants the new value, too
  EXPECT_THAT(After(plan), ElementsAre("extern -> g", "launch -> next", "copy -> w"));
  plan = Plan(false, 1);
  plan.steps.erase(plan.steps.begin() + 1);  // nothing in the plan makes it
  EXPECT_THAT(After(plan), ElementsAre("extern -> g", "copy -> w"));
}

}  // namespace
}  // namespace atunner::jobs
