#include "atunner/tune/transfer.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "atunner/model/json/json.h"

namespace atunner {
namespace {

KernelSpec Spec(int64_t rows) {
  KernelSpec spec;
  spec.name = "softmax";
  spec.dims = {{"cols", 1024}, {"rows", rows}};
  spec.args = {{.name = "x",
                .role = Role::kInput,
                .shape = {Expr::MustParse("rows")},
                .value = {},
                .fill = {}}};
  return spec;
}

ParameterSpace Space(int64_t most) {
  ParameterSpace space;
  space.parameters = {{"threads", {}, ""}, {"items", {int64_t{1}, int64_t{2}}, ""}};
  for (int64_t v = 32; v <= most; v += 32) space.parameters[0].values.emplace_back(v);
  return space;
}

class TransferTest : public testing::Test {
 protected:
  void SetUp() override { store_ = Store::Open(folder_.path() / "s.db").value(); }

  RunRecord Record(const std::string& id, const KernelSpec& spec,
                   const ParameterSpace& space) const {
    RunRecord run;
    run.id = id;
    run.key = "key of " + id;
    run.created = "2026-01-01T00:00:00Z";
    run.status = "finished";
    run.evidence = "measured";
    run.device = "A100";
    run.spec = DumpJson(ToJson(spec));
    run.space = DumpJson(ToJson(space));
    run.summary = "{}";
    return run;
  }

  void Add(RunRecord run, const ParameterSpace& space, int64_t trials = 40) {
    bool resumed = false;
    ASSERT_TRUE(store_->OpenRun(run, resumed));
    for (int64_t i = 0; i < trials; ++i) {
      Trial trial;
      trial.number = i + 1;
      const auto& threads = space.parameters[0].values;
      trial.candidate = MakeCandidate(
          space, {{threads[static_cast<size_t>(i / 2) % threads.size()], int64_t{1 + i % 2}}}, {});
      trial.measurement.emplace();
      trial.measurement->median_ns = 1000 + static_cast<double>(i);
      ASSERT_TRUE(store_->AppendTrial(run.id, trial));
    }
  }

  std::vector<std::string> Names() {
    const auto runs = PriorRunsFor(*store_, Record("mine", Spec(4096), Space(1024)), Spec(4096),
                                   Space(1024));
    EXPECT_TRUE(runs) << runs.error().ToString();
    std::vector<std::string> names;
    for (const PriorRun& prior : *runs) names.push_back(prior.run);
    return names;
  }

  TemporaryDirectory folder_;
  std::unique_ptr<Store> store_;
};

TEST_F(TransferTest, TheSameDeviceComesFirstThenTheNearestSizes) {
  RunRecord elsewhere = Record("elsewhere", Spec(4096), Space(1024));
  elsewhere.device = "H200";
  Add(elsewhere, Space(1024));
  Add(Record("far", Spec(512), Space(1024)), Space(1024));
  Add(Record("near", Spec(8192), Space(768)), Space(768));
  EXPECT_EQ(Names(), (std::vector<std::string>{"near", "far", "elsewhere"}));
}

TEST_F(TransferTest, WhatIsNotClearlyAlikeTeachesNothing) {
  const auto add = [&](const char* id,
                       const std::function<void(RunRecord&, KernelSpec&, ParameterSpace&)>& change,
                       int64_t trials = 40) {
    KernelSpec spec = Spec(4096);
    ParameterSpace space = Space(1024);
    RunRecord unchanged;
    change(unchanged, spec, space);
    RunRecord run = Record(id, spec, space);
    if (!unchanged.evidence.empty()) run.evidence = unchanged.evidence;
    if (!unchanged.spec.empty()) run.spec = unchanged.spec;
    Add(run, space, trials);
  };
  add("predicted", [](auto& run, auto&, auto&) { run.evidence = "predicted"; });
  add("another kernel", [](auto&, auto& spec, auto&) { spec.name = "layernorm"; });
  add("another attribute", [](auto&, auto& spec, auto&) { spec.attributes["causal"] = true; });
  add("another type", [](auto&, auto& spec, auto&) { spec.args[0].dtype = DType::kFloat16; });
  add("too large", [](auto&, auto& spec, auto&) { spec.dims["rows"] = 4096 * 9; });
  add("another size", [](auto&, auto& spec, auto&) { spec.dims["depth"] = 2; });
  add("another parameter", [](auto&, auto&, auto& space) { space.parameters[1].name = "unroll"; });
  add("few values", [](auto&, auto&, auto& space) { space.parameters[0].values.resize(12); });
  add("few trials", [](auto&, auto&, auto&) {}, 19);
  add("damaged", [](auto& run, auto&, auto&) { run.spec = "{"; });
  EXPECT_TRUE(Names().empty());
  add("alike", [](auto&, auto&, auto&) {}, 20);
  EXPECT_EQ(Names(), std::vector<std::string>{"alike"});
}

}  // namespace
}  // namespace atunner
