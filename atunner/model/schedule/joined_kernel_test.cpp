#include "atunner/model/schedule/joined_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace atunner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

ArgSpec Arg(const char* name, Role role) {
  ArgSpec arg;
  arg.name = name;
  arg.role = role;
  arg.dtype = DType::kFloat32;
  arg.shape = {Expr::MustParse("n")};
  return arg;
}

/// y = f(x), by a kernel of the name "f" that keeps something.
KernelSpec TaskOf(int64_t n) {
  KernelSpec task;
  task.name = "task";
  task.dims = {{"n", n}};
  task.args = {Arg("x", Role::kInput), Arg("y", Role::kOutput)};
  return task;
}

RenderedKernel Kernel(const std::string& body) {
  RenderedKernel kernel;
  kernel.source.text =
      "#include <cuda_fp16.h>\nextern \"C\" __global__ void __launch_bounds__(64) f(float* x) {\n "
      " " +
      body + "\n}\n";
  LaunchStep step;
  step.entry = "f";
  step.grid[0] = Expr::MustParse("ceil_div(n, tile)");
  step.args = {ArgBinding::Tensor("x"), ArgBinding::Workspace("kept"), ArgBinding::Tensor("y")};
  kernel.plan.workspaces = {{"kept", Expr::MustParse("4 * n")}};
  kernel.plan.steps = {step};
  kernel.plan.parameter_names = {"tile"};
  kernel.plan.parameter_values = {Value(int64_t{8})};
  return kernel;
}

RenderedKernel Joined(bool early, int64_t first = 64) {
  KernelSpec whole;
  whole.name = "whole";
  whole.args = {Arg("a", Role::kInput), Arg("b", Role::kOutput)};
  JoinedKernel joined(whole, early);
  EXPECT_TRUE(
      joined.Add(Kernel("work();"), TaskOf(first), {{"x", "a"}, {"y", "between"}}, {{"n", "64"}})
          .has_value());
  EXPECT_TRUE(joined
                  .Add(Kernel("await_launch_before();"), TaskOf(24), {{"x", "between"}, {"y", "b"}},
                       {{"n", "24"}})
                  .has_value());
  return std::move(joined).Finish();
}

TEST(JoinedKernel, HasStepsOfAllWithSizesAsNumbers) {
  const LaunchPlan plan = Joined(false).plan;
  ASSERT_EQ(plan.steps.size(), 2u);
  EXPECT_EQ(plan.steps[0].entry + " " + plan.steps[1].entry, "stage1_f stage2_f");
  EXPECT_EQ(plan.steps[0].grid[0].text() + " " + plan.steps[1].grid[0].text(), "8 3");
  std::vector<std::string> names;
  for (const Workspace& each : plan.workspaces)
    names.push_back(each.name + " " + each.bytes.text());
  EXPECT_THAT(names, ElementsAre("between 256", "stage1_kept 256", "stage2_kept 96"));
  const auto& args = plan.steps[1].args;
  EXPECT_EQ(args[0].name, "between");
  EXPECT_EQ(args[0].kind, ArgBinding::Kind::kWorkspace);
  EXPECT_EQ(args[1].name, "stage2_kept");
  EXPECT_EQ(args[2].name, "b");
  EXPECT_EQ(args[2].kind, ArgBinding::Kind::kTensor);
  EXPECT_FALSE(plan.steps[1].programmatic);
}

TEST(JoinedKernel, SizesOfTheWholeStayOpen) {
  KernelSpec whole;
  whole.name = "whole";
  whole.dims = {{"n", 64}};
  whole.args = {Arg("a", Role::kInput), Arg("b", Role::kOutput)};
  JoinedKernel joined(whole, false);
  ASSERT_TRUE(
      joined.Add(Kernel("work();"), TaskOf(64), {{"x", "a"}, {"y", "between"}}, {}).has_value());
  const LaunchPlan plan = std::move(joined).Finish().plan;
  const Dims at{{"n", 33}};
  EXPECT_EQ(plan.steps[0].grid[0].EvaluateInt(Bindings(at)).value(), 5);
  ASSERT_EQ(plan.workspaces.size(), 2u);
  for (const Workspace& workspace : plan.workspaces)
    EXPECT_EQ(workspace.bytes.EvaluateInt(Bindings(at)).value(), 132) << workspace.name;
}

TEST(JoinedKernel, KeepsStagesApart) {
  const std::string text = Joined(false).source.text;
  EXPECT_TRUE(
      text.starts_with("// whole in 2 parts that follow each other, scheduled by "
                       "atunner.\n#include <cuda_fp16.h>\n\n"))
      << text;
  EXPECT_EQ(text.find("#include"), text.rfind("#include"));
  EXPECT_THAT(text, HasSubstr("#define f stage1_f\nnamespace stage1 {"));
  EXPECT_THAT(text, HasSubstr("using stage2::f;\n#undef f\n"));
  EXPECT_THAT(text, Not(HasSubstr("griddepcontrol")));
}

// A kernel that calls await_launch_before() waits there. IS_GIVEN_ is not defined for the results
// of an earlier stage.
TEST(JoinedKernel, LetsStagesStartEarly) {
  const RenderedKernel kernel = Joined(true);
  EXPECT_FALSE(kernel.plan.steps[0].programmatic);
  EXPECT_TRUE(kernel.plan.steps[1].programmatic);
  const std::string& text = kernel.source.text;
  EXPECT_THAT(text, HasSubstr("#define STARTS_EARLY\n"));
  const std::string first = text.substr(0, text.find("namespace stage2"));
  EXPECT_THAT(first, HasSubstr("griddepcontrol.launch_dependents;\\ngriddepcontrol.wait;"));
  EXPECT_THAT(first, HasSubstr("#define IS_GIVEN_x\n"));
  const std::string second = text.substr(first.size());
  EXPECT_THAT(second, HasSubstr("griddepcontrol.launch_dependents;\""));
  EXPECT_THAT(second, Not(HasSubstr("griddepcontrol.wait")));
  EXPECT_THAT(second, Not(HasSubstr("IS_GIVEN_x")));
}

TEST(JoinedKernel, LetsLargeStagesWaitForTheirTurn) {
  const std::string text = Joined(true, 20'000'000).source.text;
  const size_t second = text.find("namespace stage2");
  EXPECT_THAT(text.substr(0, second), Not(HasSubstr("griddepcontrol")));
  EXPECT_THAT(text.substr(second), HasSubstr("griddepcontrol.launch_dependents"));
}

}  // namespace
}  // namespace atunner
