// Families' kernels on the virtual GPU with all hazard checks, against the oracle.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "atunner/codegen/tests/expect_correct_test.h"
#include "atunner/codegen/tests/family_tasks_test.h"
#include "atunner/compile/shared_compiler_test.h"
#include "atunner/verify/verifier.h"
#include "atunner/vgpu/virtual_gpu.h"

namespace atunner {

class FamilyNumbers : public testing::Test {
 protected:
  explicit FamilyNumbers(const char* profile = "A100") : gpu_(FindProfile(profile).value(), 2) {
    gpu_.TrackMemory();
  }
  void SetUp() override {
    auto made = MakeSharedCompiler();
    if (!made) GTEST_SKIP() << made.error().ToString();
    compiler_ = *std::move(made);
    kernels_ = JudgeKernels::Make(gpu_, *compiler_).value();
  }

  CompiledModule Compile(const RenderedKernel& kernel) {
    const CompileOutcome outcome =
        compiler_->Compile({kernel.source, EntriesOf(kernel.plan), gpu_.arch()}).value();
    EXPECT_TRUE(outcome.ok()) << outcome.error;
    return outcome.ok() ? *outcome.module : CompiledModule{};
  }

  /// One launch with all hazard checks; the outputs stay in `buffers`.
  void Run(const CompiledModule& module, const LaunchPlan& plan, const KernelSpec& spec,
           const TaskBuffers& buffers) {
    const auto loaded = gpu_.Load(module);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().ToString();
    ASSERT_TRUE(buffers.PoisonOutputs(*kernels_, Poison::Fresh()));
    const BoundPlan bound = BindPlan(gpu_, plan, spec, buffers).value();
    for (const auto& workspace : bound.workspaces)
      gpu_.MarkContents(workspace->address(), workspace->bytes(), false);
    const LaunchOptions options{.check_global = true, .timeout_seconds = 60, .blocks = {}};
    const LaunchOutcome outcome = RunPlan(gpu_, **loaded, bound, options).value();
    ASSERT_TRUE(outcome.completed())
        << outcome.message
        << (outcome.hazards.empty() ? ""
                                    : outcome.hazards[0].where + ": " + outcome.hazards[0].detail);
  }

  /// Default and one drawn configuration at their check sizes, with ordinary inputs. The verifier
  /// adds more families; what goes wrong in a schedule goes wrong here.
  void CheckTask(const FamilyTask& task, DType dtype, uint64_t seed) {
    SCOPED_TRACE(Describe(task, dtype));
    const auto schedule = MakeTemplate(SpecOf(task, dtype), gpu_.profile());
    ASSERT_TRUE(schedule.has_value()) << schedule.error().ToString();
    CheckConfigurations(**schedule, DrawConfigurations(**schedule, 2, seed), seed);
  }
  void CheckConfigurations(const ScheduleTemplate& schedule,
                           const std::vector<Configuration>& drawn, uint64_t seed,
                           std::initializer_list<InputFamily> families = {InputFamily::kNormal}) {
    const KernelSpec& spec = schedule.spec();
    auto oracle = OracleStore::Make(gpu_, *compiler_, *kernels_, spec).value();
    for (const Configuration& one : drawn) {
      SCOPED_TRACE(schedule.space().Describe(one));
      const RenderedKernel kernel = schedule.Render(one).value();
      const CompiledModule module = Compile(kernel);
      ASSERT_FALSE(HasFailure());
      EXPECT_EQ(ResourceObstacle(gpu_.profile(), {module, kernel.plan, {}}, spec).value_or(""), "");
      std::vector<Dims> sizes = schedule.CheckDims(one);
      if (sizes.empty()) sizes.push_back(spec.dims);
      for (const Dims& dims : sizes) {
        const TaskBuffers buffers = TaskBuffers::Allocate(gpu_, spec, dims, 0).value();
        for (const InputFamily family : families) {
          SCOPED_TRACE(Name(family));
          const InputInstance instance{family, seed, false};
          ASSERT_TRUE(buffers.DrawInputs(*kernels_, instance));
          const Reference* reference = oracle->Get(buffers, instance).value();
          Run(module, kernel.plan, spec, buffers);
          ASSERT_FALSE(HasFailure());
          for (const Reference::Output& output : reference->outputs)
            ExpectCorrect(*kernels_, buffers, output);
        }
      }
    }
  }
  /// The default, and a few other configurations, at the task's own size.
  void CheckGraph(const FamilyTask& task, DType dtype, const char* family) {
    SCOPED_TRACE(Describe(task, dtype));
    const KernelSpec spec = SpecOf(task, dtype);
    const auto schedule = MakeTemplate(spec, gpu_.profile());
    ASSERT_TRUE(schedule.has_value()) << schedule.error().ToString();
    EXPECT_EQ(FamilyOf(Task::Of(spec))->name, family);
    CheckConfigurations(**schedule, DrawConfigurations(**schedule, 4, 21), 60);
  }
  void CheckAllTypes(const FamilyTask& task, uint64_t seed) {
    for (DType dtype : kTaskTypes) CheckTask(task, dtype, seed);
  }

  vgpu::VirtualGpu gpu_;
  std::unique_ptr<Compiler> compiler_;
  std::unique_ptr<JudgeKernels> kernels_;
};

class HopperNumbers : public FamilyNumbers {
 protected:
  HopperNumbers() : FamilyNumbers("H200") {}
};

}  // namespace atunner
