#include "atunner/model/plan/execution_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>

#include "atunner/base/mutation_test.h"

namespace atunner {

void FuzzPlan(std::string_view text);  // plan_fuzz.cpp

namespace {

using testing::HasSubstr;
using Buffer = PlanBuffer::Kind;
using Step = PlanStep::Kind;

/// h = k1(x, w); c = cumsum(h); y = k1(c, w) with scratch; z = copy of c.
ExecutionPlan SmallPlan() {
  ExecutionPlan plan;
  plan.name = "small";
  plan.device = "NVIDIA H200";
  plan.created = "2026-11-27T00:00:00Z";
  plan.kernels = {"kernels/1-product"};
  plan.buffers = {{"x", Buffer::kInput, DType::kFloat32, {4, 100}},
                  {"w", Buffer::kWeight, DType::kFloat16, {100}, "layer.weight", 256},
                  {"h", Buffer::kIntermediate, DType::kFloat32, {4, 100}},
                  {"c", Buffer::kIntermediate, DType::kFloat32, {400}},
                  {"scratch", Buffer::kIntermediate, DType::kUInt8, {1000}},
                  {"y", Buffer::kOutput, DType::kFloat32, {4, 100}},
                  {"z", Buffer::kOutput, DType::kFloat32, {4, 100}}};
  plan.weight_bytes = 456;
  plan.weight_digest = {1, 2};
  plan.steps.push_back({Step::kLaunch, {{"a1", 0}, {"a2", 1}}, {{"y1", 2}}, 0});
  PlanStep cumsum{Step::kExtern, {{"h", 2}}, {{"c", 3}}};
  cumsum.target = "aten.cumsum.default";
  cumsum.arguments = R"([{"name":"self","arg":{"as_tensor":{"name":"h"}}},)"
                     R"({"name":"dim","arg":{"as_int":1}}])";
  plan.steps.push_back(cumsum);
  plan.steps.push_back({Step::kLaunch, {{"a1", 3}, {"a2", 1}}, {{"y1", 5}}, 0, {4}});
  plan.steps.push_back({Step::kCopy, {{"", 3}}, {{"", 6}}});
  EXPECT_TRUE(PlaceIntermediates(plan));
  return plan;
}

TEST(ExecutionPlan, TextAndBack) {
  const ExecutionPlan plan = SmallPlan();
  ASSERT_TRUE(CheckPlan(plan)) << CheckPlan(plan).error().ToString();
  const std::string text = PlanText(plan);
  const auto read = ParsePlan(text, "plan.json");
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(PlanText(*read), text);
  EXPECT_EQ(read->steps[1].arguments, plan.steps[1].arguments);
  EXPECT_EQ(read->buffers[1].qualified_name, "layer.weight");
  EXPECT_EQ(read->buffers[1].offset, 256u);
  EXPECT_EQ(read->buffers[2].Bytes(), 1600u);
  EXPECT_EQ(read->weight_digest, plan.weight_digest);
}

TEST(ExecutionPlan, IntermediatesShareTheWorkspace) {
  const ExecutionPlan plan = SmallPlan();
  // h ends before the scratch memory begins; c lives beside both.
  EXPECT_EQ(plan.workspace_bytes, 2u * 1792);
  EXPECT_EQ(plan.buffers[2].offset, plan.buffers[4].offset);
}

TEST(ExecutionPlan, AFolderIsAPlanOrIsNot) {
  const TemporaryDirectory folder;
  EXPECT_EQ(LoadPlan(folder.path()).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(WriteFileAtomic(folder.path() / kPlanFile, PlanText(SmallPlan())));
  EXPECT_EQ(LoadPlan(folder.path()).value().name, "small");
}

/// What is wrong with a plan after `change`.
std::string ErrorAfter(const std::function<void(ExecutionPlan&)>& change) {
  ExecutionPlan plan = SmallPlan();
  change(plan);
  const Status checked = CheckPlan(plan);
  return checked ? "" : checked.error().ToString();
}

TEST(ExecutionPlan, RulesAreChecked) {
  using Plan = ExecutionPlan;
  EXPECT_THAT(ErrorAfter([](Plan& p) { p.steps.erase(p.steps.begin()); }),
              HasSubstr("step 0: it reads 'h', which no step before it has written"));
  EXPECT_THAT(ErrorAfter([](Plan& p) { p.steps.pop_back(); }), HasSubstr("the output 'z'"));
  EXPECT_THAT(ErrorAfter([](Plan& p) { p.steps[1].writes[0].buffer = 1; }),
              HasSubstr("it writes 'w', which only copies and launches may do"));
  EXPECT_THAT(ErrorAfter([](Plan& p) { p.steps[0].writes[0].buffer = 99; }), HasSubstr("unknown"));
  EXPECT_THAT(ErrorAfter([](Plan& p) { p.steps[0].reads[0].buffer = 99; }), HasSubstr("unknown"));
  EXPECT_THAT(ErrorAfter([](Plan& p) { p.steps[0].kernel = 1; }), HasSubstr("no kernel 1"));
  EXPECT_THAT(ErrorAfter([](Plan& p) { p.steps[1].target = ""; }), HasSubstr("no name"));
  EXPECT_THAT(ErrorAfter([](Plan& p) { p.steps[1].scratch = {4}; }), HasSubstr("too much scratch"));
  EXPECT_THAT(ErrorAfter([](Plan& p) { p.steps[2].scratch = {0}; }), HasSubstr("no intermediate"));
  EXPECT_THAT(ErrorAfter([](Plan& p) { p.steps[3].reads.clear(); }), HasSubstr("one source"));
  EXPECT_THAT(ErrorAfter([](Plan& p) { p.steps[3].reads[0].buffer = 1; }), HasSubstr("differ"));
  EXPECT_THAT(ErrorAfter([](Plan& p) { p.buffers[3].offset = p.buffers[2].offset; }),
              HasSubstr("overlap"));
  EXPECT_THAT(ErrorAfter([](Plan& p) { p.buffers[3].offset += 128; }), HasSubstr("not aligned"));
  EXPECT_THAT(ErrorAfter([](Plan& p) { p.workspace_bytes = 1792; }), HasSubstr("workspace"));
  EXPECT_THAT(ErrorAfter([](Plan& p) { p.weight_bytes = 455; }), HasSubstr("file of weights"));
  EXPECT_THAT(ErrorAfter([](Plan& p) { p.buffers[0].extents = {1 << 30, 1 << 30}; }),
              HasSubstr("not possible"));
  EXPECT_THAT(ErrorAfter([](Plan& p) { p.buffers[0].extents = {0}; }), HasSubstr("not possible"));
  EXPECT_THAT(ErrorAfter([](Plan& p) { p.buffers[0].name = "w"; }), HasSubstr("two buffers"));
  EXPECT_THAT(ErrorAfter([](Plan& p) { p.buffers[0].name = ""; }), HasSubstr("no name"));
  EXPECT_THAT(ErrorAfter([](Plan& p) {
                p.buffers.push_back(p.buffers[4]);
                p.buffers[7].name = "u";
              }),
              HasSubstr("no step uses 'u'"));
}

TEST(ExecutionPlan, ForeignTextIsRefusedWithOneMessage) {
  const std::string good = PlanText(SmallPlan());
  const auto error_of = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    const auto plan = ParsePlan(text, "plan.json");
    return plan ? std::string("accepted") : plan.error().ToString();
  };
  EXPECT_THAT(error_of("atunner-plan-1", "atunner-plan-2"), HasSubstr("a newer atunner"));
  EXPECT_THAT(error_of("atunner-plan-1", "atunner-artifact-1"), HasSubstr("no execution plan"));
  EXPECT_THAT(error_of("kernels/1-product", "../1-product"), HasSubstr("not in the plan's folder"));
  EXPECT_THAT(error_of("\"kind\": \"input\"", "\"kind\": \"inpt\""), HasSubstr("kind of buffer"));
  EXPECT_THAT(error_of("\"step\": \"copy\"", "\"step\": \"cpy\""), HasSubstr("kind of step"));
  EXPECT_THAT(error_of("float16", "float17"), HasSubstr("no element type"));
  EXPECT_THAT(error_of("\"offset\": 256", "\"offset\": -256"), HasSubstr("number of bytes"));
  EXPECT_THAT(ParsePlan("[]", "plan.json").error().ToString(), HasSubstr("no execution plan"));
  EXPECT_THAT(ParsePlan("{", "plan.json").error().ToString(), HasSubstr("plan.json"));
}

TEST(ExecutionPlan, DamagedTextsNeverBreakTheReader) {
  const std::string good = PlanText(SmallPlan());
  Random random(3);
  for (int i = 0; i < 3000; ++i) FuzzPlan(Mutated(good, random));
}

}  // namespace
}  // namespace atunner
