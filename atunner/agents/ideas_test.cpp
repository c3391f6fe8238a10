#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "atunner/agents/analysis.h"
#include "atunner/agents/decision.h"
#include "atunner/agents/idea.h"
#include "atunner/agents/propose.h"
#include "atunner/agents/request.h"
#include "atunner/agents/rewrite_ideas.h"
#include "atunner/agents/story.h"
#include "atunner/device/profiles.h"
#include "atunner/jobs/requests/tasks.h"
#include "atunner/knowledge/rule.h"

namespace atunner::agents {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

KernelSpec Softmax() {
  return jobs::SpecsOf({.operator_name = "softmax", .shapes = {{1024, 4096}}}).value().front();
}

Trial TrialOf(Configuration configuration, double ns, std::string limiter = "DRAM") {
  Trial trial;
  trial.number = 1;
  trial.candidate.what = std::move(configuration);
  trial.estimate.emplace();
  trial.estimate->time_ns = ns;
  trial.estimate->limiter = std::move(limiter);
  trial.estimate->occupancy = 0.5;
  return trial;
}

ParameterSpace Space() {
  ParameterSpace space;
  space.parameters = {{"vector", {int64_t{1}, int64_t{2}, int64_t{4}}, "elements of one load"},
                      {"threads_per_row", {int64_t{32}, int64_t{64}, int64_t{128}}, "threads"},
                      {"storage", {std::string("registers"), std::string("shared")}, "of the row"},
                      {"odd_one", {int64_t{0}, int64_t{1}}, "known to no rule"},
                      {"fixed", {int64_t{7}}, "has one value"}};
  return space;
}

Version Parent(std::string idea, std::vector<Value> values, double ns) {
  return {std::move(idea), TrialOf({std::move(values)}, ns)};
}

IdeaContext ContextOf(const ParameterSpace& space) {
  IdeaContext context{.space = space};
  context.parents = {Parent(
      "r0.0", {int64_t{1}, int64_t{64}, std::string("registers"), int64_t{0}, int64_t{7}}, 1000)};
  context.performance.bottleneck = "memory";
  return context;
}

// --- analysis

TEST(Analysis, SoftmaxIsBoundByMemory) {
  const KernelSpec spec = Softmax();
  const OperatorFacts facts = AnalyseOperator(spec).value();
  EXPECT_DOUBLE_EQ(facts.bytes, 2.0 * 1024 * 4096 * 4);
  EXPECT_GT(facts.intensity, 0.1);
  EXPECT_LT(facts.intensity, 5);
  const HardwareFacts hardware = AnalyseHardware(spec, facts, FindProfile("A100").value());
  EXPECT_EQ(hardware.bound, "memory");
  EXPECT_GT(hardware.memory_ns, 0);
  EXPECT_GT(hardware.ridge, facts.intensity);
  EXPECT_EQ(ToJson(HardwareFromJson(ToJson(hardware))), ToJson(hardware));
}

struct Limit {
  const char* limiter;
  const char* bottleneck;
};
class LimitTest : public testing::TestWithParam<Limit> {};
TEST_P(LimitTest, HasANameThatRulesKnow) {
  const PerformanceFacts facts = TrialAnalyst().Analyse(TrialOf({}, 200, GetParam().limiter),
                                                        {.floor_ns = 100});
  EXPECT_EQ(facts.bottleneck, GetParam().bottleneck);
  EXPECT_DOUBLE_EQ(facts.share_of_floor, 0.5);
  EXPECT_THAT(std::vector(knowledge::Bottlenecks().begin(), knowledge::Bottlenecks().end()),
              Contains(facts.bottleneck));
  EXPECT_EQ(ToJson(PerformanceFromJson(ToJson(facts))), ToJson(facts));
}
INSTANTIATE_TEST_SUITE_P(All, LimitTest,
                         testing::Values(Limit{"DRAM", "memory"}, Limit{"L2", "l2"},
                                         Limit{"L2 port", "l2"}, Limit{"tensor cores", "tensor"},
                                         Limit{"shared memory and L1", "shared"},
                                         Limit{"instruction issue", "issue"},
                                         Limit{"special functions", "special"},
                                         Limit{"launch", "launch"}, Limit{"latency", "latency"},
                                         Limit{"something new", "latency"}));

TEST(Analysis, FewWarpsAndSpillsAreNamed) {
  Trial trial = TrialOf({}, 200, "latency");
  trial.estimate->occupancy = 0.1;
  EXPECT_EQ(TrialAnalyst().Analyse(trial, {}).bottleneck, "occupancy");
  trial.resources.push_back({.entry = "k", .spill_load_bytes = 16});
  EXPECT_EQ(TrialAnalyst().Analyse(trial, {}).bottleneck, "registers");
  Trial measured;
  measured.measurement.emplace();
  EXPECT_EQ(TrialAnalyst().Analyse(measured, {.bound = "arithmetic"}).bottleneck, "arithmetic");
}

// --- ideas

TEST(Propose, RulesAgainstTheBottleneckComeFirst) {
  const ParameterSpace space = Space();
  const auto ideas = ProposeIdeas(ContextOf(space));
  ASSERT_THAT(ideas, Not(IsEmpty()));
  EXPECT_EQ(ideas[0].proposer, "rule:wider-loads");
  EXPECT_THAT(ideas[0].conditions, ElementsAre("vector > 1"));
  EXPECT_EQ(ideas[0].id, "r1.1");
  EXPECT_EQ(ideas[0].parent, "r0.0");
  EXPECT_EQ(ideas[0].page, "vector-loads");
  EXPECT_THAT(ideas, Contains(Field(&Idea::conditions, ElementsAre("storage != 'registers'"))));
  EXPECT_THAT(ideas, Contains(Field(&Idea::proposer, "vary:odd_one")));
  for (const Idea& idea : ideas) EXPECT_THAT(idea.title, Not(HasSubstr("fixed")));
  EXPECT_TRUE(std::ranges::is_sorted(ideas, std::greater<>(), &Idea::score));
}

TEST(Propose, AsManyAsWantedAndNoneTwice) {
  const ParameterSpace space = Space();
  IdeaContext context = ContextOf(space);
  context.most = 3;
  std::set<std::vector<std::string>> seen;
  for (int round = 1; round < 20; ++round) {
    context.round = round;
    for (Idea& idea : ProposeIdeas(context)) {
      EXPECT_TRUE(seen.insert(idea.conditions).second) << idea.title;
      idea.status = "dropped";
      context.earlier.push_back(idea);
    }
  }
  EXPECT_THAT(ProposeIdeas(context), IsEmpty());
}

TEST(Propose, OutcomesChangeTheWeightOfARule) {
  std::vector<Idea> earlier(2);
  earlier[0].proposer = earlier[1].proposer = "rule:x";
  earlier[0].status = "kept";
  EXPECT_DOUBLE_EQ(LearnedWeight("rule:x", 0.5, {earlier[0]}), 0.65);
  earlier[1].status = "failed";
  EXPECT_DOUBLE_EQ(LearnedWeight("rule:x", 0.5, earlier), 0.65 * 0.7);
  EXPECT_DOUBLE_EQ(LearnedWeight("rule:y", 0.5, earlier), 0.5);
}

TEST(Propose, KeptKernelsAreCombined) {
  const ParameterSpace space = Space();
  IdeaContext context = ContextOf(space);
  context.parents.push_back(Parent(
      "r1.2", {int64_t{4}, int64_t{128}, std::string("shared"), int64_t{0}, int64_t{7}}, 1100));
  const auto ideas = ProposeIdeas(context);
  const auto found = std::ranges::find(ideas, "combine", &Idea::proposer);
  ASSERT_NE(found, ideas.end());
  EXPECT_EQ(found->parent, "r0.0");
  EXPECT_THAT(found->conditions, ElementsAre("vector == 4", "threads_per_row == 128"));
}

TEST(Propose, WholeKernelsGiveNoConditions) {
  const ParameterSpace space = Space();
  IdeaContext context = ContextOf(space);
  context.parents[0].trial.candidate.what = SourceCandidate{};
  EXPECT_THAT(ProposeIdeas(context), IsEmpty());
}

// --- decisions

Idea Tried(std::string id, double parent_ns, double ns) {
  Idea idea;
  idea.id = std::move(id);
  idea.parent = "r0.0";
  idea.parent_ns = parent_ns;
  SetOutcome(idea, {TrialOf({}, ns)});
  return idea;
}

TEST(Decide, KeepsTheFastestShareOfThoseThatGained) {
  std::vector<Idea> ideas = {Tried("a", 100, 90), Tried("b", 100, 120), Tried("c", 100, 50),
                             Tried("d", 100, 80)};
  Decide(ideas, 0.5);
  std::vector<std::string> kept;
  for (const Idea& idea : ideas) {
    if (idea.status == "kept") kept.push_back(idea.id);
  }
  EXPECT_THAT(kept, ElementsAre("c", "d"));
  EXPECT_THAT(ideas[0].reason, HasSubstr("only 2 of the round are kept"));
  EXPECT_THAT(ideas[1].reason, StartsWith("not faster"));
  EXPECT_THAT(ideas[2].reason, HasSubstr("2.00x over r0.0"));
}

TEST(Decide, RefusedKernelsSayWhy) {
  Idea idea;
  Trial trial;
  trial.verdict.kind = VerdictKind::kWrongResult;
  trial.verdict.reason = "element 7 is 3";
  SetOutcome(idea, {trial});
  EXPECT_EQ(idea.status, "failed");
  EXPECT_THAT(idea.reason, HasSubstr("element 7 is 3"));
  Idea none;
  SetOutcome(none, {});
  EXPECT_EQ(none.status, "failed");
}

RoundRecord Round(int number, double before, double after) {
  return {.round = number, .before_ns = before, .after_ns = after};
}

TEST(Stop, ReasonsInTheirOrder) {
  const RoundsRequest request{.rounds = 5};
  EXPECT_EQ(StopReason({Round(1, 100, 90)}, request, 10, ""), "");
  EXPECT_EQ(StopReason({Round(1, 100, 90)}, request, 10, "trial budget spent"),
            "trial budget spent");
  EXPECT_THAT(StopReason({Round(1, 100, 90)}, request, 86, ""), HasSubstr("96 % of the roofline"));
  EXPECT_EQ(StopReason({Round(1, 100, 100), Round(2, 100, 99.95)}, request, 10, ""),
            "two rounds gained less than 0.1 % each");
  EXPECT_EQ(StopReason({Round(1, 100, 99), Round(2, 99, 99)}, request, 10, ""), "");
  EXPECT_EQ(StopReason({Round(5, 100, 90)}, request, 10, ""), "5 rounds are done");
}

// --- values

TEST(Ideas, RoundTripAndMerge) {
  const Idea idea = Tried("r1.1", 100, 90);
  EXPECT_EQ(ToJson(IdeaFromJson(ToJson(idea)).value()), ToJson(idea));
  EXPECT_FALSE(IdeaFromJson(Json::array()));
  EXPECT_FALSE(IdeaFromJson({{"id", 3}}));
  Idea changed = idea;
  changed.status = "kept";
  const Json merged = MergedIdeas(Json::array({ToJson(idea)}),
                                  Json::array({ToJson(changed), ToJson(Tried("r1.2", 1, 2))}));
  ASSERT_EQ(merged.size(), 2u);
  EXPECT_EQ(merged[0]["status"], "kept");
}

TEST(Ideas, FastestIgnoresKernelsWithoutATime) {
  Version refused{"r0.0", Trial()};
  EXPECT_EQ(Fastest({refused}), nullptr);
  const std::vector<Version> versions = {refused, Parent("a", {}, 20), Parent("b", {}, 10)};
  EXPECT_EQ(Fastest(versions)->idea, "b");
}

TEST(Request, RoundTripKeepsEverything) {
  RoundsRequest request;
  request.optimize.task = {.operator_name = "softmax",
                           .shapes = {{8, 64}},
                           .dtype = DType::kFloat16,
                           .attributes = {{"axis", int64_t{1}}, {"eps", 0.5}, {"on", true}},
                           .dims = {{"B", {1, 2}}},
                           .accuracy = Accuracy::kFast};
  request.optimize.task.graph = jobs::GraphText{"graph", "file.atg"};
  request.optimize.tuning.target = {"A100", true};
  request.optimize.tuning.budget = {.trials = 7, .seconds = 2.5};
  request.optimize.tuning.where = {"vector > 1"};
  request.optimize.tuning.command = "atunner optimize";
  request.pause_before = {"finish"};
  request.source = {"kernel.cu", "k"};
  const RoundsRequest read = RoundsRequestFromJson(ToJson(request)).value();
  EXPECT_EQ(ToJson(read), ToJson(request));
  EXPECT_EQ(read.optimize.task.dtype, DType::kFloat16);
  EXPECT_TRUE(std::holds_alternative<bool>(read.optimize.task.attributes.at("on")));
  EXPECT_FALSE(RoundsRequestFromJson({{"task", 3}}));
}

TEST(Request, FaultsAreNamedTogether) {
  RoundsRequest request{.rounds = 0, .ideas = 1000, .implementations = 0, .keep = 2};
  const auto checked = CheckRequest(request);
  ASSERT_FALSE(checked);
  for (const char* word : {"rounds", "ideas", "implementations", "keep"})
    EXPECT_THAT(checked.error().what, HasSubstr(word));
}

TEST(Story, NamesIdeasOutcomesAndLineage) {
  RoundsState state;
  state.operator_summary = "softmax …";
  state.floor_ns = 45;
  Idea first = Tried("r0.0", 0, 100);
  first.parent = "";
  first.status = "kept";
  Idea second = Tried("r1.1", 100, 50);
  second.round = 1;
  second.title = "wider loads";
  second.status = "kept";
  Idea third = Tried("r1.2", 100, 150);
  third.round = 1;
  third.title = "smaller blocks";
  state.ideas = {first, second, third};
  state.versions = {Parent("r0.0", {}, 100), Parent("r1.1", {}, 50)};
  state.rounds = {Round(1, 100, 50)};
  const std::string story = StoryOf(state);
  EXPECT_THAT(story, HasSubstr("90 % of the roofline"));
  EXPECT_THAT(story, HasSubstr("2.00x over r0.0"));
  EXPECT_THAT(story, HasSubstr("smaller blocks"));
  const std::string lineage = LineageText(state);
  EXPECT_THAT(lineage, HasSubstr("  r1.1  0.05 us  wider loads  (2.00x)"));
  EXPECT_THAT(lineage, Not(HasSubstr("smaller blocks")));
  EXPECT_EQ(LineageJson(state).size(), 2u);
  EXPECT_THAT(LineageOf(state.ideas, "r1.1"), SizeIs(2));
  EXPECT_THAT(LineageOf(state.ideas, "unknown"), IsEmpty());
}

/// A user's kernel that has nothing to choose.
class RowSum : public ScheduleTemplate {
 public:
  RowSum() {
    spec_.name = "row_sum";
    for (const char* name : {"out", "in"}) {
      ArgSpec arg;
      arg.name = name;
      arg.shape = {Expr(int64_t{64})};
      spec_.args.push_back(arg);
    }
  }
  const KernelSpec& spec() const override { return spec_; }
  const ParameterSpace& space() const override { return space_; }
  Configuration Default() const override { return {}; }
  Result<RenderedKernel> Render(const Configuration&) const override {
    RenderedKernel kernel;
    kernel.source.text =
        "__global__ void k(float* out, const float* in, int n) {\n"
        "  int row = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  float sum = 0;\n  for (int j = 0; j < n; ++j) sum += in[row * n + j];\n"
        "  out[row] = sum;\n}\n";
    LaunchStep step;
    step.entry = "k";
    step.grid = {Expr(int64_t{2}), Expr(int64_t{1}), Expr(int64_t{1})};
    step.block = {Expr(int64_t{32}), Expr(int64_t{1}), Expr(int64_t{1})};
    step.args = {ArgBinding::Tensor("out"), ArgBinding::Tensor("in")};
    kernel.plan.steps = {step};
    return kernel;
  }

 private:
  KernelSpec spec_;
  ParameterSpace space_;
};

std::vector<jobs::Idea> IdeasOf(const RenderedKernel& kernel, const KernelSpec& spec) {
  jobs::LaunchProfile profile;
  evidence::Finding far;
  far.bottleneck = evidence::Bottleneck::kUncoalesced;
  far.gain = 4;
  evidence::Finding waits;
  waits.bottleneck = evidence::Bottleneck::kLatency;
  profile.findings = {far, waits};
  return jobs::IdeasFor(kernel, spec, profile);
}

TEST(RewriteIdeas, AreRankedByGainAndOutcome) {
  const RowSum schedule;
  Version own = Parent("r0.0", {}, 1000);
  const auto found = IdeasOf(KernelOf(schedule, own).value(), schedule.spec());
  std::vector<Idea> ideas = RewriteIdeas(found, own, {}, 1);
  ASSERT_GE(ideas.size(), 3u);
  EXPECT_EQ(ideas[0].proposer, "rewrite:share-loop-in-warp");
  EXPECT_EQ(ideas[0].why, "against uncoalesced");
  EXPECT_EQ(ideas[0].effect, "up to 4x by the time model");
  EXPECT_EQ(ideas[0].parent, "r0.0");
  EXPECT_DOUBLE_EQ(ideas[0].score, 1.5);
  ideas[0].status = "failed";
  const std::vector<Idea> again = RewriteIdeas(found, own, ideas, 2);
  EXPECT_THAT(again, IsEmpty());  // all were tried from this kernel
  own.idea = "r1.2";
  const std::vector<Idea> later = RewriteIdeas(found, own, {ideas[0]}, 2);
  ASSERT_EQ(later.size(), ideas.size());
  EXPECT_LT(std::ranges::find(later, ideas[0].proposer, &Idea::proposer)->score, 1.5);
}

TEST(RewriteIdeas, BecomeKernelsWithTheirParent) {
  const RowSum schedule;
  const Version own = Parent("r0.0", {}, 1000);
  Idea idea;
  idea.id = "r1.1";
  idea.proposer = "rewrite:share-loop-in-warp";
  idea.title = "share";
  const auto made = ImplementRewrite(schedule, idea, own, 2, {});
  ASSERT_TRUE(made) << made.error().ToString();
  ASSERT_THAT(*made, SizeIs(1));
  const Candidate& first = made->front();
  EXPECT_THAT(first.kernel()->source.text, HasSubstr("j += 32"));
  EXPECT_EQ(first.provenance.proposer, idea.proposer);
  EXPECT_THAT(first.provenance.reason, StartsWith("r1.1: share"));
  EXPECT_EQ(first.provenance.parent, own.trial.candidate.id);
  EXPECT_THAT(*ImplementRewrite(schedule, idea, own, 2, {first.id.ToHex()}), IsEmpty());
  Version second = own;
  second.trial.candidate = first;
  EXPECT_FALSE(ImplementRewrite(schedule, idea, second, 2, {}));  // it is shared already
  idea.proposer = "rewrite:nothing";
  EXPECT_FALSE(ImplementRewrite(schedule, idea, own, 2, {}));
}

}  // namespace
}  // namespace atunner::agents
