// Whole training steps as atunner.capture_step wrote them.
#include "atunner/fusion/training.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "atunner/fusion/fusion_support_test.h"
#include "atunner/fusion/training_text.h"
#include "atunner/graph/text.h"
#include "atunner/model/json/json.h"

namespace atunner::fusion {
namespace {

TrainingPlan MadeStep(const std::string& name) {
  const importers::ImportedModel model = Recorded(name);
  EXPECT_TRUE(model.trains());
  auto plan = PlanTraining(model.graph, RequestOf(model), FindProfile("H200").value());
  if (!plan) ADD_FAILURE() << plan.error().ToString();
  return plan.value();
}

/// Planned once.
const TrainingPlan& StepOf(const std::string& name) {
  static std::map<std::string, TrainingPlan> known;
  const auto found = known.find(name);
  return found != known.end() ? found->second : known.emplace(name, MadeStep(name)).first->second;
}

std::set<std::string> FusionsOf(const TrainingPlan& plan) {
  std::set<std::string> names;
  for (const NamedFusion& fusion : plan.fusions) names.insert(fusion.name);
  return names;
}

class Steps : public testing::TestWithParam<const char*> {};

TEST_P(Steps, HaveAnOrderThatEveryValueKeeps) {
  const TrainingPlan& plan = StepOf(GetParam());
  ASSERT_EQ(plan.groups.size(), plan.fusion.groups.size());
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    for (const size_t needed : plan.groups[i].needs) {
      EXPECT_LT(needed, i);
      EXPECT_LT(plan.groups[needed].level, plan.groups[i].level);
      EXPECT_LE(plan.groups[needed].starts_ns + plan.fusion.groups[needed].ns,
                plan.groups[i].starts_ns);
    }
  }
  EXPECT_TRUE(std::ranges::any_of(plan.groups, &GroupTiming::critical));
  EXPECT_LE(plan.critical_ns, plan.fusion.ns * (1 + 1e-9));
}

TEST_P(Steps, GradientsComeBeforeTheirUpdates) {
  const TrainingPlan& plan = StepOf(GetParam());
  std::map<std::string, double> gradients;
  size_t updates = 0;
  for (const StepValue& value : plan.values) {
    if (value.output.role == StepRole::kGradient) gradients[value.output.of] = value.ready_ns;
  }
  EXPECT_GE(gradients.size(), 4u);
  for (const StepValue& value : plan.values) {
    const auto gradient = gradients.find(value.output.of);
    if (value.output.role != StepRole::kUpdate || gradient == gradients.end()) continue;
    EXPECT_GE(value.ready_ns, gradient->second) << value.output.of;
    ++updates;
  }
  EXPECT_EQ(updates, gradients.size());
}

TEST_P(Steps, MemoryIsThatOfLifetimes) {
  const TrainingPlan& plan = StepOf(GetParam());
  double inputs = 0;
  for (const graph::NodeId input : plan.fusion.graph.inputs())
    inputs += BytesOf(plan.fusion.graph.node(input).type, {});
  EXPECT_EQ(plan.persistent_bytes, inputs);
  EXPECT_GT(plan.peak_bytes, plan.persistent_bytes);
  EXPECT_EQ(plan.groups[plan.peak_group].live_bytes, plan.peak_bytes);
  EXPECT_GT(plan.saved_bytes, 0);
}

TEST_P(Steps, AreShownInAllForms) {
  const TrainingPlan& plan = StepOf(GetParam());
  EXPECT_THAT(TextOf(plan, false), testing::HasSubstr("saved for the backward pass"));
  EXPECT_THAT(TextOf(plan, true), testing::HasSubstr("gradient 0.weight: group "));
  const Json json = JsonOf(plan);
  EXPECT_EQ(json["groups"].size(), plan.groups.size());
  EXPECT_EQ(json["memory"]["peak_bytes"], plan.peak_bytes);
  EXPECT_THAT(DotOf(plan), testing::HasSubstr("rank=same"));
  EXPECT_THAT(PredictionText(plan, "a GPU"), testing::HasSubstr("us per step predicted"));
  EXPECT_EQ(PredictionJson(plan, "a GPU")["predicted_ns"], plan.fusion.ns);
}

INSTANTIATE_TEST_SUITE_P(Training, Steps,
                         testing::Values("step_mlp_adam", "step_convnet_sgd", "step_norm_sgd"));

TEST(Training, FusionsHaveNames) {
  EXPECT_THAT(FusionsOf(StepOf("step_mlp_adam")),
              testing::IsSupersetOf({"activation backward in a product's epilogue",
                                     "loss with its gradient", "gradient with its update",
                                     "optimizer of one tensor"}));
  EXPECT_THAT(FusionsOf(StepOf("step_convnet_sgd")),
              testing::IsSupersetOf({"ReLU backward with what follows", "loss with its gradient",
                                     "bias gradient with its operand"}));
  // No loss over classes there.
  EXPECT_THAT(FusionsOf(StepOf("step_norm_sgd")),
              testing::Not(testing::Contains("loss with its gradient")));
}

TEST(Training, AGraphWithoutGradientsIsNoStep) {
  const auto graph = graph::Parse("graph g\ninput x: float32[4]\ny = exp(x)\noutput y\n", "g.atg");
  const auto plan = PlanTraining(graph.value(), {.outputs = {{.name = "y"}}},
                                 FindProfile("H200").value());
  ASSERT_FALSE(plan.has_value());
  EXPECT_THAT(plan.error().ToString(), testing::HasSubstr("gradient"));
}

}  // namespace
}  // namespace atunner::fusion
