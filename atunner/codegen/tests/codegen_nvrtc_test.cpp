// Drawn configurations compile for Hopper, and what the space believes to fit does fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "atunner/codegen/tests/family_tasks_test.h"
#include "atunner/compile/nvrtc_compiler.h"
#include "atunner/verify/verifier.h"

namespace atunner {
namespace {

TEST(Compiles, DrawnConfigurationsFitTheDevice) {
  auto compiler = MakeNvrtcCompiler();
  if (!compiler) GTEST_SKIP() << compiler.error().ToString();
  const DeviceProfile profile = FindProfile("H200").value();
  const FamilyTask tasks[] = {
      {"softmax", {{4096, 8192}}, {}},
      {"softmax_backward", {{4096, 1536}}, {}},
      {"layernorm", {{4096, 5120}}, {}},
      {"layernorm_backward", {{4096, 1024}}, {}},
      {"matmul", {{4096, 4096, 4096}}, {}},
      {"matmul", {{1001, 1003, 1007}}, {}},
      {"conv2d", {{32, 56, 56, 64}, {64, 3, 3}}, {{"padding", int64_t{1}}}},
      {"flash_attention", {{4, 16, 4096, 128}}, {{"causal", true}}},
  };
  uint64_t seed = 100;
  for (const FamilyTask& task : tasks) {
    for (DType dtype : kTaskTypes) {
      SCOPED_TRACE(Describe(task, dtype));
      const auto schedule = MakeTemplate(SpecOf(task, dtype), profile).value();
      const Configuration one = DrawConfigurations(*schedule, 2, ++seed).back();
      SCOPED_TRACE(schedule->space().Describe(one));
      const RenderedKernel kernel = schedule->Render(one).value();
      CompileRequest request{kernel.source, {}, profile.Arch()};
      for (const LaunchStep& step : kernel.plan.steps) {
        if (std::ranges::find(request.entries, step.entry) == request.entries.end())
          request.entries.push_back(step.entry);
      }
      const CompileOutcome outcome = (*compiler)->Compile(request).value();
      EXPECT_TRUE(outcome.ok()) << outcome.error;
      if (!outcome.ok()) continue;
      EXPECT_EQ(ResourceObstacle(profile, {*outcome.module, kernel.plan, {}}, schedule->spec())
                    .value_or(""),
                "");
    }
  }
}

// Two products have kernels of the same names, some of which are not launched; a sum finishes a
// product.
TEST(Compiles, StagesOfTheSameFamily) {
  auto compiler = MakeNvrtcCompiler();
  if (!compiler) GTEST_SKIP() << compiler.error().ToString();
  const DeviceProfile profile = FindProfile("H200").value();
  const std::pair<FamilyTask, DType> tasks[] = {
      {{"batched_matmul_backward", {{1024, 1024}, {1024, 1024}}, {}}, DType::kFloat32},
      {{"int4_linear_backward", {{1024, 1024}, {1024, 1024}}, {}}, DType::kBFloat16},
      {{"attention_paged", {{2, 2, 2}, {3, 2, 1, 2}, {2, 2}}, {}}, DType::kBFloat16},
  };
  for (const auto& [task, dtype] : tasks) {
    SCOPED_TRACE(Describe(task, dtype));
    const auto schedule = kStagesFamily.Try(Task::Of(SpecOf(task, dtype))).bind(profile).value();
    const RenderedKernel kernel = schedule->Render(schedule->Default()).value();
    const CompileOutcome outcome =
        (*compiler)->Compile({kernel.source, EntriesOf(kernel.plan), profile.Arch()}).value();
    EXPECT_TRUE(outcome.ok()) << outcome.error;
  }
}

}  // namespace
}  // namespace atunner
