// What the pointwise and the reduction family write for graphs.
#include <fmt/format.h>

#include "atunner/codegen/tests/graph_kernels_test.h"
#include "atunner/graph/compose.h"
#include "atunner/model/kernel/accuracy.h"

namespace atunner {
namespace {

using graph::ValidGraph;

/// Many operators as outputs of one graph: one compilation verifies them all.
std::optional<ValidGraph> Together(const std::vector<const graph::LibraryOperator*>& ops,
                                   DType dtype, const std::vector<int64_t>& shape) {
  std::vector<ValidGraph> graphs;
  for (const graph::LibraryOperator* op : ops) {
    auto alone = graph::Build({op, false}, {dtype, {shape}, {}});
    if (alone) graphs.push_back(*std::move(alone));  // others take integers alone, or floats alone
  }
  if (graphs.empty()) return std::nullopt;
  auto made = graph::Together("several", graphs);
  EXPECT_TRUE(made.has_value()) << made.error().ToString();
  return made.has_value() ? std::optional(*made) : std::nullopt;
}

// In floating point, and at other shapes, they are among what `atunner test --operators` verifies.
TEST_F(GraphKernels, EveryPointwiseOperatorOfIntegers) {
  std::vector<std::vector<const graph::LibraryOperator*>> groups(1);
  for (const graph::LibraryOperator& op : graph::Library()) {
    if (!op.pointwise) continue;
    if (groups.back().size() == 14) groups.emplace_back();
    groups.back().push_back(&op);
  }
  for (const auto& group : groups) {
    const auto graph = Together(group, DType::kInt32, {40, 256});
    if (graph) Check(SpecOfGraph(*graph, {}).value(), "elements");
  }
  EXPECT_GE(verified_, 45u);
}

TEST_F(GraphKernels, PointwiseSchedulesAgreeOnBroadcastsPlacesAndTypes) {
  Check(SpecOfText(R"(
graph normalised
dim B = 1..5
input x: uint8[B, 3, 7, 9]
mean: float32[3, 1, 1] = constant(0.485, 0.456, 0.406)
deviation: float32[3, 1, 1] = constant(0.229, 0.224, 0.225)
y = (cast(x, float32) / 255 - mean) / deviation
output y
)"),
        "elements", 1);
  Check(SpecOfText(R"(
graph mixed
dim B = 1..37
input x: bfloat16[B, 6, 32]
input row: float32[32]
input middle: float16[6, 1]
input outer: float32[B, 1, 1]
input whole: int32[B, 6, 32]
t = cast(x, float32) * row + cast(middle, float32) * outer
y = cast(t + cast(whole, float32) + cast(index(-1) - index(-2) * 3 + index(-3), float32), bfloat16)
big = t > 0 & whole != 3
n = whole * 5 - floor_div(whole, 3)
output y
output big
output n
)"),
        "elements", 6);
  EXPECT_GT(verified_, 20u);
}

// Rows of an odd length: vectors go on in the next row, seldom where rows are long.
TEST_F(GraphKernels, VectorsMayReachIntoTheNextRow) {
  for (const char* extent : {"1031", "37"}) {
    const std::string text = fmt::format(R"(
graph odd
input x: bfloat16[16, {0}]
input row: bfloat16[{0}]
input scale: float32[16, 1]
input label: int64[16, 1]
y = cast(cast(x + row, float32) * scale + cast(index(-1) == label + 3, float32), bfloat16)
output y
)",
                                         extent);
    Check(SpecOfText(text), "elements", 4);
  }
}

TEST_F(GraphKernels, DropoutIsTheSameOnEveryDevice) {
  const graph::Found dropout = *graph::FindInLibrary("dropout");
  Check(SpecOfGraph(graph::Build(dropout, {DType::kFloat32, {{33, 65}}, {{"p", 0.25}}}).value(), {})
            .value(),
        "elements", 1);
}

// Each at one type: all are verified in every type, at other shapes, by `atunner test --operators`.
TEST_F(GraphKernels, EveryReductionOverRows) {
  const std::pair<DType, std::vector<int64_t>> cases[] = {
      {DType::kFloat32, {5, 509}}, {DType::kFloat16, {1, 1}}, {DType::kBFloat16, {9, 1024}}};
  for (const char* name :
       {"sum",       "mean",     "prod",          "amax",           "amin",
        "any",       "all",      "count_nonzero", "sum_of_squares", "norm",
        "var",       "std",      "logsumexp",     "softmax",        "log_softmax",
        "normalize", "rms_norm", "layer_norm",    "argmax",         "argmin"}) {
    for (const auto& [dtype, shape] : cases) {
      const bool spread = std::string(name) == "var" || std::string(name) == "std";
      if (spread && shape[1] == 1) continue;  // no degree of freedom
      const auto built = graph::Build(*graph::FindInLibrary(name), {dtype, {shape}, {}, true});
      ASSERT_TRUE(built.has_value()) << built.error().ToString();
      Check(SpecOfGraph(*built, {}).value(), "reduction");
    }
  }
  EXPECT_GE(verified_, 106u);
}

/// Equal extremes and NaN: the first place, found in the pass that finds the extreme.
TEST_F(GraphKernels, PlacesOverColumns) {
  const auto spec = [](const char* name, DType dtype, std::vector<int64_t> shape) {
    const graph::Request request{dtype, {std::move(shape)}, {{"axis", int64_t{1}}}, false};
    return SpecOfGraph(graph::Build(*graph::FindInLibrary(name), request).value(), {}).value();
  };
  for (const InputFamily inputs : {inputs_, InputFamily::kNan, InputFamily::kTies}) {
    inputs_ = inputs;
    Check(spec("argmax", DType::kFloat32, {3, 70, 9}), "columns", 1);
    Check(spec("argmin", DType::kBFloat16, {2, 33, 64}), "columns", 1);
  }
  const auto schedule = MakeTemplate(spec("argmax", DType::kFloat32, {3, 70, 9}), gpu_.profile());
  EXPECT_THAT(schedule.value()->Render((*schedule)->Default()).value().source.text,
              testing::Not(testing::HasSubstr("Pass 2")));
}

TEST_F(GraphKernels, AllElementsAreARowToo) {
  const graph::Request request{DType::kFloat32, {{37, 101}}, {{"axis", std::string("all")}}, false};
  // No plain sum: what cancels to one number errs by luck, the plain kernel's budget included.
  for (const char* name : {"sum_of_squares", "std", "amax"})
    Check(SpecOfGraph(graph::Build(*graph::FindInLibrary(name), request).value(), {}).value(),
          "reduction", 2);
}

TEST_F(GraphKernels, ReductionSchedulesAgree) {
  Check(SpecOfText(R"(
graph layers
dim B = 1..11
input x: bfloat16[B, 3, 8, 64]
input w: float32[8, 64]
input outer: float32[B, 3, 1, 1]
wide = cast(x, float32) * outer
mean = reduce_mean(wide, axes=[2, 3], keep=true)
centred = wide - mean
square = centred * centred
var = reduce_mean(square, axes=[2, 3], keep=true)
top = reduce_max(centred, axes=[2, 3])
odd = x > 0
count = reduce_sum(odd, axes=[2, 3])
scale = rsqrt(var + 1e-5)
y = cast(centred * scale * w + cast(index(-1) + index(-3), float32), bfloat16)
output y
output scale
output top
output count
)"),
        "reduction", 8);
}

// Where there are as many rows as elements in one, a weight's shape is that of a value for each
// row. As kernels call numbers of their own, as parameters of schedules are called, and as C++
// calls types.
// The loops of folds have names of their own: a coordinate of the kernel was hidden by one.
TEST_F(GraphKernels, FoldsAreReducedOverOuterAxes) {
  Check(SpecOfText(R"(
graph unpooled
input v: float32[6, 4, 4, 1, 4, 1]
input place: int32[6, 4, 4, 1, 4, 1]
input x: float32[6, 4, 8, 8]
placed: float32[6, 4, 4, 2, 4, 2] = select(cast(index(-3) * 2 + index(-1), int32) == place, v, 0)
rows: float32[6, 4, 4, 2, 8] = fold(placed, axis=4, extent=8, stride=2)
image: float32[6, 4, 8, 8] = fold(rows, axis=2, extent=8, stride=2)
masked: float32[6, 4, 8, 8] = select(x <= 0, 0, image)
scaled: float32[6, 4, 8, 8] = masked * x
sums: float32[4] = reduce_sum(scaled, axes=[0, 2, 3])
total: float32[1, 4, 1, 1] = reshape(sums, shape=[1, 4, 1, 1])
y: float32[6, 4, 8, 8] = scaled + total
output masked
output y
)"),
        "columns", 1);
}

TEST_F(GraphKernels, OpenSizesMayHaveAnyName) {
  const auto named = [&](const char* size, const char* body) {
    return SpecOfText(fmt::format(
        "graph g\ndim {0} = 1..40\ninput x: float32[{0}, 6, 64]\n{1}output y\n", size, body));
  };
  for (const char* size : {"i", "block", "int", "size_i"})
    Check(named(size, "y = x * cast(index(-2) + 1, float32)\n"), "elements");
  for (const char* size : {"vector", "result", "row"})
    Check(named(size, "t = reduce_sum(x, axes=[2], keep=true)\ny = x - t\n"), "reduction");
  Check(named("total", "y = reduce_sum(x, axes=[1])\n"), "columns");
  Check(named("lines", "y = scan_sum(x, axis=2)\n"), "scan");
}

TEST_F(GraphKernels, SquaresOfRowsKnowTheirWeights) {
  Check(SpecOfText(R"(
graph square
input x: float32[64, 64]
input w: float32[64]
top = reduce_max(x, axes=[1])
total = reduce_sum(x, axes=[1], keep=true)
y = (x - total) * (w * 2)
output y
output top
)"),
        "reduction", 4);
}

TEST_F(GraphKernels, RowsAreCopiedBeforeTheirTurn) {
  const KernelSpec spec = SpecOfText(R"(
graph gradient
dim B = 1..11
input y: bfloat16[B, 3, 2744]
input dy: float32[B, 3, 2744]
input w: float32[2744]
input outer: float32[B, 1, 1]
wide = cast(y, float32)
g = dy * w * outer
weighted = g * wide
total = reduce_sum(weighted, axes=[2], keep=true)
dx = cast((g - total) * wide, bfloat16)
output dx
output total
)");
  DeviceProfile few = gpu_.profile();
  few.sms = 2;  // so that blocks have many rows
  const auto schedule = kReductionFamily.Try(Task::Of(spec)).bind(few).value();
  auto oracle = OracleStore::Make(gpu_, *compiler_, *kernels_, spec).value();
  for (const auto& [threads, rows, vector] : {std::array{128, 1, 4}, {128, 4, 2}, {256, 2, 8}}) {
    Configuration one = schedule->Default();
    const auto set = [&](const char* name, Value value) {
      one.values[static_cast<size_t>(schedule->space().Find(name))] = std::move(value);
    };
    set("threads_per_row", int64_t{threads}), set("rows_per_block", int64_t{rows}),
        set("vector", int64_t{vector});
    set("storage", std::string("shared")), set("blocks_per_sm", int64_t{1});
    ASSERT_TRUE(schedule->space().Allows(one, spec.dims).value());
    SCOPED_TRACE(schedule->space().Describe(one));
    const RenderedKernel kernel = schedule->Render(one).value();
    const CompileOutcome outcome =
        compiler_->Compile({kernel.source, EntriesOf(kernel.plan), gpu_.arch()}).value();
    ASSERT_TRUE(outcome.ok()) << outcome.error << kernel.source.text;
    EXPECT_THAT(outcome.module->ptx, testing::HasSubstr("cp.async"));
    for (int64_t size : {1, 2, 11})
      CheckSize(spec, kernel, *outcome.module, {{"B", size}}, *oracle);
  }
  EXPECT_EQ(verified_, 18u);
}

TEST_F(GraphKernels, ShortRowsThatBeginAnywhereAreCopiedTogether) {
  for (const auto& [name, shape] :
       {std::pair{"adaptive_avg_pool", std::vector<int64_t>{9, 33, 7, 7}},
        std::pair{"softmax", std::vector<int64_t>{301, 50}}}) {
    const auto built = graph::Build(*graph::FindInLibrary(name),
                                    {DType::kBFloat16, {shape}, {}, true});
    const KernelSpec spec = SpecOfGraph(built.value(), {}).value();
    const auto schedule = kReductionFamily.Try(Task::Of(spec)).bind(gpu_.profile()).value();
    auto oracle = OracleStore::Make(gpu_, *compiler_, *kernels_, spec).value();
    for (const auto& [threads, rows] : {std::array{1, 64}, {4, 16}}) {
      Configuration one = schedule->Default();
      const std::pair<const char*, Value> values[] = {{"threads_per_row", int64_t{threads}},
                                                      {"rows_per_block", int64_t{rows}},
                                                      {"vector", int64_t{1}},
                                                      {"storage", std::string("staged")}};
      for (const auto& [parameter, value] : values)
        one.values[static_cast<size_t>(schedule->space().Find(parameter))] = value;
      ASSERT_TRUE(schedule->space().Allows(one, spec.dims).value());
      SCOPED_TRACE(schedule->space().Describe(one));
      const RenderedKernel kernel = schedule->Render(one).value();
      const CompileOutcome outcome =
          compiler_->Compile({kernel.source, EntriesOf(kernel.plan), gpu_.arch()}).value();
      ASSERT_TRUE(outcome.ok()) << outcome.error << kernel.source.text;
      CheckSize(spec, kernel, *outcome.module, spec.dims, *oracle);
      CheckSize(spec, kernel, *outcome.module, {{spec.dims.begin()->first, 1}}, *oracle);
    }
  }
  EXPECT_EQ(verified_, 8u);
}

// Partly filled tiles in both directions, and depths that no number of warps or blocks divides.
class Weights : public GraphKernels {
 protected:
  explicit Weights(const char* profile = "A100") : GraphKernels(profile) {}
  void CheckTwo(const FamilyTask& task, DType dtype) { Check(SpecOf(task, dtype), "weights", 1); }
};
class WeightsOfGroups : public Weights {
 protected:
  WeightsOfGroups() : Weights("H200") {}
};

TEST_F(Weights, OfFewBits) {
  CheckTwo({"quantized_linear", {{1, 1408}, {72, 1408}}, {}}, DType::kBFloat16);
  CheckTwo({"quantized_linear", {{19, 2176}, {40, 2176}}, {}}, DType::kFloat16);
  CheckTwo({"int4_linear", {{3, 1408}, {72, 1408}}, {}}, DType::kFloat16);
  CheckTwo({"int4_linear", {{61, 2176}, {40, 2176}}, {{"group", int64_t{64}}}}, DType::kBFloat16);
  CheckTwo({"quantized_linear", {{70, 640}, {40, 640}}, {}}, DType::kBFloat16);
  EXPECT_EQ(verified_, 10u);
}

TEST_F(WeightsOfGroups, OfFewBits) {
  CheckTwo({"quantized_linear", {{19, 2176}, {40, 2176}}, {}}, DType::kFloat16);
  CheckTwo({"quantized_linear", {{150, 640}, {203, 640}}, {}}, DType::kBFloat16);
  CheckTwo({"int4_linear", {{61, 2176}, {40, 2176}}, {{"group", int64_t{64}}}}, DType::kBFloat16);
  KernelSpec strict = SpecOf({"int4_linear", {{20, 1152}, {300, 1152}}, {{"group", int64_t{96}}}},
                             DType::kBFloat16);
  SetAccuracy(strict, Accuracy::kStrict);
  Check(strict, "weights", 3);
  EXPECT_EQ(verified_, 10u);
}

TEST_F(Weights, AreLeftToOthersWhereTheyDoNotFit) {
  EXPECT_TRUE(kWeightsFamily.Try(
      Task::Of(SpecOf({"int4_linear", {{8, 256}, {64, 256}}, {}}, DType::kBFloat16))));
  for (const FamilyTask& task :
       {FamilyTask{"quantized_linear", {{8, 192}, {64, 192}}, {}},
        FamilyTask{"int4_linear", {{8, 256}, {64, 256}}, {{"group", int64_t{16}}}}})
    EXPECT_FALSE(kWeightsFamily.Try(Task::Of(SpecOf(task, DType::kBFloat16))))
        << Describe(task, DType::kBFloat16);
  KernelSpec strict = SpecOf({"int4_linear", {{8, 256}, {64, 256}}, {}}, DType::kBFloat16);
  SetAccuracy(strict, Accuracy::kStrict);
  EXPECT_FALSE(kWeightsFamily.Try(Task::Of(strict)).bind(gpu_.profile()).has_value())
      << "scaled weights are rounded";
}

}  // namespace
}  // namespace atunner
