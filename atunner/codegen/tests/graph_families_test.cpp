// Which graphs the families take, and what their sources look like.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "atunner/codegen/reduce/reduction_program.h"
#include "atunner/codegen/stages.h"
#include "atunner/codegen/tests/family_tasks_test.h"
#include "atunner/graph/text.h"
#include "atunner/model/kernel/accuracy.h"
#include "atunner/model/kernel/conv_precision.h"
#include "atunner/model/schedule/partitioned_schedule.h"
#include "atunner/operators/graph_operator.h"

namespace atunner {
namespace {

using testing::HasSubstr;

std::string FamilyOf(const KernelSpec& spec) {
  const auto task = Task::Make(spec);
  const Family* family = task ? FamilyOf(*task) : nullptr;
  return family ? std::string(family->name) : "none";
}

KernelSpec Spec(const char* op, std::vector<std::vector<int64_t>> shapes,
                Attributes attributes = {}) {
  return FindOperator(op)
      ->Instantiate({std::move(shapes), DType::kBFloat16, std::move(attributes)})
      .value();
}

TEST(GraphFamilies, RowsWhoseResultsGetAnotherShapeAreRows) {
  // A residual and a norm between two products, as PyTorch has them for a batch of one.
  const char* text = R"(
graph g
input x: bfloat16[1, 512, 4096]
input p: bfloat16[512, 4096]
input w: bfloat16[4096]
r = reshape(p, shape=[1, 512, 4096])
h = x + r
f = cast(h, float32)
s = f * f
m = reduce_mean(s, axes=[-1], keep=true)
n = cast(f * rsqrt(m + 1e-6), bfloat16) * w
y = reshape(n, shape=[512, 4096])
output h
output y
)";
  EXPECT_EQ(FamilyOf(SpecOfGraph(graph::Parse(text, "test.atg").value(), {}).value()), "reduction");
}

TEST(GraphFamilies, TakeWhatTheyCompute) {
  EXPECT_EQ(FamilyOf(Spec("gelu", {{64, 512}})), "elements");
  EXPECT_EQ(FamilyOf(Spec("add", {{8, 3, 64}, {3, 1}})), "elements");
  EXPECT_EQ(FamilyOf(Spec("gelu_backward", {{64, 512}})), "elements");
  EXPECT_EQ(FamilyOf(Spec("rms_norm", {{64, 512}})), "reduction");
  EXPECT_EQ(FamilyOf(Spec("sum", {{16, 512}}, {{"axis", std::string("all")}})), "reduction");
  EXPECT_EQ(FamilyOf(Spec("sum", {{64, 4096}}, {{"axis", std::string("all")}})), "columns")
      << "one long row";
  EXPECT_EQ(FamilyOf(Spec("sum", {{64, 512}}, {{"axis", int64_t{0}}})), "columns");
  EXPECT_EQ(FamilyOf(Spec("log_softmax", {{4096, 50256}})), "reduction");
  EXPECT_EQ(FamilyOf(Spec("log_softmax", {{4096, 128256}})), "columns")
      << "rows that exceed a multiprocessor";
  EXPECT_EQ(FamilyOf(Spec("cumsum", {{64, 512}})), "scan");
  EXPECT_EQ(FamilyOf(Spec("transpose", {{64, 512}})), "transpose");
  EXPECT_EQ(FamilyOf(Spec("max_pool", {{2, 3, 16, 16}})), "pooling");
  EXPECT_EQ(FamilyOf(Spec("embedding", {{64, 512}, {8}})), "elements");
  EXPECT_EQ(FamilyOf(Spec("argmax", {{64, 512}})), "reduction");
  EXPECT_EQ(FamilyOf(Spec("cross_entropy", {{64, 512}})), "stages");
  EXPECT_EQ(FamilyOf(Spec("cross_entropy", {{64, 512}}, {{"reduction", std::string("none")}})),
            "reduction");
  EXPECT_EQ(FamilyOf(Spec("embedding_backward", {{64, 512}, {8}})), "scatter");
  EXPECT_EQ(FamilyOf(Spec("index_select_backward", {{8, 64, 512}, {5}}, {{"axis", int64_t{1}}})),
            "scatter");
  EXPECT_EQ(FamilyOf(Spec("index_select_backward", {{8, 64}, {5}}, {{"axis", int64_t{1}}})),
            "scatter_strips");
  EXPECT_EQ(FamilyOf(Spec("gather_backward", {{64, 512}, {64, 9}})), "scatter_strips");
  EXPECT_EQ(FamilyOf(Spec("interpolate_backward", {{2, 3, 8, 8}})), "stages");
  EXPECT_EQ(FamilyOf(Spec("topk_backward", {{64, 512}}, {{"k", int64_t{8}}})), "stages");
  EXPECT_EQ(FamilyOf(Spec("topk", {{64, 512}}, {{"k", int64_t{64}}})), "topk");
  EXPECT_EQ(FamilyOf(Spec("topk", {{64, 1000}}, {{"k", int64_t{512}}})), "topk")
      << "sorted as a whole";
  EXPECT_EQ(FamilyOf(Spec("sort", {{64, 512}})), "topk");
  EXPECT_EQ(FamilyOf(Spec("sort", {{64, 65536}})), "topk")
      << "more than shared memory holds: in tiles";
  EXPECT_EQ(FamilyOf(Spec("topk", {{64, 65536}}, {{"k", int64_t{50}}})), "stages")
      << "few long rows: in parts";
}

TEST(GraphFamilies, SourcesOfStripsAndOfRuns) {
  const auto rendered = [](const KernelSpec& spec) {
    const auto schedule = MakeTemplate(spec, FindProfile("H200").value()).value();
    return schedule->Render(schedule->Default()).value();
  };
  const std::string strips = rendered(Spec("gather_backward", {{64, 512}, {64, 9}})).source.text;
  EXPECT_THAT(strips,
              HasSubstr("  for (int begin = thread; begin - thread < 9; begin += 32 * UNROLL) {"));
  EXPECT_THAT(strips, HasSubstr("= load<long long>(in_indices[c0 * 9 + n]);"));
  EXPECT_THAT(
      strips,
      HasSubstr(
          "in_order(users, at[u], [&] { strip[at[u]] = Sum::of(strip[at[u]], update[u]); });"));
  // Tiles of 8192, then runs of twice as many each time, back and forth.
  const LaunchPlan plan = rendered(Spec("sort", {{3, 40000}})).plan;
  ASSERT_EQ(plan.steps.size(), 4u);
  EXPECT_EQ(plan.steps[0].entry, "tiles");
  for (size_t i = 1; i < plan.steps.size(); ++i) {
    const auto& args = plan.steps[i].args;
    EXPECT_EQ(plan.steps[i].entry, "kernel");
    EXPECT_EQ(args[args.size() - 3].name, i % 2 == 1 ? "runs" : "merged");
    EXPECT_EQ(args[args.size() - 2].name, i % 2 == 1 ? "merged" : "runs");
    EXPECT_EQ(args.back().value.text(), std::to_string(4096 << i));
  }
}

// A graph may be called anything, and have some of an operator's inputs.
TEST(GraphFamilies, NamesOfOperatorsSayNothing) {
  for (const Operator* op : GraphOperators()) {
    for (const std::string& name : {op->info().name, op->info().name + "_backward"}) {
      for (const char* input : {"k", "k_pool", "q", "weight"}) {
        const std::string text = fmt::format(
            "graph {0}\ninput {1}: bfloat16[2, 4, 8, 16]\nmade_of_it = {1} * 2\noutput "
            "made_of_it\n",
            name, input);
        EXPECT_EQ(FamilyOf(SpecOfGraph(graph::Parse(text, "test.atg").value(), {}).value()),
                  "elements")
            << text;
      }
    }
  }
}

// What a row's elements share is no reason for narrow stores: a label, a number of rows.
TEST(GraphFamilies, VectorsAreAsWideAsWhatIsMoved) {
  const auto vector = [](const KernelSpec& spec) {
    const auto schedule = MakeTemplate(spec, FindProfile("H200").value()).value();
    return GetInt(schedule->space(), schedule->Default(), "vector");
  };
  EXPECT_EQ(vector(Spec("nll_loss_backward", {{64, 50257}})), 8);
  EXPECT_EQ(vector(Spec("one_hot", {{4096}}, {{"classes", int64_t{512}}})), 8);
  EXPECT_EQ(vector(Spec("embedding", {{64, 512}, {4096}})), 8);
}

// Short rows that begin anywhere: a thread of its own for each is for those that are only read.
TEST(GraphFamilies, WhoWritesShortRowsSharesThem) {
  const auto threads = [](const KernelSpec& spec) {
    const auto schedule = MakeTemplate(spec, FindProfile("H200").value()).value();
    return GetInt(schedule->space(), schedule->Default(), "threads_per_row");
  };
  EXPECT_EQ(threads(Spec("logsumexp", {{1000000, 77}})), 1);
  EXPECT_EQ(threads(Spec("rms_norm", {{1000000, 77}})), 16);
  EXPECT_EQ(threads(Spec("rms_norm", {{250000, 333}})), 32);
  EXPECT_EQ(threads(Spec("normalize", {{262144, 51}})), 16);
}

// On an H200 131 us where blocks that stay and copy ahead take 141.
TEST(GraphFamilies, RowsOfFloat32AreWrittenByLargeBlocksThatEnd) {
  const KernelSpec spec =
      FindOperator("rms_norm")->Instantiate({{{8192, 8192}}, DType::kFloat32, {}}).value();
  const auto schedule = MakeTemplate(spec, FindProfile("H200").value()).value();
  const auto value = [&](const char* name) {
    return GetInt(schedule->space(), schedule->Default(), name);
  };
  EXPECT_EQ(value("threads_per_row") * value("rows_per_block"), 512);
  EXPECT_EQ(value("blocks_per_sm"), 0);
}

// Said by halves, the sines of both would be computed for every element, those of the half that is
// thrown away with arguments of millions: ten times the time that the bytes take.
TEST(GraphFamilies, RotaryEmbeddingsTakeOneSineOfEveryElement) {
  const auto schedule =
      MakeTemplate(Spec("rope", {{8, 32, 2048, 128}}), FindProfile("H200").value()).value();
  const std::string text = schedule->Render(schedule->Default()).value().source.text;
  const auto count = [&](std::string_view call) {
    size_t found = 0;
    for (size_t at = text.find(call); at != std::string::npos; at = text.find(call, at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(count(" sin("), 1u) << text;
  EXPECT_EQ(count(" cos("), 1u);
}

// What makes something else of a scatter, a scan or a sort than its elements at their places is not
// computed beside it.
TEST(GraphFamilies, ResultsAreFinishedInPlace) {
  const auto family = [](const char* lines) {
    const std::string text = fmt::format(
        "graph g\ninput x: float32[8, 8]\ninput i: int64[4]\ninput u: float32[4, 8]\n{}output y\n",
        lines);
    return FamilyOf(SpecOfGraph(graph::Parse(text, "test.atg").value(), {}).value());
  };
  EXPECT_EQ(family("s = scatter_sum(x, i, u, axis=0)\ny = s * 2\n"), "scatter");
  EXPECT_EQ(family("s = scatter_sum(x, i, u, axis=0)\ny = transpose(s, order=[1, 0])\n"), "stages");
  EXPECT_EQ(family("s = scan_sum(x, axis=0)\ny = transpose(s, order=[1, 0])\n"), "stages");
  EXPECT_EQ(family("y = sort(x, axis=0)\n"), "stages");
  EXPECT_EQ(family("s = sort(x, axis=1)\ny = transpose(s, order=[1, 0])\n"), "stages");
  EXPECT_EQ(family("s = sort(x, axis=1)\ng = gather(x, s, axis=1, batch=1)\ny = g * 2\n"), "topk");
}

TEST(GraphFamilies, WhatAGraphMakesNarrowerIsKeptSoBetweenParts) {
  const auto graph = graph::Parse(R"(
graph scores
input q: bfloat16[4, 512, 64]
input k: bfloat16[4, 512, 64]
input mask: float32[512, 512]
sums = contract(q, k, equation="bqd,bkd->bqk", as=float32)
s = cast(sums, bfloat16)
masked = cast(s, float32) * 0.125 + mask
top = reduce_max(masked, axes=[-1], keep=true)
grown = exp(masked - top)
total = reduce_sum(grown, axes=[-1], keep=true)
y = cast(grown / total, bfloat16)
output y
)",
                                  "test.atg");
  const auto made =
      MakeTemplate(SpecOfGraph(graph.value(), {}).value(), FindProfile("H200").value()).value();
  const auto* divided = dynamic_cast<const PartitionedSchedule*>(made.get());
  ASSERT_NE(divided, nullptr);
  const auto parts = divided->Parts();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0]->spec().args.back().dtype, DType::kBFloat16);
  EXPECT_EQ(parts[0]->spec().args.size(), 3u) << "the mask is the second part's";
}

int64_t ElementsOf(const ArgSpec& arg, const Dims& dims) {
  int64_t count = 1;
  for (const Expr& extent : arg.shape) count *= extent.EvaluateInt(Bindings(dims)).value();
  return count;
}

/// Cross-entropy's gradient kept exponentials of all logits while it counted the labels that
/// count: 1.6 ms in place of 0.5.
TEST(GraphFamilies, LossesOfLabelsKeepNothingOfTheSizeOfLogits) {
  const int64_t rows = 8192, classes = 50257;
  for (const char* op : {"cross_entropy", "cross_entropy_backward", "nll_loss_backward"}) {
    SCOPED_TRACE(op);
    const auto made = MakeTemplate(Spec(op, {{rows, classes}}), FindProfile("H200").value())
                          .value();
    const auto* divided = dynamic_cast<const PartitionedSchedule*>(made.get());
    ASSERT_NE(divided, nullptr);
    int large = 0;
    for (const ScheduleTemplate* part : divided->Parts()) {
      for (const ArgSpec& arg : part->spec().args)
        large += ElementsOf(arg, part->spec().dims) >= rows * classes ? 1 : 0;
    }
    EXPECT_EQ(large, std::string(op) == "cross_entropy_backward" ? 2 : 1)
        << "logits and their gradient";
  }
}

// TF32 is for the convolution, and not for the product of matrices beside it.
TEST(GraphFamilies, ConvPrecisionConcernsConvolutions) {
  const auto spec_of = [](int channels) {
    const std::string text = fmt::format(R"(graph both
input x: float32[2, {0}, 12, 12]
input w: float32[16, {0}, 3, 3]
input m: float32[10, 32]
rows = window(x, axis=2, size=3)
taps = window(rows, axis=4, size=3)
s = contract(taps, w, equation="nchrws,ocrs->nohw")
t = reduce_max(s, axes=[3])
flat = reshape(t, shape=[32, 10])
y = contract(m, flat, equation="ik,kj->ij")
output y
)",
                                         channels);
    return SpecOfGraph(graph::Parse(text, "both").value(), {}).value();
  };
  const auto accuracies = [](const KernelSpec& spec) {
    std::map<std::string, Accuracy> found;
    const Stages stages = StagesOf(Task::Of(spec), false).value();
    for (const Stage& stage : stages.stages)
      found[FamilyOf(stage.task.task.spec())] = AccuracyOf(stage.task.task.spec());
    return found;
  };
  KernelSpec spec = spec_of(16);
  EXPECT_EQ(accuracies(spec).at("convolution"), Accuracy::kDefault);
  SetConvPrecision(spec, ConvPrecision::kTf32);
  EXPECT_EQ(ConvPrecisionOf(spec), ConvPrecision::kTf32);
  for (const auto& [family, accuracy] : accuracies(spec))
    EXPECT_EQ(accuracy, family == "convolution" ? Accuracy::kFast : Accuracy::kDefault) << family;
  SetAccuracy(spec, Accuracy::kStrict);
  EXPECT_EQ(accuracies(spec).at("convolution"), Accuracy::kStrict);
  spec = spec_of(8);  // which cuDNN computes in float32
  SetConvPrecision(spec, ConvPrecision::kTf32);
  EXPECT_EQ(accuracies(spec).at("convolution"), Accuracy::kDefault);
}

TEST(GraphFamilies, RowsStayOpenWhereTheyHaveNothingToDoWithEachOther) {
  EXPECT_EQ(Spec("gelu", {{64, 512}}).dims, (Dims{{"rows", 64}}));
  EXPECT_EQ(Spec("rms_norm", {{8, 64, 512}}).dims, (Dims{{"rows", 8}}));
  EXPECT_TRUE(Spec("sum", {{64, 512}}, {{"axis", int64_t{0}}}).dims.empty());
  EXPECT_TRUE(Spec("gelu", {{512}}).dims.empty());
}

TEST(GraphFamilies, ATaskThatIsNotItsGraphsIsRefused) {
  KernelSpec spec = Spec("gelu", {{64, 512}});
  ASSERT_TRUE(GraphOf(spec).has_value());
  KernelSpec other = spec;
  other.args[0].name = "z";
  EXPECT_THAT(GraphOf(other).error().ToString(), HasSubstr("not those of its graph"));
  other = spec;
  other.dims["a b"] = 3;
  EXPECT_FALSE(GraphOf(other).has_value());
  EXPECT_EQ(FamilyOf(other), "none");
  other = spec;
  other.oracle.graph = "graph";
  EXPECT_FALSE(GraphOf(other).has_value());
}

TEST(GraphFamilies, FlopsAndBytesComeFromTheGraph) {
  const KernelSpec spec = Spec("square", {{64, 512}});
  EXPECT_EQ(FlopCount(spec, spec.dims).value(), 64 * 512);
  EXPECT_EQ(MinimumBytes(spec, spec.dims).value(), 2 * 64 * 512 * 2);
}

TEST(ReductionProgram, ArrangesPassesOverTheRow) {
  const auto graph = graph::Parse(R"(
graph softmax
input x: float32[4, 6]
top = reduce_max(x, axes=[1], keep=true)
e = exp(x - top)
total = reduce_sum(e, axes=[1], keep=true)
y = e / total
output y
)");
  const auto program = MakeRowsProgram(graph.value());
  ASSERT_TRUE(program.has_value());
  EXPECT_EQ(program->pass_count, 2);
  EXPECT_EQ(program->reduced, (std::vector<bool>{false, true}));
  EXPECT_EQ(program->WantedIn(0).size(), 1u);
}

TEST(ReductionProgram, TakesExponentialsWithTheirMaximum) {
  const KernelSpec spec = Spec("cross_entropy", {{64, 512}}, {{"reduction", std::string("none")}});
  const graph::ValidGraph graph = GraphOf(spec).value();
  EXPECT_EQ(MakeRowsProgram(graph)->pass_count, 2);
  const auto online = MakeRowsProgram(graph, /*online=*/true);
  ASSERT_TRUE(online.has_value());
  EXPECT_EQ(online->pass_count, 1);
  EXPECT_EQ(online->beside.size(), 1u);
  EXPECT_TRUE(online->equals.empty()) << "equal infinities are no number apart";
  const auto guarded = MakeRowsProgram(GraphOf(Spec("logsumexp", {{64, 512}})).value(),
                                       /*online=*/true);
  ASSERT_TRUE(guarded.has_value());
  EXPECT_EQ(guarded->beside.size(), 1u);
  EXPECT_EQ(guarded->equals.size(), 1u);
}

TEST(ColumnsSpace, ElementsStayInSharedMemoryOnlyForTheirResultsAndWithAsynchronousCopies) {
  const auto places = [](const KernelSpec& spec, const char* device) {
    const auto schedule = MakeTemplate(spec, FindProfile(device).value()).value();
    return schedule->space()
        .parameters[static_cast<size_t>(schedule->space().Find("hold"))]
        .values.size();
  };
  const KernelSpec norm = Spec("batch_norm", {{8, 64, 56, 56}});
  EXPECT_EQ(places(norm, "H200"), 3u);
  EXPECT_EQ(places(norm, "A100"), 3u);
  EXPECT_EQ(places(norm, "T4"), 2u) << "no asynchronous copies";
  EXPECT_EQ(places(Spec("logsumexp", {{64, 512, 64}}, {{"axis", int64_t{1}}}), "H200"), 2u)
      << "nobody would ask for the next strip";
  EXPECT_EQ(places(Spec("sum", {{64, 512, 64}}, {{"axis", int64_t{1}}}), "H200"), 1u);
}

TEST(ReductionSource, IsReadable) {
  const auto schedule = MakeTemplate(Spec("rms_norm", {{64, 512}}), FindProfile("H200").value())
                            .value();
  const std::string text = schedule->Render(schedule->Default()).value().source.text;
  EXPECT_THAT(
      text,
      HasSubstr("// rms_norm, scheduled by atunner: last-axis reduction.\n// threads_per_row="));
  EXPECT_THAT(text, HasSubstr("constexpr int COLS = 512;  // elements of a row\n"));
  EXPECT_THAT(text, HasSubstr("kernel(const __nv_bfloat16* __restrict__ in_x, const __nv_bfloat16* "
                              "__restrict__ in_weight, "
                              "__nv_bfloat16* __restrict__ out_y, long long rows)"));
  EXPECT_THAT(text, HasSubstr("    // Pass 1.\n"));
}

}  // namespace
}  // namespace atunner
