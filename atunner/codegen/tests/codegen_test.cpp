// What families promise, without a compiler: spaces, launches, check sizes, the order of their
// costs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "atunner/codegen/tests/family_tasks_test.h"

namespace atunner {
namespace {

const FamilyTask kOddTasks[] = {
    {"softmax", {{1, 1}}, {}},
    {"softmax", {{7, 13}}, {}},
    {"softmax", {{3, 9973}}, {}},
    {"softmax", {{int64_t{1} << 24, 256}}, {}},
    {"softmax", {{2, 65536}}, {}},
    {"softmax_backward", {{1, 1}}, {}},
    {"softmax_backward", {{5, 4099}}, {}},
    {"layernorm", {{1, 1}}, {}},
    {"layernorm", {{11, 769}}, {}},
    {"layernorm", {{65536, 8192}}, {}},
    {"layernorm_backward", {{1, 1}}, {}},
    {"layernorm_backward", {{17, 1021}}, {}},
    {"matmul", {{1, 1, 1}}, {}},
    {"matmul", {{1, 4099, 1}}, {}},
    {"matmul", {{997, 1009, 1013}}, {}},
    {"matmul", {{131072, 65536, 8192}}, {}},
    {"matmul", {{1, 1, 1000003}}, {}},
    {"conv2d", {{1, 1, 1, 1}, {1, 1, 1}}, {}},
    {"conv2d",
     {{3, 17, 19, 5}, {7, 3, 5}},
     {{"stride", int64_t{2}}, {"dilation", int64_t{2}}, {"padding", int64_t{3}}}},
    {"conv2d", {{256, 112, 112, 64}, {128, 3, 3}}, {{"padding", int64_t{1}}}},
    {"flash_attention", {{1, 1, 1, 1}}, {}},
    {"flash_attention", {{1, 3, 97, 37}}, {{"causal", true}}},
    {"flash_attention", {{1, 1, 131072, 128}}, {}},
    {"flash_attention", {{5, 7, 11, 256}}, {{"scale", -0.5}}},
};

constexpr const char* kTargets[] = {"A100", "H200", "RTX-4090", "B200"};

TEST(Promises, EveryOddShapeHasASpaceAndADefaultWithinIt) {
  for (const FamilyTask& task : kOddTasks) {
    for (DType dtype : kTaskTypes) {
      for (const char* target : kTargets) {
        SCOPED_TRACE(Describe(task, dtype) + " on " + target);
        const auto schedule = MakeTemplate(SpecOf(task, dtype), FindProfile(target).value());
        EXPECT_TRUE(schedule.has_value()) << schedule.error().ToString();
        const KernelSpec& spec = (*schedule)->spec();
        ASSERT_TRUE((*schedule)->space().Validate(spec.dims));
        const Configuration start = (*schedule)->Default();
        ASSERT_EQ(start.values.size(), (*schedule)->space().parameters.size()) << "there is none";
        EXPECT_TRUE((*schedule)->space().Allows(start, spec.dims).value());
        for (size_t i = 0; i < start.values.size(); ++i)
          EXPECT_THAT((*schedule)->space().parameters[i].values,
                      testing::Contains(start.values[i]));
      }
    }
  }
}

TEST(Promises, EveryConfigurationLaunchesWithinTheDevicesLimits) {
  for (const FamilyTask& task : kOddTasks) {
    for (DType dtype : kTaskTypes) {
      SCOPED_TRACE(Describe(task, dtype));
      const DeviceProfile profile = FindProfile("H200").value();
      const auto made = MakeTemplate(SpecOf(task, dtype), profile);
      ASSERT_TRUE(made.has_value()) << made.error().ToString();
      const auto& schedule = *made;
      const KernelSpec& spec = schedule->spec();
      for (const Configuration& one : DrawConfigurations(*schedule, 12, 5)) {
        SCOPED_TRACE(schedule->space().Describe(one));
        const RenderedKernel kernel = schedule->Render(one).value();
        EXPECT_EQ(schedule->Render(one)->source.text, kernel.source.text) << "rendering is pure";
        std::vector<Dims> sizes = schedule->CheckDims(one);
        sizes.push_back(spec.dims);
        for (const Dims& dims : sizes) {
          const auto plan = Resolve(kernel.plan, dims, spec.attributes);
          ASSERT_TRUE(plan.has_value()) << plan.error().ToString();
          for (const ConcreteStep& step : plan->steps) {
            EXPECT_LE(step.block.Count(), 1024u);
            EXPECT_EQ(step.block.Count() % 32, 0u);
            EXPECT_LE(step.shared_bytes, static_cast<uint32_t>(profile.shared_per_block));
            EXPECT_EQ(step.grid.x % step.cluster.x, 0u);
          }
          for (const ArgSpec& arg : spec.args)
            EXPECT_TRUE(ShapeOf(arg, spec, dims).has_value()) << arg.name;
        }
        const auto cost = schedule->Cost(one, profile);
        ASSERT_TRUE(cost.has_value());
        EXPECT_TRUE(std::isfinite(*cost) && *cost > 0) << *cost;
      }
    }
  }
}

TEST(Promises, AttentionHasRegistersForItsSums) {
  for (const int64_t dim : {64, 128, 192, 256}) {
    const FamilyTask task{"flash_attention", {{2, 4, 1024, dim}}, {}};
    const auto schedule = MakeTemplate(SpecOf(task, DType::kFloat16), FindProfile("A100").value())
                              .value();
    for (const Configuration& one : DrawConfigurations(*schedule, 100, 5)) {
      const auto value = [&](const char* name) { return GetInt(schedule->space(), one, name); };
      EXPECT_LT(value("warp_q") * (dim + value("tile_k")) / 32, 232)
          << schedule->space().Describe(one);
    }
  }
}

// What a loader may launch a binary for must at least hold where it was checked.
TEST(Promises, CheckSizesAreAmongTheFreeSizes) {
  for (const FamilyTask& task : kOddTasks) {
    const auto made = MakeTemplate(SpecOf(task, DType::kFloat16), FindProfile("A100").value());
    ASSERT_TRUE(made.has_value()) << made.error().ToString();
    const auto& schedule = *made;
    const Configuration one = schedule->Default();
    const ValidSizes freedom = schedule->FreeSizes(one);
    if (freedom.dims.empty()) continue;
    for (const Dims& dims : schedule->CheckDims(one)) {
      const Status served = Serves(freedom, schedule->spec().dims, dims,
                                   schedule->spec().attributes);
      EXPECT_TRUE(served.has_value())
          << Describe(task, DType::kFloat16) << ": " << served.error().ToString();
    }
  }
}

TEST(Promises, CheckSizesReachPartlyFilledTiles) {
  const auto schedule = MakeTemplate(SpecOf({"matmul", {{512, 512, 512}}, {}}, DType::kBFloat16),
                                     FindProfile("A100").value())
                            .value();
  for (const Configuration& one : DrawConfigurations(*schedule, 10, 3)) {
    bool partial = false;
    for (const Dims& dims : schedule->CheckDims(one)) {
      const int64_t tile = GetInt(schedule->space(), one, "tile_m");
      partial |= dims.at("M") > tile && dims.at("M") % tile != 0;
    }
    EXPECT_TRUE(partial) << schedule->space().Describe(one);
  }
}

// Times of an H200 in us, whose order the costs must know before anything is compiled.
TEST(Costs, OfProductsRankAsAnH200Does) {
  const struct {
    std::vector<int64_t> shape;
    ProductSchedule faster, slower;
  } rows[] = {
      // 177, 197
      {{4096, 4096, 4096}, {128, 256, 64, 0, 4, 1, 1, 0}, {128, 192, 64, 0, 5, 1, 1, 0}},
      // 78, 93
      {{3072, 3072, 3072}, {128, 192, 64, 0, 5, 1, 1, 0}, {64, 256, 64, 0, 5, 1, 1, 0}},
      // 9.6, 12.1
      {{1024, 1024, 1024}, {64, 128, 64, 0, 8, 1, 0, 0}, {128, 128, 64, 0, 6, 2, 0, 1}},
      // 24, 29
      {{512, 512, 16384}, {128, 128, 64, 0, 6, 8, 0, 0}, {128, 128, 64, 0, 6, 6, 0, 1}},
      // 55, 57
      {{1024, 1024, 16384}, {128, 128, 64, 0, 6, 2, 0, 0}, {128, 128, 64, 0, 6, 2, 0, 1}},
      // 44, 61
      {{8192, 128, 8192}, {64, 128, 64, 0, 8, 1, 0, 0}, {128, 64, 64, 0, 8, 1, 0, 0}},
      // 40, 47
      {{128, 8192, 8192}, {64, 128, 64, 0, 8, 1, 0, 0}, {128, 128, 128, 0, 4, 2, 0, 1}},
      // 16, 19
      {{1, 4096, 4096}, {64, 64, 64, 0, 8, 2, 0, 1}, {64, 64, 64, 0, 12, 1, 0, 0}},
      // 16, 27
      {{1, 4096, 4096}, {64, 128, 64, 0, 8, 2, 0, 1}, {64, 256, 64, 0, 5, 1, 0, 0}},
      // 37, 64
      {{1, 4096, 14336}, {64, 256, 64, 0, 5, 4, 0, 1}, {64, 64, 64, 0, 6, 1, 0, 0}},
      // 42, 55
      {{64, 4096, 14336}, {64, 64, 64, 0, 12, 2, 0, 1}, {64, 128, 64, 0, 8, 4, 0, 1}},
      // 63, 75
      {{8, 28672, 4096}, {64, 256, 64, 0, 4, 1, 0, 0}, {64, 256, 64, 0, 5, 4, 0, 1}},
  };
  const DeviceProfile profile = FindProfile("H200").value();
  for (const auto& row : rows) {
    const FamilyTask task{"matmul", {row.shape}, {}};
    SCOPED_TRACE(Describe(task, DType::kBFloat16));
    const auto schedule = MakeTemplate(SpecOf(task, DType::kBFloat16), profile).value();
    const std::vector<Configuration> pair = ProductSchedules(*schedule, {row.faster, row.slower});
    EXPECT_LT(schedule->Cost(pair[0], profile).value(), schedule->Cost(pair[1], profile).value());
  }
}

// Times of an H200 in us with operands that leave L2 first, and with operands that stay.
TEST(Costs, LetOperandsLeaveL2FirstUntilTheyAreFarLarger) {
  const struct {
    std::vector<int64_t> shape;
    bool streams;
  } rows[] = {
      {{8, 4096, 4096}, true},     // 19.5, 22.7
      {{1, 28672, 4096}, true},    // 66.1, 67.3
      {{64, 28672, 4096}, true},   // 66.4, 68.3
      {{4, 28672, 8192}, false},   // 122.8, 119.3
      {{32, 8192, 28672}, false},  // 124.0, 121.2
      {{1, 128256, 4096}, false},  // 265.6, 248.8
  };
  for (const auto& row : rows) {
    const FamilyTask task{"matmul", {row.shape}, {}};
    const auto schedule = MakeTemplate(SpecOf(task, DType::kBFloat16), FindProfile("H200").value())
                              .value();
    EXPECT_EQ(GetInt(schedule->space(), schedule->Default(), "stream") > 0, row.streams)
        << Describe(task, DType::kBFloat16);
  }
}

// First guesses of attention, with what they took on an H200 in us, beside what the same tiles took
// in another order.
TEST(Costs, OfAttentionBeginWithWhatAnH200MeasuredFastest) {
  const struct {
    std::vector<int64_t> shape;
    bool causal;
    std::vector<int64_t> schedule;  // tile_q, tile_k, order
  } rows[] = {
      {{16, 32, 1024, 64}, false, {192, 128, 1}},   // 317, 360
      {{16, 32, 1024, 64}, true, {128, 128, 1}},    // 219, 281
      {{16, 16, 1024, 128}, false, {128, 128, 1}},  // 232, 261
      {{16, 16, 1024, 128}, true, {128, 128, 1}},   // 154, 184
      {{16, 8, 1024, 256}, false, {128, 80, 1}},    // 209, 217
      {{16, 8, 1024, 256}, true, {128, 80, 1}},     // 141, 154
      {{4, 32, 4096, 64}, false, {192, 128, 1}},    // 1040, 1074
      {{4, 32, 4096, 64}, true, {192, 128, 1}},     // 640, 663
      {{4, 16, 4096, 128}, false, {128, 128, 1}},   // 814, 838
      {{4, 16, 4096, 128}, true, {128, 128, 1}},    // 455, 491
      {{4, 8, 4096, 256}, false, {128, 80, 1}},     // 714, 716
      {{4, 8, 4096, 256}, true, {128, 80, 1}},      // 397, 424
      {{1, 32, 16384, 64}, false, {192, 128, 1}},   // 3918, 3927
      {{1, 32, 16384, 64}, true, {192, 128, 0}},    // 2161, 2292
      {{1, 16, 16384, 128}, false, {128, 128, 1}},  // 3317, 3480
      {{1, 8, 16384, 256}, false, {128, 80, 1}},    // 2789, 2916
      {{1, 8, 16384, 256}, true, {128, 80, 0}},     // 1382, 2330
  };
  const DeviceProfile profile = FindProfile("H200").value();
  for (const auto& row : rows) {
    const FamilyTask task{"flash_attention", {row.shape}, {{"causal", row.causal}}};
    SCOPED_TRACE(Describe(task, DType::kBFloat16));
    const auto schedule = MakeTemplate(SpecOf(task, DType::kBFloat16), profile).value();
    std::vector<int64_t> guess;
    for (const char* name : {"tile_q", "tile_k", "order"})
      guess.push_back(GetInt(schedule->space(), schedule->Default(), name));
    EXPECT_EQ(guess, row.schedule);
  }
}

// Times of an H200 in us by vectors of 4 and of 8 elements: 86 and 141 where every other element is
// read, 165 and 120 where each is read twice.
TEST(Costs, OfInterpolationCountHowFarApartNeighboursRead) {
  const DeviceProfile profile = FindProfile("H200").value();
  for (const auto& [shape, factor, vector] :
       {std::tuple{std::vector<int64_t>{32, 256, 128, 128}, 0.5, 4},
        std::tuple{std::vector<int64_t>{32, 256, 64, 64}, 2.0, 8}}) {
    const FamilyTask task{"interpolate", {shape}, {{"factor", factor}}};
    const auto schedule = MakeTemplate(SpecOf(task, DType::kBFloat16), profile).value();
    EXPECT_EQ(GetInt(schedule->space(), schedule->Default(), "vector"), vector)
        << Describe(task, DType::kBFloat16);
  }
}

// Few rows make the shares of column sums dear: on an H200 8192 rows of 4096 in bfloat16 took 77.6
// us with three blocks on a multiprocessor, 63.2 to 69 with two; 32768 rows 254.6 with three.
TEST(Costs, OfColumnSumsCountTheShares) {
  const DeviceProfile profile = FindProfile("H200").value();
  for (const auto& [rows, blocks] : {std::pair{int64_t{8192}, 2}, std::pair{int64_t{32768}, 3}}) {
    const auto schedule = MakeTemplate(
                              SpecOf({"layernorm_backward", {{rows, 4096}}, {}}, DType::kBFloat16),
                              profile)
                              .value();
    EXPECT_EQ(GetInt(schedule->space(), schedule->Default(), "blocks_per_sm"), blocks)
        << rows << " rows";
  }
}

TEST(Refusals, SayWhatIsMissing) {
  const auto turing = MakeTemplate(SpecOf({"matmul", {{64, 64, 64}}, {}}, DType::kFloat16),
                                   FindProfile("T4").value());
  ASSERT_FALSE(turing.has_value());
  EXPECT_EQ(turing.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(turing.error().what, testing::HasSubstr("8.0"));
  EXPECT_TRUE(MakeTemplate(SpecOf({"matmul", {{64, 64, 64}}, {}}, DType::kFloat32),
                           FindProfile("T4").value()));
  KernelSpec unknown = SpecOf({"softmax", {{2, 2}}, {}}, DType::kFloat32);
  unknown.name = "sort";
  EXPECT_EQ(MakeTemplate(unknown, FindProfile("A100").value()).error().code,
            ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace atunner
