// Drawn configurations of every family, compiled and run with all checks on the virtual GPU, against the float64
// references.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "atunner/codegen/family_tasks_test.h"
#include "atunner/compile/nvrtc_compiler.h"
#include "atunner/verify/verifier.h"
#include "atunner/vgpu/virtual_gpu.h"

namespace atunner {
namespace {

class FamilyNumbers : public testing::Test {
 protected:
  explicit FamilyNumbers(const char* profile = "A100") : gpu_(FindProfile(profile).value(), 2) { gpu_.TrackMemory(); }
  void SetUp() override {
    auto made = MakeNvrtcCompiler();
    if (!made) GTEST_SKIP() << made.error().ToString();
    compiler_ = *std::move(made);
    kernels_ = JudgeKernels::Make(gpu_, *compiler_).value();
  }

  CompiledModule Compile(const RenderedKernel& kernel) {
    const CompileOutcome outcome = compiler_->Compile({kernel.source, EntriesOf(kernel.plan), gpu_.arch()}).value();
    EXPECT_TRUE(outcome.ok()) << outcome.error;
    return outcome.ok() ? *outcome.module : CompiledModule{};
  }

  /// One launch with all hazard checks; the outputs stay in `buffers`.
  void Run(const CompiledModule& module, const LaunchPlan& plan, const KernelSpec& spec, const TaskBuffers& buffers) {
    const auto loaded = gpu_.Load(module);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().ToString();
    ASSERT_TRUE(buffers.PoisonOutputs());
    const BoundPlan bound = BindPlan(gpu_, plan, spec, buffers).value();
    for (const auto& workspace : bound.workspaces) gpu_.MarkUndefined(workspace->address(), workspace->bytes());
    const LaunchOptions options{.check_global = true, .timeout_seconds = 60, .blocks = {}};
    const LaunchOutcome outcome = RunPlan(gpu_, **loaded, bound, options).value();
    ASSERT_TRUE(outcome.completed()) << outcome.message
                                     << (outcome.hazards.empty()
                                             ? ""
                                             : outcome.hazards[0].where + ": " + outcome.hazards[0].detail);
  }

  /// Default and one drawn configuration at their check sizes, with ordinary inputs. The verifier adds more families;
  /// what goes wrong in a schedule goes wrong here.
  void CheckTask(const FamilyTask& task, DType dtype, uint64_t seed) {
    SCOPED_TRACE(Describe(task, dtype));
    const auto schedule = MakeTemplate(SpecOf(task, dtype), gpu_.profile());
    ASSERT_TRUE(schedule.has_value()) << schedule.error().ToString();
    CheckConfigurations(**schedule, DrawConfigurations(**schedule, 2, seed), seed);
  }
  void CheckConfigurations(const ScheduleTemplate& schedule, const std::vector<Configuration>& drawn, uint64_t seed) {
    const KernelSpec& spec = schedule.spec();
    auto oracle = OracleStore::Make(gpu_, *compiler_, *kernels_, spec).value();
    for (const Configuration& one : drawn) {
      SCOPED_TRACE(schedule.space().Describe(one));
      const RenderedKernel kernel = schedule.Render(one).value();
      const CompiledModule module = Compile(kernel);
      ASSERT_FALSE(HasFailure());
      EXPECT_EQ(ResourceObstacle(gpu_.profile(), {module, kernel.plan, {}}, spec).value_or(""), "");
      for (const Dims& dims : schedule.CheckDims(one)) {
        const TaskBuffers buffers = TaskBuffers::Allocate(gpu_, spec, dims, 0).value();
        const InputInstance instance{InputFamily::kNormal, seed, false};
        ASSERT_TRUE(buffers.DrawInputs(*kernels_, instance));
        const Reference* reference = oracle->Get(buffers, instance).value();
        Run(module, kernel.plan, spec, buffers);
        ASSERT_FALSE(HasFailure());
        for (const Reference::Output& output : reference->outputs) {
          const CompareStats stats =
              kernels_
                  ->Compare({buffers.Find(output.name)->address, output.dtype, output.masked->address(),
                             output.elements, output.key, output.scale, output.budget.element})
                  .value();
          const OutputJudgement judgement = JudgeOutput(output.name, stats, output.budget, false);
          EXPECT_EQ(Name(judgement.kind), Name(VerdictKind::kCorrect)) << judgement.reason;
        }
      }
    }
  }
  void CheckAllTypes(const FamilyTask& task, uint64_t seed) {
    for (DType dtype : kTaskTypes) CheckTask(task, dtype, seed);
  }

  vgpu::VirtualGpu gpu_;
  std::unique_ptr<Compiler> compiler_;
  std::unique_ptr<JudgeKernels> kernels_;
};

TEST_F(FamilyNumbers, SoftmaxAndItsGradient) {
  CheckAllTypes({"softmax", {{300, 1000}}, {}}, 1);
  CheckAllTypes({"softmax_backward", {{300, 257}}, {}}, 2);
}

TEST_F(FamilyNumbers, LayerNormAndItsGradient) {
  CheckAllTypes({"layernorm", {{300, 768}}, {}}, 3);
  CheckAllTypes({"layernorm_backward", {{300, 129}}, {}}, 4);
}

// Once the running sum was rescaled by almost 1 for every vector that brought no larger element: a fused multiply-add
// had seen more digits of one offset than of the other.
TEST_F(FamilyNumbers, SumsOfManyVectorsKeepTheirDigits) {
  const auto schedule = MakeTemplate(SpecOf({"softmax", {{3, 4096}}, {}}, DType::kFloat32), gpu_.profile()).value();
  std::vector<Configuration> chained;
  for (const Configuration& one : DrawConfigurations(*schedule, 300, 5)) {
    const bool reload = ToString(Get(schedule->space(), one, "storage")) == "reload";
    const int64_t threads = GetInt(schedule->space(), one, "threads_per_row");
    if (chained.empty() && reload && threads <= 16 && GetInt(schedule->space(), one, "vector") == 1)
      chained.push_back(one);
  }
  ASSERT_EQ(chained.size(), 1u);
  CheckConfigurations(*schedule, chained, 5);
}

class HopperNumbers : public FamilyNumbers {
 protected:
  HopperNumbers() : FamilyNumbers("H200") {}
};

TEST_F(HopperNumbers, ProductsOfGroupsOfWarps) {
  CheckTask({"matmul", {{512, 512, 512}}, {}}, DType::kBFloat16, 31);
  CheckTask({"matmul", {{97, 101, 103}}, {}}, DType::kFloat16, 32);
  CheckTask({"matmul", {{64, 64, 8192}}, {}}, DType::kBFloat16, 33);
  CheckTask({"conv2d", {{4, 28, 28, 16}, {32, 3, 3}}, {{"padding", int64_t{1}}}}, DType::kBFloat16, 34);
}

TEST_F(HopperNumbers, AttentionOfGroupsOfWarps) {
  CheckTask({"flash_attention", {{1, 4, 512, 64}}, {}}, DType::kBFloat16, 35);
  CheckTask({"flash_attention", {{1, 4, 512, 128}}, {{"causal", true}}}, DType::kFloat16, 36);
  CheckTask({"flash_attention", {{1, 4, 512, 37}}, {{"scale", -0.3}, {"causal", true}}}, DType::kFloat16, 37);
}

// Blocks with one tile of queries, with several, and with pairs; groups of warps that take turns at the tensor cores.
TEST_F(HopperNumbers, AttentionInEveryOrder) {
  const FamilyTask task{"flash_attention", {{1, 4, 512, 64}}, {{"causal", true}}};
  const auto schedule = MakeTemplate(SpecOf(task, DType::kBFloat16), gpu_.profile()).value();
  std::map<int64_t, Configuration> by_order;
  for (const Configuration& one : DrawConfigurations(*schedule, 300, 38)) {
    const auto integer = [&](const char* name) { return GetInt(schedule->space(), one, name); };
    if (integer("tile_q") > 64 && integer("turns") == 1) by_order.try_emplace(integer("order"), one);
  }
  ASSERT_EQ(by_order.size(), 3u);
  for (const auto& [order, one] : by_order) CheckConfigurations(*schedule, {one}, 38);
}

TEST_F(HopperNumbers, BlocksThatShareARowAgree) {
  for (const char* op : {"softmax", "softmax_backward", "layernorm", "layernorm_backward"}) {
    for (const auto& [cols, dtype] : {std::pair(8192, DType::kFloat32), std::pair(8201, DType::kBFloat16)}) {
      const FamilyTask task{op, {{5, cols}}, {}};
      SCOPED_TRACE(Describe(task, dtype));
      const auto schedule = MakeTemplate(SpecOf(task, dtype), gpu_.profile()).value();
      std::vector<Configuration> clustered, deferred;
      for (const Configuration& one : DrawConfigurations(*schedule, 200, 21)) {
        if (GetInt(schedule->space(), one, "cluster") == 1) continue;
        auto& some = GetInt(schedule->space(), one, "prefetch") == 2 ? deferred : clustered;
        if (some.size() < 2) some.push_back(one);
      }
      ASSERT_EQ(clustered.size(), 2u);
      ASSERT_EQ(deferred.empty(), cols % 2 != 0) << "asynchronous copies want aligned rows";
      clustered.insert(clustered.end(), deferred.begin(), deferred.end());
      CheckConfigurations(*schedule, clustered, 21);
    }
  }
}

TEST_F(FamilyNumbers, RowsOfOneElement) {
  for (const char* op : {"softmax", "softmax_backward", "layernorm", "layernorm_backward"})
    CheckTask({op, {{1, 1}}, {}}, DType::kFloat16, 5);
}

TEST_F(FamilyNumbers, MatrixProducts) {
  CheckAllTypes({"matmul", {{512, 512, 512}}, {}}, 6);
  CheckAllTypes({"matmul", {{97, 101, 103}}, {}}, 7);
}

TEST_F(FamilyNumbers, SplitProducts) {
  CheckTask({"matmul", {{64, 64, 8192}}, {}}, DType::kFloat32, 8);
  CheckTask({"matmul", {{64, 64, 8192}}, {}}, DType::kBFloat16, 8);
}

TEST_F(FamilyNumbers, Convolutions) {
  CheckAllTypes({"conv2d", {{4, 28, 28, 16}, {32, 3, 3}}, {{"padding", int64_t{1}}}}, 9);
  CheckTask({"conv2d",
             {{2, 30, 31, 3}, {13, 5, 4}},
             {{"stride", int64_t{2}}, {"padding", int64_t{2}}, {"dilation", int64_t{2}}}},
            DType::kFloat16, 10);
}

TEST_F(FamilyNumbers, Attention) {
  CheckAllTypes({"flash_attention", {{1, 4, 512, 64}}, {}}, 11);
  CheckTask({"flash_attention", {{1, 4, 512, 37}}, {{"scale", -0.3}}}, DType::kFloat16, 12);
}

TEST_F(FamilyNumbers, CausalAttention) {
  CheckAllTypes({"flash_attention", {{1, 4, 512, 64}}, {{"causal", true}}}, 13);
  CheckTask({"flash_attention", {{1, 4, 512, 128}}, {{"causal", true}}}, DType::kBFloat16, 14);
  CheckTask({"flash_attention", {{1, 4, 512, 40}}, {{"causal", true}}}, DType::kBFloat16, 15);
}

// Rows of a causal mask that see few keys have results as large as a value, and in them the rounding of the weights to
// 16 bits does not average out: against the rms of a long sequence's results (0.0655 at 4096 normal keys) that is ten
// units of roundoff. The budget must come from an honest kernel that rounds as well, or no kernel passes.
TEST_F(FamilyNumbers, TheFirstRowsOfALongCausalMaskAreWithinTheBudget) {
  constexpr double kRmsOfALongSequence = 0.0655;
  const FamilyTask task{"flash_attention", {{1, 32, 64, 32}}, {{"causal", true}}};
  for (DType dtype : {DType::kBFloat16, DType::kFloat16}) {
    SCOPED_TRACE(Name(dtype));
    const auto schedule = MakeTemplate(SpecOf(task, dtype), gpu_.profile()).value();
    const KernelSpec& spec = schedule->spec();
    auto oracle = OracleStore::Make(gpu_, *compiler_, *kernels_, spec).value();
    const TaskBuffers buffers = TaskBuffers::Allocate(gpu_, spec, spec.dims, 0).value();
    const InputInstance instance{InputFamily::kNormal, 4, false};
    ASSERT_TRUE(buffers.DrawInputs(*kernels_, instance));
    const Reference::Output& output = oracle->Get(buffers, instance).value()->outputs[0];
    const auto worst = [&](const RenderedKernel& kernel) {
      Run(Compile(kernel), kernel.plan, spec, buffers);
      CompareRequest request{buffers.Find("y")->address, dtype, output.masked->address(), output.elements, output.key,
                             kRmsOfALongSequence};
      return kernels_->Compare(request).value();
    };
    const ErrorBudget budget = BudgetFromHonest(worst(*schedule->Naive()), dtype, {});
    const CompareStats candidate = worst(schedule->Render(schedule->Default()).value());
    EXPECT_GT(candidate.worst, 4.2 * UnitRoundoff(dtype)) << "or this test shows nothing";
    const OutputJudgement judgement = JudgeOutput("y", candidate, budget, false);
    EXPECT_EQ(Name(judgement.kind), Name(VerdictKind::kCorrect)) << judgement.reason;
    EXPECT_LT(budget.norm, 10 * UnitRoundoff(dtype)) << "and the norm's bound stays tight";
  }
}

// Two keys of nearly equal, large scores share one row in a thousand or so. What the plain kernel errs by there in one
// run is luck, and a budget taken from a lucky run refuses every kernel.
TEST_F(FamilyNumbers, RowsWhereLargeLogitsCompeteAreWithinTheBudget) {
  const auto schedule =
      MakeTemplate(SpecOf({"flash_attention", {{1, 2, 48, 32}}, {}}, DType::kFloat32), gpu_.profile());
  const KernelSpec& spec = (*schedule)->spec();
  const RenderedKernel kernel = (*schedule)->Render((*schedule)->Default()).value();
  const CompiledModule module = Compile(kernel);
  auto oracle = OracleStore::Make(gpu_, *compiler_, *kernels_, spec).value();
  const TaskBuffers buffers = TaskBuffers::Allocate(gpu_, spec, spec.dims, 0).value();
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const InputInstance instance{InputFamily::kLargeLogits, Mix64(seed), false};
    ASSERT_TRUE(buffers.DrawInputs(*kernels_, instance));
    const Reference::Output& output = oracle->Get(buffers, instance).value()->outputs[0];
    Run(module, kernel.plan, spec, buffers);
    const CompareStats stats = kernels_
                                   ->Compare({buffers.Find("y")->address, output.dtype, output.masked->address(),
                                              output.elements, output.key, output.scale, output.budget.element})
                                   .value();
    const OutputJudgement judgement = JudgeOutput("y", stats, output.budget, false);
    EXPECT_EQ(Name(judgement.kind), Name(VerdictKind::kCorrect)) << "seed " << seed << ": " << judgement.reason;
    EXPECT_LT(output.budget.norm, 1e-3) << "half precision does not fit in";
  }
}

}  // namespace
}  // namespace atunner
