// Kernels that families write for graphs, run with all checks on the virtual GPU against the
// evaluation of the graph in float64.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "atunner/codegen/tests/expect_correct_test.h"
#include "atunner/codegen/tests/family_tasks_test.h"
#include "atunner/compile/shared_compiler_test.h"
#include "atunner/graph/library/library.h"
#include "atunner/graph/text.h"
#include "atunner/operators/graph_operator.h"
#include "atunner/verify/verifier.h"
#include "atunner/vgpu/virtual_gpu.h"

namespace atunner {

class GraphKernels : public testing::Test {
 protected:
  explicit GraphKernels(const char* profile = "A100") : gpu_(FindProfile(profile).value(), 2) {}
  void SetUp() override {
    auto made = MakeSharedCompiler();
    if (!made) GTEST_SKIP() << made.error().ToString();
    compiler_ = *std::move(made);
    kernels_ = JudgeKernels::Make(gpu_, *compiler_).value();
  }

  /// The task's default and `drawn` other configurations, at the task's size and at their check
  /// sizes.
  void Check(const KernelSpec& spec, const std::string& family, size_t drawn = 0) {
    SCOPED_TRACE(spec.name + " " + ToString(spec.dims) + "\n" + spec.oracle.graph);
    const auto schedule = MakeTemplate(spec, gpu_.profile());
    ASSERT_TRUE(schedule.has_value()) << schedule.error().ToString();
    const Task task = Task::Of(spec);
    const bool matched = std::ranges::any_of(
        AllFamilies(), [&](const Family* each) { return each->name == family && each->Try(task); });
    ASSERT_TRUE(matched) << "not a task of the family " << family;
    Check(spec, **schedule, drawn);
  }

  void Check(const KernelSpec& spec, const ScheduleTemplate& schedule, size_t drawn) {
    auto oracle = OracleStore::Make(gpu_, *compiler_, *kernels_, spec);
    ASSERT_TRUE(oracle.has_value()) << oracle.error().ToString();
    for (const Configuration& one : DrawConfigurations(schedule, 1 + drawn, 7))
      CheckConfiguration(spec, schedule, one, **oracle);
  }

  void CheckConfiguration(const KernelSpec& spec, const ScheduleTemplate& schedule,
                          const Configuration& one, OracleStore& oracle) {
    SCOPED_TRACE(schedule.space().Describe(one));
    const RenderedKernel kernel = schedule.Render(one).value();
    const CompileOutcome outcome =
        compiler_->Compile({kernel.source, EntriesOf(kernel.plan), gpu_.arch()}).value();
    ASSERT_TRUE(outcome.ok()) << outcome.error << kernel.source.text;
    std::vector<Dims> sizes = schedule.CheckDims(one);
    if (std::ranges::find(sizes, spec.dims) == sizes.end()) sizes.push_back(spec.dims);
    for (const Dims& dims : sizes) CheckSize(spec, kernel, *outcome.module, dims, oracle);
  }

  void CheckSize(const KernelSpec& spec, const RenderedKernel& kernel, const CompiledModule& module,
                 const Dims& dims, OracleStore& oracle) {
    SCOPED_TRACE(ToString(dims));
    const TaskBuffers buffers = TaskBuffers::Allocate(gpu_, spec, dims, 0).value();
    const InputInstance instance{inputs_, 3, false};
    ASSERT_TRUE(buffers.DrawInputs(*kernels_, instance));
    PutInto(buffers);
    const auto reference = oracle.Get(buffers, instance);
    ASSERT_TRUE(reference.has_value()) << reference.error().ToString();
    PutInto(buffers);  // the oracle may have drawn them once more
    const auto loaded = gpu_.Load(module);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().ToString();
    const BoundPlan bound = BindPlan(gpu_, kernel.plan, spec, buffers).value();
    for (int launch = 0; launch < launches_; ++launch) {
      ASSERT_TRUE(buffers.PoisonOutputs(*kernels_, Poison::Fresh()));
      const LaunchOutcome ran =
          RunPlan(gpu_, **loaded, bound, {.timeout_seconds = 60, .blocks = {}}).value();
      ASSERT_TRUE(ran.completed())
          << ran.message
          << (ran.hazards.empty() ? "" : ran.hazards[0].where + ": " + ran.hazards[0].detail)
          << kernel.source.text;
      for (const Reference::Output& output : (*reference)->outputs) {
        ExpectCorrect(*kernels_, buffers, output);
        ++verified_;
      }
    }
  }

  /// What a test wants to have in the inputs besides.
  virtual void PutInto(const TaskBuffers&) {}

  KernelSpec SpecOfText(const std::string& text, const Dims& dims = {}) {
    return SpecOfGraph(graph::Parse(text, "test.atg").value(), dims).value();
  }

  vgpu::VirtualGpu gpu_;
  std::unique_ptr<Compiler> compiler_;
  std::unique_ptr<JudgeKernels> kernels_;
  size_t verified_ = 0;
  int launches_ = 1;  ///< in the same workspace, which an earlier one has left as it is
  InputFamily inputs_ = InputFamily::kNormal;
};

}  // namespace atunner
