// Rows, convolutions and attention on the virtual GPU.
#include <map>

#include "atunner/codegen/tests/family_numbers_test.h"

namespace atunner {
namespace {

TEST_F(FamilyNumbers, SoftmaxAndItsGradient) {
  CheckAllTypes({"softmax", {{300, 1000}}, {}}, 1);
  CheckAllTypes({"softmax_backward", {{300, 257}}, {}}, 2);
}

TEST_F(FamilyNumbers, LayerNormAndItsGradient) {
  CheckAllTypes({"layernorm", {{300, 768}}, {}}, 3);
  CheckAllTypes({"layernorm_backward", {{300, 129}}, {}}, 4);
}

/// Rows that are read element by element, and again for the second pass.
Configuration ReadAgain(const ScheduleTemplate& schedule, int64_t threads, int64_t rows) {
  Configuration one = schedule.Default();
  const auto set = [&](const char* name, const Value& value) {
    one.values[static_cast<size_t>(schedule.space().Find(name))] = value;
  };
  set("storage", std::string("reload"));
  set("threads_per_row", threads);
  set("rows_per_block", rows);
  set("vector", int64_t{1});
  for (const char* off : {"prefetch", "keep", "blocks_per_sm"}) set(off, int64_t{0});
  EXPECT_TRUE(schedule.space().Allows(one, schedule.spec().dims).value());
  return one;
}

// Once the running sum was rescaled by almost 1 for every vector that brought no larger element: a
// fused multiply-add had seen more digits of one offset than of the other.
TEST_F(FamilyNumbers, SumsOfManyVectorsKeepTheirDigits) {
  const auto schedule =
      MakeTemplate(SpecOf({"softmax", {{3, 4096}}, {}}, DType::kFloat32), gpu_.profile()).value();
  CheckConfigurations(*schedule, {ReadAgain(*schedule, 16, 2)}, 5);
}

// A thread's long chain of narrow vectors once erred in one direction where one element outweighs
// all others, and its deviations from a single far element cancelled: errors of up to 2.5 times the
// bound.
TEST_F(FamilyNumbers, NarrowVectorsStandHeavyTails) {
  struct Case {
    const char* op;
    int64_t columns;
    uint64_t seeds;  // of sixteen drawings of layernorm two showed it
  };
  for (const auto& [op, columns, seeds] : {Case{"softmax", 2048, 2}, Case{"layernorm", 256, 16}}) {
    SCOPED_TRACE(op);
    const auto schedule =
        MakeTemplate(SpecOf({op, {{4096, columns}}, {}}, DType::kFloat32), gpu_.profile()).value();
    const Configuration narrow = ReadAgain(*schedule, 8, 32);
    for (uint64_t seed = 1; seed <= seeds; ++seed)
      CheckConfigurations(*schedule, {narrow}, seed, {InputFamily::kHeavyTail});
  }
}

// What the parts of a row come to goes from one launch to the next through memory.
TEST_F(FamilyNumbers, TheLaunchesOfASplitRowAgree) {
  for (const char* op : {"softmax", "softmax_backward", "layernorm", "layernorm_backward"}) {
    const FamilyTask task{op, {{5, 8201}}, {}};
    SCOPED_TRACE(op);
    const auto schedule = MakeTemplate(SpecOf(task, DType::kFloat16), gpu_.profile()).value();
    std::vector<Configuration> split;
    for (const Configuration& one : DrawConfigurations(*schedule, 300, 23)) {
      if (split.empty() && GetInt(schedule->space(), one, "split") > 1) split.push_back(one);
    }
    ASSERT_EQ(split.size(), 1u);
    CheckConfigurations(*schedule, split, 23);
  }
}

TEST_F(HopperNumbers, AttentionOfGroupsOfWarps) {
  CheckTask({"flash_attention", {{1, 4, 512, 64}}, {}}, DType::kBFloat16, 35);
  CheckTask({"flash_attention", {{1, 4, 512, 128}}, {{"causal", true}}}, DType::kFloat16, 36);
  CheckTask({"flash_attention", {{1, 4, 512, 37}}, {{"scale", -0.3}, {"causal", true}}},
            DType::kFloat16, 37);
}

// Blocks with one tile of queries, and with several; groups of warps that take turns at the tensor
// cores.
TEST_F(HopperNumbers, AttentionInEveryOrder) {
  const FamilyTask task{"flash_attention", {{1, 4, 512, 64}}, {{"causal", true}}};
  const auto schedule = MakeTemplate(SpecOf(task, DType::kBFloat16), gpu_.profile()).value();
  std::map<int64_t, Configuration> by_order;
  for (const Configuration& one : DrawConfigurations(*schedule, 300, 38)) {
    const auto integer = [&](const char* name) { return GetInt(schedule->space(), one, name); };
    if (integer("tile_q") > 64) by_order.try_emplace(integer("order"), one);
  }
  ASSERT_EQ(by_order.size(), 2u);
  for (const auto& [order, one] : by_order) CheckConfigurations(*schedule, {one}, 38);
}

TEST_F(HopperNumbers, BlocksThatShareARowAgree) {
  for (const char* op : {"softmax", "softmax_backward", "layernorm", "layernorm_backward"}) {
    for (const auto& [cols, dtype] :
         {std::pair(8192, DType::kFloat32), std::pair(8201, DType::kBFloat16)}) {
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

// Rows of a causal mask that see few keys have results as large as a value, and in them the
// rounding of the weights to 16 bits does not average out: against the rms of a long sequence's
// results (0.0655 at 4096 normal keys) that is ten units of roundoff. The budget must come from an
// honest kernel that rounds as well, or no kernel passes.
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
      CompareRequest request{
          buffers.Find("y")->address, dtype, output.masked->address(), output.elements, output.key,
          kRmsOfALongSequence};
      return kernels_->Compare(request).value();
    };
    const ErrorBudget budget = BudgetFromBaseline(worst(*schedule->Naive()), dtype, {});
    const CompareStats candidate = worst(schedule->Render(schedule->Default()).value());
    EXPECT_GT(candidate.worst, 4.2 * UnitRoundoff(dtype)) << "or this test shows nothing";
    const OutputJudgement judgement = JudgeOutput("y", candidate, budget, false);
    EXPECT_EQ(Name(judgement.kind), Name(VerdictKind::kCorrect)) << judgement.reason;
    EXPECT_LT(budget.norm, 10 * UnitRoundoff(dtype)) << "and the norm's bound stays tight";
  }
}

// Two keys of nearly equal, large scores share one row in a thousand or so. What the plain kernel
// errs by there in one run is luck, and a budget taken from a lucky run refuses every kernel.
TEST_F(FamilyNumbers, RowsWhereLargeLogitsCompeteAreWithinTheBudget) {
  const auto schedule = MakeTemplate(
      SpecOf({"flash_attention", {{1, 2, 48, 32}}, {}}, DType::kFloat32), gpu_.profile());
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
                                   ->Compare({buffers.Find("y")->address, output.dtype,
                                              output.masked->address(), output.elements, output.key,
                                              output.scale, output.budget.element})
                                   .value();
    const OutputJudgement judgement = JudgeOutput("y", stats, output.budget, false);
    EXPECT_EQ(Name(judgement.kind), Name(VerdictKind::kCorrect))
        << "seed " << seed << ": " << judgement.reason;
    EXPECT_LT(output.budget.norm, 1e-3) << "half precision does not fit in";
  }
}

}  // namespace
}  // namespace atunner
