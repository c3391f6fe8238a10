// Convolutions of graphs on tensor cores and as windows, against the evaluation of the graph in
// float64.
#include <fmt/format.h>

#include "atunner/codegen/tests/graph_kernels_test.h"
#include "atunner/graph/text.h"
#include "atunner/model/kernel/accuracy.h"

namespace atunner {
namespace {

using Shapes = std::vector<std::vector<int64_t>>;

KernelSpec Conv(const char* op, const Shapes& shapes, DType dtype,
                const Attributes& attributes = {}, Accuracy accuracy = Accuracy::kDefault) {
  KernelSpec spec = FindOperator(op)->Instantiate({shapes, dtype, attributes}).value();
  SetAccuracy(spec, accuracy);
  return spec;
}

Attributes Of(int64_t stride, int64_t padding, int64_t dilation = 1, int64_t groups = 1) {
  return {{"stride", stride}, {"padding", padding}, {"dilation", dilation}, {"groups", groups}};
}
Attributes With(Attributes attributes, const char* name, Value value) {
  attributes[name] = std::move(value);
  return attributes;
}

class Convolutions : public GraphKernels {};

class HopperConvolutions : public GraphKernels {
 protected:
  HopperConvolutions() : GraphKernels("H200") {}
  void PutInto(const TaskBuffers& buffers) override {
    const float outlier = 3e5F;
    if (outlier_at_)
      EXPECT_TRUE(gpu_.CopyIn(buffers.Find("w")->address + *outlier_at_ * 4,
                              std::as_bytes(std::span(&outlier, 1))));
  }
  std::optional<uint64_t> outlier_at_;  ///< of the filters
};

TEST_F(Convolutions, OfOneToThreeDimensionsOnTensorCores) {
  Check(Conv("conv", {{3, 16, 9, 7}, {24, 16, 3, 3}}, DType::kBFloat16, Of(1, 1)), "convolution",
        2);
  Check(Conv("conv", {{2, 5, 11, 13}, {9, 5, 5, 2}}, DType::kFloat16, Of(2, 2)), "convolution", 1);
  Check(Conv("conv", {{2, 8, 61}, {16, 8, 3}}, DType::kBFloat16, Of(1, 4, 4)), "convolution", 1);
  Check(Conv("conv", {{1, 12, 5, 6, 7}, {8, 12, 3, 3, 3}}, DType::kBFloat16, Of(1, 1)),
        "convolution", 1);
  Check(Conv("conv", {{2, 24, 8, 8}, {16, 12, 3, 3}}, DType::kFloat16, Of(1, 1, 1, 2)),
        "convolution", 1);
  Check(Conv("conv", {{2, 24, 6, 6}, {48, 4, 3, 3}}, DType::kBFloat16, Of(1, 1, 1, 6)),
        "convolution", 1);
  Check(Conv("conv_transpose", {{2, 24, 4, 5}, {24, 6, 3, 3}}, DType::kBFloat16, Of(2, 1, 1, 3)),
        "convolution", 1);
  Check(Conv("conv", {{1, 40, 8, 8}, {16, 40, 1, 1}}, DType::kBFloat16), "convolution", 1);
  EXPECT_GT(verified_, 12u);
}

/// Channels last, of 11 by 10 places; `tail` makes y of the sums s, biases b and elements z;
/// `turned`: rows of places lie side by side.
KernelSpec Finished(int64_t channels, int64_t filters, int64_t taps, int64_t stride,
                    const char* tail, bool turned = false) {
  const int64_t low = taps / 2, height = (11 + 2 * low - taps + stride) / stride;
  const int64_t width = (10 + 2 * low - taps + stride) / stride;
  const std::string text = fmt::format(R"(graph finished
input x: bfloat16[2, 11, 10, {0}]
input w: bfloat16[{1}, {2}, {2}, {0}]
input b: float32[{1}]
input z: bfloat16[2, {5}, {6}, {1}]
tall = pad(x, axis=1, low={3}, high={3})
wide = pad(tall, axis=2, low={3}, high={3})
rows = window(wide, axis=1, size={2}, stride={4})
taps = window(rows, axis=3, size={2}, stride={4})
s = contract(taps, w, equation="nhrwsc,orsc->{8}", as=float32)
y = {7}
output y
)",
                                       channels, filters, taps, low, stride,
                                       turned ? width : height, turned ? height : width, tail,
                                       turned ? "nwho" : "nhwo");
  return SpecOfGraph(graph::Parse(text, "test.atg").value(), {}).value();
}
constexpr const char* kResidual = "cast(maximum(s + b + cast(z, float32), 0), bfloat16)";

// Biases, activations and residuals are the store's; small steps and odd channels are gathered.
TEST_F(Convolutions, FinishedByAMap) {
  Check(Finished(16, 24, 3, 1, kResidual), "convolution", 2);
  Check(Finished(20, 12, 5, 2, "cast(tanh(s + b) * cast(z, float32), bfloat16)"), "convolution", 2);
}

TEST_F(HopperConvolutions, FinishedByAMap) {
  Check(Finished(16, 24, 3, 1, kResidual), "convolution", 3);
  Check(Finished(64, 72, 3, 1, kResidual), "convolution", 2);
  Check(Finished(16, 20, 3, 1, "cast(s * 2 + cast(z, float32), bfloat16)"), "convolution", 1);
  Check(Finished(16, 24, 3, 2, kResidual), "convolution", 1);
  // pixels are not rows of the result
  Check(Finished(16, 24, 3, 1, kResidual, /*turned=*/true), "stages");
}

/// Channels first, as PyTorch has them: the map is followed by a transpose; z has the result's
/// layout.
KernelSpec FinishedFirst(const char* type, int64_t channels, int64_t filters, int64_t taps,
                         int64_t stride, const char* tail) {
  const int64_t low = taps / 2, height = (11 + 2 * low - taps + stride) / stride;
  const int64_t width = (10 + 2 * low - taps + stride) / stride;
  const std::string text = fmt::format(R"(graph finished_first
input x: {0}[2, {1}, 11, 10]
input w: {0}[{2}, {1}, {3}, {3}]
input b: float32[{2}]
input z: {0}[2, {2}, {5}, {6}]
tall = pad(x, axis=2, low={4}, high={4})
wide = pad(tall, axis=3, low={4}, high={4})
rows = window(wide, axis=2, size={3}, stride={7})
taps = window(rows, axis=4, size={3}, stride={7})
s = contract(taps, w, equation="nchrws,ocrs->nhwo", as=float32)
r = transpose(z, order=[0, 2, 3, 1])
m = cast({8}, {0})
y = transpose(m, order=[0, 3, 1, 2])
output y
)",
                                       type, channels, filters, taps, low, height, width, stride,
                                       tail);
  return SpecOfGraph(graph::Parse(text, "test.atg").value(), {}).value();
}

TEST_F(Convolutions, FinishedByAMapWithChannelsFirst) {
  const char* residual = "maximum(s * 0.5 + b + cast(r, float32), 0)";
  Check(FinishedFirst("float32", 16, 24, 3, 1, residual), "convolution", 2);
  Check(FinishedFirst("float32", 5, 12, 5, 2, "tanh(s + b) * cast(r, float32)"), "convolution", 1);
  Check(FinishedFirst("bfloat16", 16, 24, 3, 1, residual), "convolution", 2);
}

TEST_F(HopperConvolutions, FinishedByAMapWithChannelsFirst) {
  const char* residual = "maximum(s * 0.5 + b + cast(r, float32), 0)";
  Check(FinishedFirst("bfloat16", 16, 24, 3, 1, residual), "convolution", 2);
  Check(FinishedFirst("bfloat16", 64, 8, 3, 1, residual), "convolution", 2);
  Check(FinishedFirst("float16", 16, 20, 5, 2, residual), "convolution", 1);
  Check(FinishedFirst("float32", 16, 24, 3, 1, residual), "convolution", 1);
}

/// A transposed convolution with stride 2, a bias and an activation, as PyTorch's are read.
KernelSpec FinishedTransposed(const char* type, int64_t channels, int64_t filters, int64_t taps,
                              const char* tail) {
  const int64_t low = taps - 2;
  const std::string text = fmt::format(R"(graph finished_transposed
input x: {5}[2, {0}, 5, 6]
input w: {5}[{0}, {1}, {2}, {2}]
input b: float32[{1}]
tall = pad(x, axis=2, low={3}, high={3}, inner=1)
wide = pad(tall, axis=3, low={3}, high={3}, inner=1)
up = reverse(w, axis=2)
back = reverse(up, axis=3)
rows = window(wide, axis=2, size={2})
taps = window(rows, axis=4, size={2})
s = contract(taps, back, equation="nchrws,cors->nhwo", as=float32)
m = cast({4}, {5})
y = transpose(m, order=[0, 3, 1, 2])
output y
)",
                                       channels, filters, taps, low, tail, type);
  return SpecOfGraph(graph::Parse(text, "test.atg").value(), {}).value();
}

TEST_F(Convolutions, TransposedAndFinishedByAMap) {
  Check(FinishedTransposed("float32", 8, 12, 3, "tanh(s + b)"), "convolution", 1);
  Check(FinishedTransposed("bfloat16", 8, 24, 4, "tanh(s + b)"), "convolution", 1);
}

TEST_F(HopperConvolutions, TransposedAndFinishedByAMap) {
  Check(FinishedTransposed("bfloat16", 16, 12, 4, "tanh(s + b)"), "convolution", 1);
  DeviceProfile few = gpu_.profile();  // for which this is much to do
  few.sms = 1;
  const KernelSpec spec = FinishedTransposed("float32", 64, 24, 4, "maximum(s + b, 0)");
  const auto schedule = MakeTemplate(spec, few).value();
  EXPECT_THAT(schedule->Render(schedule->Default()).value().source.text,
              testing::HasSubstr("FLOAT_PARTS = 3;"));
  Check(spec, *schedule, 0);
}

// Where the policy allows TF32, the store finishes the sums of single products too.
TEST_F(HopperConvolutions, OfFloat32AreFinishedInOneProductWhereThePolicyAllowsIt) {
  const auto check = [&](KernelSpec spec) {
    SetAccuracy(spec, Accuracy::kFast);
    DeviceProfile few = gpu_.profile();  // for which this is much to do
    few.sms = 1;
    const auto schedule = MakeTemplate(spec, few).value();
    EXPECT_THAT(schedule->Render(schedule->Default()).value().source.text,
                testing::HasSubstr("FLOAT_PARTS = 1;"));
    Check(spec, *schedule, 0);
  };
  check(FinishedFirst("float32", 16, 72, 3, 1, "maximum(s * 0.5 + b + cast(r, float32), 0)"));
  check(FinishedFirst("float32", 5, 72, 5, 1, "tanh(s + b) * cast(r, float32)"));
  check(FinishedTransposed("float32", 64, 24, 4, "maximum(s + b, 0)"));
}

// Two sets of two groups side by side: 16 warps that store.
TEST_F(HopperConvolutions, OfFloat32AreStoredByManyWarps) {
  const KernelSpec spec = FinishedFirst("float32", 16, 24, 3, 1, "tanh(s + b) * cast(r, float32)");
  DeviceProfile few = gpu_.profile();
  few.sms = 1;
  const auto schedule = MakeTemplate(spec, few).value();
  auto oracle = OracleStore::Make(gpu_, *compiler_, *kernels_, spec);
  ASSERT_TRUE(oracle.has_value()) << oracle.error().ToString();
  for (const Configuration& one : DrawConfigurations(*schedule, 200, 11)) {
    const auto value = [&](const char* name) { return GetInt(schedule->space(), one, name); };
    if (value("sets") == 1 || value("groups_p") == 1) continue;
    return CheckConfiguration(spec, *schedule, one, **oracle);
  }
  FAIL() << "no such configuration was drawn";
}

TEST_F(Convolutions, TransposedInPhases) {
  Check(Conv("conv_transpose", {{2, 16, 5, 7}, {16, 8, 4, 4}}, DType::kBFloat16, Of(2, 1)),
        "convolution", 2);
  Check(Conv("conv_transpose", {{2, 8, 6, 6}, {8, 16, 2, 2}}, DType::kFloat16, Of(2, 0)),
        "convolution", 1);
  Check(Conv("conv_transpose", {{1, 8, 19}, {8, 8, 3}}, DType::kBFloat16, Of(3, 0, 2)),
        "convolution", 1);
  Check(Conv("conv_transpose", {{1, 8, 3, 4, 5}, {8, 4, 2, 2, 2}}, DType::kBFloat16, Of(2, 0)),
        "convolution", 1);
  Check(Conv("conv_transpose", {{1, 16, 6, 5}, {16, 4, 3, 3}}, DType::kBFloat16,
             With(Of(2, 1, 1, 2), "output_padding", int64_t{1})),
        "convolution", 1);
}

TEST_F(Convolutions, GradientsByTheImage) {
  const std::string x = "x";
  Check(Conv("conv_backward", {{2, 16, 9, 9}, {8, 16, 3, 3}}, DType::kBFloat16,
             With(Of(2, 1), "wrt", x)),
        "convolution", 1);
  Check(Conv("conv_backward", {{2, 8, 7, 7}, {32, 4, 3, 3}}, DType::kFloat16,
             With(Of(1, 1, 1, 2), "wrt", x)),
        "convolution", 1);
  Check(Conv("conv_backward", {{1, 16, 8, 8}, {8, 16, 1, 1}}, DType::kBFloat16,
             With(Of(2, 0), "wrt", x)),
        "convolution", 1);
  Check(Conv("conv_transpose_backward", {{2, 8, 5, 6}, {8, 16, 4, 4}}, DType::kBFloat16,
             With(Of(2, 1), "wrt", x)),
        "convolution", 1);
}

TEST_F(Convolutions, GradientsByTheFilter) {
  const std::string w = "w";
  Check(Conv("conv_backward", {{8, 16, 12, 10}, {24, 16, 3, 3}}, DType::kBFloat16,
             With(Of(1, 1), "wrt", w)),
        "convolution", 1);
  Check(Conv("conv_backward", {{3, 12, 30, 24}, {16, 12, 3, 2}}, DType::kFloat16,
             With(Of(2, 1), "wrt", w)),
        "convolution", 1);
  Check(Conv("conv_backward", {{8, 16, 90}, {48, 4, 5}}, DType::kBFloat16,
             With(Of(1, 4, 2, 4), "wrt", w)),
        "convolution", 1);
  Check(Conv("conv_backward", {{8, 16, 8, 10}, {8, 16, 1, 1}}, DType::kBFloat16,
             With(Of(1, 0), "wrt", w)),
        "convolution", 1);
  Check(Conv("conv_backward", {{2, 8, 5, 7, 8}, {8, 8, 3, 3, 3}}, DType::kBFloat16,
             With(Of(1, 1), "wrt", w)),
        "convolution", 1);
}

TEST_F(Convolutions, WithChannelsLastNeedNoFirstStepForTheImage) {
  const KernelSpec spec = SpecOfText(R"(
graph nhwc
dim N = 1..3
input x: bfloat16[N, 9, 7, 16]
input w: bfloat16[24, 3, 3, 16]
first: bfloat16[N, 16, 9, 7] = transpose(x, order=[0, 3, 1, 2])
wide: bfloat16[N, 16, 11, 7] = pad(first, axis=2, low=1, high=1)
all: bfloat16[N, 16, 11, 9] = pad(wide, axis=3, low=1, high=1)
rows = window(all, axis=2, size=3)
both = window(rows, axis=4, size=3)
product = contract(both, w, equation="ncpuqv,kuvc->nkpq")
y = transpose(product, order=[0, 2, 3, 1])
output y
)");
  Check(spec, "convolution", 2);
  const auto schedule = MakeTemplate(spec, gpu_.profile()).value();
  EXPECT_THAT(schedule->Render(schedule->Default()).value().source.text,
              testing::HasSubstr("ARRANGE_X = false"));
}

TEST_F(Convolutions, OfChannelsLastInPartsOfUnits) {
  Check(Conv("conv", {{2, 9, 7, 3}, {16, 3, 3, 3}}, DType::kBFloat16,
             With(Of(2, 1), "channels_last", true)),
        "convolution", 1);
  Check(Conv("conv_transpose", {{2, 5, 4, 16}, {16, 2, 2, 8}}, DType::kBFloat16,
             With(Of(2, 0), "channels_last", true)),
        "convolution", 1);
}

TEST_F(Convolutions, DepthwiseAsWeightedWindows) {
  for (DType dtype : kTaskTypes) {
    Check(Conv("conv", {{2, 5, 9, 16}, {5, 1, 3, 3}}, dtype, Of(1, 1, 1, 5)), "pooling", 2);
    Check(Conv("conv", {{2, 3, 13, 13}, {3, 1, 5, 4}}, dtype, Of(2, 2, 1, 3)), "pooling", 1);
    Check(Conv("conv", {{2, 4, 67}, {4, 1, 4}}, dtype, Of(1, 3, 1, 4)), "pooling", 2);
  }
  Check(
      Conv("conv", {{2, 4, 64}, {4, 1, 4}}, DType::kBFloat16, With(Of(1, 0, 1, 4), "causal", true)),
      "pooling", 1);
  Check(Conv("conv", {{1, 3, 20, 24}, {3, 1, 3, 3}}, DType::kBFloat16, Of(1, 2, 2, 3)), "pooling",
        1);
  Check(Conv("conv", {{2, 3, 5, 6, 8}, {3, 1, 3, 3, 3}}, DType::kBFloat16, Of(1, 1, 1, 3)),
        "pooling", 1);
  Check(Conv("conv_backward", {{2, 3, 8, 8}, {3, 1, 3, 3}}, DType::kFloat32,
             With(Of(1, 1, 1, 3), "wrt", std::string("x"))),
        "pooling", 1);
}

TEST_F(Convolutions, GradientsByFiltersOfSingleChannels) {
  const auto check = [&](const Shapes& shapes, DType dtype, const Attributes& attributes,
                         size_t drawn) {
    Check(Conv("conv_backward", shapes, dtype, With(attributes, "wrt", std::string("w"))),
          "depthwise_filters", drawn);
  };
  check({{3, 5, 19, 37}, {5, 1, 3, 3}}, DType::kBFloat16, Of(1, 1, 1, 5), 4);
  check({{2, 3, 26, 22}, {3, 1, 5, 4}}, DType::kFloat32, Of(2, 2, 1, 3), 2);
  check({{2, 4, 267}, {4, 1, 4}}, DType::kFloat16, Of(1, 6, 2, 4), 2);
  check({{2, 3, 9, 10, 12}, {3, 1, 3, 3, 3}}, DType::kBFloat16, Of(1, 1, 1, 3), 2);
}

TEST_F(HopperConvolutions, GradientsByTheFilter) {
  const auto check = [&](const Shapes& shapes, const Attributes& attributes, size_t drawn) {
    const KernelSpec spec = Conv("conv_backward", shapes, DType::kBFloat16,
                                 With(attributes, "wrt", std::string("w")));
    Check(spec, "convolution", drawn);
    EXPECT_GE(MakeTemplate(spec, gpu_.profile()).value()->space().Find("groups_r"), 0);
  };
  check({{2, 72, 7, 9}, {80, 72, 3, 3}}, Of(1, 1), 3);
  check({{2, 24, 13, 11}, {40, 24, 3, 3}}, Of(2, 1), 1);
  check({{3, 136, 6, 12}, {16, 136, 1, 1}}, Of(1, 0), 1);
  check({{2, 16, 12, 12}, {24, 16, 1, 1}}, Of(2, 0), 0);
  check({{2, 48, 60}, {48, 24, 7}}, Of(1, 4, 2, 2), 1);
  check({{2, 40, 8, 9}, {40, 4, 3, 3}}, Of(1, 1, 1, 10), 1);
  check({{1, 20, 5, 6, 7}, {24, 20, 3, 3, 3}}, Of(1, 1), 1);
  check({{2, 20, 8, 12, 14}, {24, 20, 2, 2, 5}}, Of(3, 0), 0);
}

TEST_F(HopperConvolutions, OfGroupsOfWarps) {
  Check(Conv("conv", {{3, 16, 9, 7}, {72, 16, 3, 3}}, DType::kBFloat16, Of(1, 1)), "convolution",
        2);
  Check(Conv("conv_transpose", {{2, 72, 5, 8}, {72, 8, 4, 4}}, DType::kFloat16, Of(2, 1)),
        "convolution", 1);
}

TEST_F(HopperConvolutions, WithTapsAsDistancesBetweenRows) {
  Check(Conv("conv", {{1, 20, 5, 6, 7}, {24, 20, 3, 3, 3}}, DType::kBFloat16, Of(1, 1)),
        "convolution", 2);
  Check(Conv("conv", {{2, 72, 40}, {16, 72, 3}}, DType::kFloat16, Of(1, 4, 4)), "convolution", 2);
  Check(Conv("conv", {{2, 48, 6, 7}, {24, 24, 3, 2}}, DType::kBFloat16, Of(1, 0, 1, 2)),
        "convolution", 1);
  Check(Conv("conv_transpose", {{1, 8, 3, 4, 5}, {8, 4, 2, 2, 2}}, DType::kBFloat16, Of(2, 0)),
        "convolution", 1);
  Check(Conv("conv_transpose", {{2, 16, 30}, {16, 8, 16}}, DType::kBFloat16, Of(8, 4)),
        "convolution", 1);
  Check(Conv("conv_transpose", {{1, 8, 19}, {8, 8, 3}}, DType::kBFloat16, Of(3, 0, 2)),
        "convolution", 1);
  Check(Conv("conv_backward", {{2, 16, 9, 8}, {8, 16, 3, 3}}, DType::kBFloat16,
             With(Of(2, 1), "wrt", std::string("x"))),
        "convolution", 1);
  const Shapes shapes = {{2, 12, 9, 7}, {24, 12, 3, 3}};
  Check(Conv("conv", shapes, DType::kFloat32, Of(1, 1), Accuracy::kFast), "convolution", 1);
  Check(Conv("conv_transpose", {{1, 8, 5, 6}, {8, 8, 2, 2}}, DType::kFloat32, Of(2, 0),
             Accuracy::kFast),
        "convolution", 1);
}

// Three products of two float16 parts are within the error budget of float32, with the same wide
// inputs.
TEST_F(HopperConvolutions, OfFloat32AreSplitIntoPartsWhereThatPays) {
  const auto check = [&](const char* op, const Shapes& shapes, const Attributes& attributes,
                         int64_t stored) {
    const KernelSpec spec = Conv(op, shapes, DType::kFloat32, attributes);
    DeviceProfile few = gpu_.profile();  // for which this is much to do
    few.sms = 1;
    const auto schedule = MakeTemplate(spec, few).value();
    const std::string text = schedule->Render(schedule->Default()).value().source.text;
    EXPECT_THAT(text, testing::HasSubstr("FLOAT_PARTS = 3;"));
    EXPECT_THAT(text, testing::HasSubstr("STORED = " + std::to_string(stored) + ";"));
    Check(spec, *schedule, 0);
  };
  check("conv", {{2, 12, 9, 14}, {72, 12, 3, 3}}, Of(1, 1), 40);
  check("conv", {{1, 32, 9, 16}, {72, 32, 3, 3}}, Of(1, 1), 64);
  check("conv", {{1, 64, 5, 16}, {24, 64, 3, 3}}, Of(1, 1), 192);
  check("conv_transpose", {{1, 64, 9, 12}, {64, 32, 4, 4}}, Of(2, 1), 128);
  // Filters that are neighbours in the result.
  check("conv_transpose", {{1, 9, 12, 64}, {64, 4, 4, 40}}, With(Of(2, 1), "channels_last", true),
        128);
  check("conv_transpose", {{1, 9, 12, 64}, {64, 3, 3, 40}}, With(Of(3, 1), "channels_last", true),
        128);
  // A stride and a dilation without a common divisor.
  check("conv", {{1, 64, 190}, {72, 64, 3}}, Of(3, 2, 4), 128);
  check("conv", {{1, 64, 21, 20}, {72, 64, 3, 4}}, Of(2, 2, 3), 128);
}

// A sample sees 2048 times four elements of each 32nd of the filters, and has them all arranged for
// what it saw.
TEST_F(HopperConvolutions, OfAnElementThatTheSampleMissesAreArrangedAgain) {
  outlier_at_ = 4 * 2050;
  Check(Conv("conv", {{1, 1040, 1, 8}, {256, 1040, 1, 1}}, DType::kFloat32, Of(1, 0),
             Accuracy::kFast),
        "convolution");
}

// What a tap of one phase reads is not to spoil another phase's results.
TEST_F(HopperConvolutions, OfNumbersThatAreNone) {
  inputs_ = InputFamily::kNan;
  Check(Conv("conv_transpose", {{2, 16, 9, 7}, {16, 8, 4, 4}}, DType::kBFloat16, Of(2, 1)),
        "convolution", 1);
  Check(Conv("conv_transpose", {{2, 16, 30}, {16, 8, 16}}, DType::kBFloat16, Of(8, 4)),
        "convolution", 1);
  Check(Conv("conv", {{2, 16, 9, 7}, {40, 16, 3, 3}}, DType::kBFloat16, Of(1, 1)), "convolution",
        1);
}

TEST_F(HopperConvolutions, OfFewFiltersTakePixelsTogether) {
  const auto merged = [&](const Shapes& shapes) {
    const auto schedule =
        MakeTemplate(Conv("conv", shapes, DType::kBFloat16, Of(1, 1)), gpu_.profile()).value();
    const std::string text = schedule->Render(schedule->Default()).value().source.text;
    return text.substr(text.find("MERGED = ") + 9, 1);
  };
  EXPECT_EQ(merged({{1, 32, 16, 18}, {32, 32, 3, 3}}), "2");
  EXPECT_EQ(merged({{1, 8, 16, 18}, {8, 8, 3, 3}}), "4");
  EXPECT_EQ(merged({{1, 32, 16, 16}, {40, 32, 3, 3}}), "1");
  EXPECT_EQ(merged({{1, 32, 16, 16}, {32, 32, 3, 1}}), "1");
  Check(Conv("conv", {{2, 32, 5, 9}, {32, 32, 3, 3}}, DType::kBFloat16, Of(1, 1)), "convolution",
        1);
  Check(Conv("conv", {{1, 3, 6, 21}, {6, 3, 4, 5}}, DType::kFloat32, Of(1, 2), Accuracy::kFast),
        "convolution", 1);
  // Filters that are neighbours in the result.
  Check(Conv("conv", {{2, 9, 14, 12}, {16, 3, 3, 12}}, DType::kFloat32,
             With(Of(1, 1), "channels_last", true), Accuracy::kFast),
        "convolution", 1);
}

TEST_F(HopperConvolutions, WithStepsHavePixelsOfAPlaceApart) {
  Check(Conv("conv", {{2, 32, 9, 11}, {24, 32, 3, 3}}, DType::kBFloat16, Of(2, 1)), "convolution",
        3);
  Check(Conv("conv", {{1, 24, 5, 6, 9}, {16, 24, 3, 2, 3}}, DType::kFloat16, Of(2, 1)),
        "convolution", 2);
  Check(Conv("conv", {{2, 72, 40}, {16, 72, 5}}, DType::kBFloat16, Of(3, 2)), "convolution", 1);
  Check(Conv("conv", {{2, 64, 8, 9}, {24, 32, 4, 3}}, DType::kBFloat16, Of(2, 0, 1, 2)),
        "convolution", 1);
  Check(Conv("conv", {{2, 32, 9, 8}, {24, 32, 3, 3}}, DType::kFloat32, Of(2, 1), Accuracy::kFast),
        "convolution", 1);
}

// Whoever tunes would wait for the virtual GPU.
TEST_F(HopperConvolutions, OfLargeImagesAreCheckedAtNoOtherSize) {
  const auto sizes = [&](const Shapes& shapes) {
    const auto schedule =
        MakeTemplate(Conv("conv", shapes, DType::kBFloat16, Of(1, 1)), gpu_.profile()).value();
    return schedule->CheckDims(schedule->Default()).size();
  };
  EXPECT_EQ(sizes({{4, 128, 256, 256}, {128, 128, 3, 3}}), 0u);
  EXPECT_GT(sizes({{32, 64, 56, 56}, {64, 64, 3, 3}}), 0u);
}

TEST_F(HopperConvolutions, OfImagesAsTheyLie) {
  Check(Conv("conv", {{3, 40, 8, 11}, {72, 40, 1, 1}}, DType::kBFloat16, Of(1, 0)), "convolution",
        2);
  const KernelSpec spec = Conv("conv_transpose", {{2, 24, 8, 8}, {24, 16, 2, 2}}, DType::kFloat16,
                               Of(2, 0));
  Check(spec, "convolution", 2);
  const auto schedule = MakeTemplate(spec, gpu_.profile()).value();
  EXPECT_THAT(schedule->Render(schedule->Default()).value().source.text,
              testing::HasSubstr("ARRANGE_X = false"));
}

TEST_F(HopperConvolutions, WithStepsOrStretchesTooLongAreGathered) {
  const auto gathers = [&](const Shapes& shapes, const Attributes& attributes) {
    const auto schedule = MakeTemplate(Conv("conv", shapes, DType::kBFloat16, attributes),
                                       gpu_.profile());
    return schedule.has_value() && (*schedule)->space().Find("reach") < 0;
  };
  EXPECT_FALSE(gathers({{1, 128, 9000}, {64, 128, 3}}, Of(1, 64, 64)));
  EXPECT_TRUE(gathers({{1, 128, 9001}, {64, 128, 3}}, Of(1, 1024, 1024)));
  EXPECT_FALSE(gathers({{1, 128, 9000}, {64, 128, 3}}, Of(1, 1024, 1024)));
  EXPECT_FALSE(gathers({{1, 128, 90}, {64, 128, 3}}, Of(2, 1)));
  EXPECT_TRUE(gathers({{1, 128, 90}, {64, 128, 3}}, Of(2, 1, 2)));
  EXPECT_TRUE(gathers({{1, 128, 90}, {64, 128, 1}}, Of(2, 0)));
  EXPECT_TRUE(gathers({{1, 3, 90, 90}, {64, 3, 7, 7}}, Of(2, 3)));
  Check(Conv("conv", {{2, 16, 9, 11}, {24, 16, 3, 3}}, DType::kBFloat16, Of(2, 1, 2)),
        "convolution", 1);
  EXPECT_TRUE(gathers({{1, 9, 9, 128}, {64, 3, 3, 128}}, With(Of(2, 1), "channels_last", true)));
}

TEST_F(Convolutions, OfFloat32InHalvesWhereThePolicyAllowsIt) {
  const Shapes shapes = {{2, 12, 9, 7}, {24, 12, 3, 3}};
  Check(Conv("conv", shapes, DType::kFloat32, Of(1, 1), Accuracy::kFast), "convolution", 2);
  Check(Conv("conv_transpose", {{1, 8, 5, 6}, {8, 8, 2, 2}}, DType::kFloat32, Of(2, 0),
             Accuracy::kFast),
        "convolution", 1);
  Check(Conv("conv", {{2, 9, 7, 12}, {16, 3, 3, 12}}, DType::kFloat32,
             With(Of(1, 1), "channels_last", true), Accuracy::kFast),
        "convolution", 1);
  Check(Conv("conv_backward", shapes, DType::kFloat32, With(Of(1, 1), "wrt", std::string("w")),
             Accuracy::kFast),
        "convolution");
  // Filters of groups that were put together have no more elements than before.
  Check(Conv("conv", {{2, 24, 6, 6}, {48, 4, 3, 3}}, DType::kFloat32, Of(1, 1, 1, 6),
             Accuracy::kFast),
        "convolution");
}

TEST_F(Convolutions, OfFloat32WithFusedMultiplyAdds) {
  const auto check = [&](const char* op, const Shapes& shapes, const Attributes& attributes,
                         size_t drawn = 1) {
    Check(Conv(op, shapes, DType::kFloat32, attributes), "convolution", drawn);
  };
  check("conv", {{2, 12, 9, 7}, {24, 12, 3, 3}}, Of(1, 1), 3);
  check("conv", {{2, 10, 61}, {16, 5, 3}}, Of(2, 4, 4, 2));
  check("conv", {{1, 8, 5, 6, 7}, {8, 8, 3, 3, 3}}, Of(1, 1));
  check("conv", {{2, 9, 7, 3}, {16, 3, 3, 3}}, With(Of(2, 1), "channels_last", true));
  check("conv_transpose", {{2, 16, 5, 7}, {16, 8, 4, 4}}, Of(2, 1));
  check("conv_backward", {{2, 8, 9, 9}, {8, 8, 3, 3}}, With(Of(2, 1), "wrt", std::string("x")));
  check("conv_backward", {{4, 8, 12, 10}, {16, 8, 3, 3}}, With(Of(1, 1), "wrt", std::string("w")));
}

// Images that copies can take are read as they lie: panels of neighbours along a row, zeros where
// they reach over the edge.
TEST_F(HopperConvolutions, OfPanelsOfImagesAsTheyLie) {
  const auto check = [&](const char* op, const Shapes& shapes, const Attributes& attributes,
                         int64_t panel, size_t drawn = 2) {
    const KernelSpec spec = Conv(op, shapes, DType::kBFloat16, attributes);
    const auto schedule = MakeTemplate(spec, gpu_.profile()).value();
    const std::string text = schedule->Render(schedule->Default()).value().source.text;
    EXPECT_THAT(text, testing::HasSubstr("ARRANGE_X = false"));
    EXPECT_THAT(text, testing::HasSubstr("PANEL = " + std::to_string(panel) + ";"));
    Check(spec, "convolution", drawn);
  };
  check("conv", {{3, 24, 9, 64}, {72, 24, 3, 1}}, Of(1, 0), 64, 4);
  check("conv", {{1, 72, 4, 6, 16}, {72, 72, 3, 3, 1}}, Of(1, 0), 16);
  check("conv", {{2, 64, 640}, {64, 64, 3}}, Of(1, 64, 64), 64);
  check("conv_transpose", {{1, 24, 6, 32}, {24, 16, 4, 2}}, Of(2, 0), 32, 1);
}

// Copies cannot begin at each tap along a row: their sums are kept apart and meet in the store.
TEST_F(HopperConvolutions, OfWholeRowsAsTheyLieSumTapsApart) {
  const auto check = [&](const Shapes& shapes, const Attributes& attributes, int64_t shifts,
                         int64_t pair, size_t drawn = 2) {
    const KernelSpec spec = Conv("conv", shapes, DType::kBFloat16, attributes);
    DeviceProfile few = gpu_.profile();  // for which this is much to do
    few.sms = 1;
    const auto schedule = MakeTemplate(spec, few).value();
    const std::string text = schedule->Render(schedule->Default()).value().source.text;
    EXPECT_THAT(text, testing::HasSubstr("ARRANGE_X = false"));
    EXPECT_THAT(text, testing::HasSubstr("SHIFTS = " + std::to_string(shifts) + ";"));
    EXPECT_THAT(text, testing::HasSubstr("PAIR = " + std::to_string(pair) + ";"));
    Check(spec, *schedule, drawn);
  };
  check({{1, 40, 3, 5, 56}, {72, 40, 3, 3, 3}}, Of(1, 1), 3, 1, 3);
  check({{2, 72, 5, 32}, {72, 72, 3, 3}}, Of(1, 1), 3, 1);
  check({{1, 16, 4, 7, 64}, {72, 16, 3, 3, 3}}, Of(2, 1), 3, 1);
  check({{1, 200, 16, 16}, {64, 200, 1, 5}}, With(Of(1, 2), "padding", int64_t{2}), 5, 1);
  check({{1, 24, 2, 7, 128}, {32, 24, 3, 3, 3}}, Of(1, 1), 3, 2);
  check({{5, 72, 64}, {72, 72, 3}}, Of(1, 2, 2), 3, 1, 1);
  check({{1, 144, 6, 32}, {144, 72, 3, 3}}, Of(1, 1, 1, 2), 3, 1, 1);
}

TEST_F(HopperConvolutions, OfPanelsWithChannelsLast) {
  const auto check = [&](const char* op, const Shapes& shapes, const Attributes& attributes,
                         size_t drawn = 2) {
    const KernelSpec spec = Conv(op, shapes, DType::kBFloat16, attributes);
    const auto schedule = MakeTemplate(spec, gpu_.profile()).value();
    EXPECT_EQ(schedule->Render(schedule->Default()).value().plan.steps.size(), 1u);
    EXPECT_GE(schedule->space().Find("reach"), 0);
    Check(spec, "convolution", drawn);
  };
  const Attributes padded = {{"padding", int64_t{1}}};
  check("conv2d", {{3, 9, 28, 24}, {72, 3, 3}}, padded, 4);
  check("conv2d", {{2, 7, 7, 72}, {24, 3, 3}}, padded);
  check("conv2d", {{2, 6, 56, 64}, {36, 3, 2}}, {{"padding", int64_t{2}}, {"dilation", int64_t{2}}},
        1);
  check("conv2d", {{3, 7, 7, 64}, {136, 1, 1}}, {});
  check("conv", {{1, 4, 5, 14, 16}, {24, 3, 3, 3, 16}}, With(Of(1, 1), "channels_last", true), 1);
}

}  // namespace
}  // namespace atunner
