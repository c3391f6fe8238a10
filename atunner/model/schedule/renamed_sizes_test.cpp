#include "atunner/model/schedule/renamed_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace atunner {
namespace {

/// A schedule with a size "size_block" and a parameter "block".
class Blocks : public ScheduleTemplate {
 public:
  Blocks() {
    spec_.dims = {{"size_block", 64}};
    space_.parameters = {{"block", {Value(int64_t{8}), Value(int64_t{128})}, ""}};
    space_.constraints = {{Expr::MustParse("block <= size_block"), "blocks that have work"}};
  }
  const KernelSpec& spec() const override { return spec_; }
  const ParameterSpace& space() const override { return space_; }
  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    RenderedKernel kernel;
    LaunchStep step;
    step.grid[0] = Expr::MustParse("ceil_div(size_block, block)");
    step.block[0] = Expr::MustParse("block");
    kernel.plan.steps = {step};
    kernel.plan.parameter_names = space_.Names();
    kernel.plan.parameter_values = configuration.values;
    return kernel;
  }
  Configuration Default() const override { return {{Value(int64_t{8})}}; }
  std::vector<Dims> CheckDims(const Configuration&) const override { return {{{"size_block", 3}}}; }
  ValidSizes FreeSizes(const Configuration&) const override {
    return {{"size_block"}, {{Expr::MustParse("size_block % 4 == 0"), "fours"}}};
  }

 private:
  KernelSpec spec_;
  ParameterSpace space_;
};

std::unique_ptr<ScheduleTemplate> Renamed() {
  KernelSpec spec;
  spec.dims = {{"block", 64}};
  return RenamedSizes::Make(spec, std::make_unique<Blocks>()).value();
}

TEST(RenamedSizes, ASizeMayBeCalledAsAParameterIs) {
  const auto schedule = Renamed();
  const LaunchPlan plan = schedule->Render(schedule->Default()).value().plan;
  const ConcretePlan at = Resolve(plan, {{"block", 33}}, {}).value();
  EXPECT_EQ(at.steps[0].grid.x, 5u);
  EXPECT_EQ(at.steps[0].block.x, 8u);
}

TEST(RenamedSizes, ConstraintsAreOverTheTasksOwnSize) {
  const auto schedule = Renamed();
  EXPECT_TRUE(schedule->space().Allows({{Value(int64_t{8})}}, schedule->spec().dims).value());
  EXPECT_FALSE(schedule->space().Allows({{Value(int64_t{128})}}, schedule->spec().dims).value());
}

TEST(RenamedSizes, SizesAreSaidInTheTasksNames) {
  const auto schedule = Renamed();
  EXPECT_EQ(schedule->CheckDims({}), (std::vector<Dims>{{{"block", 3}}}));
  const ValidSizes freedom = schedule->FreeSizes({});
  EXPECT_TRUE(Serves(freedom, {{"block", 64}}, {{"block", 8}}, {}).has_value());
  EXPECT_FALSE(Serves(freedom, {{"block", 64}}, {{"block", 9}}, {}).has_value());
}

}  // namespace
}  // namespace atunner
