// What a loader may launch a binary for: at least every size the judge checks that very binary at,
// and nothing that its source has baked in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "atunner/base/random.h"
#include "atunner/codegen/template/family.h"
#include "atunner/device/profiles.h"
#include "atunner/operators/operator.h"

namespace atunner {
namespace {

using testing::HasSubstr;

struct Task {
  const char* op;
  std::vector<std::vector<int64_t>> shapes;
};

std::unique_ptr<ScheduleTemplate> Bound(const Task& task, DType dtype, const char* gpu = "A100") {
  const Operator* op = FindOperator(task.op);
  auto bound = MakeTemplate(*op->Instantiate({task.shapes, dtype, {}}), *FindProfile(gpu));
  EXPECT_TRUE(bound.has_value()) << task.op << ": " << bound.error().ToString();
  return *std::move(bound);
}

/// The default and some valid configurations of the whole space.
std::vector<Configuration> Some(const ScheduleTemplate& schedule) {
  std::vector<Configuration> found = {schedule.Default()};
  Random random(5);
  for (int draw = 0; draw < 2000 && found.size() < 30; ++draw) {
    Configuration one;
    for (const Parameter& parameter : schedule.space().parameters)
      one.values.push_back(parameter.values[random.Below(parameter.values.size())]);
    if (schedule.space().Allows(one, schedule.spec().dims).value_or(false)) found.push_back(one);
  }
  return found;
}

Status ServedAt(const ScheduleTemplate& schedule, Dims dims) {
  const KernelSpec& spec = schedule.spec();
  for (const auto& [name, extent] : spec.dims) dims.emplace(name, extent);
  return Serves(schedule.FreeSizes(schedule.Default()), spec.dims, dims, spec.attributes);
}

TEST(FreeSizes, HoldEverySizeThatIsChecked) {
  const Task tasks[] = {{"softmax", {{64, 4096}}},
                        {"softmax_backward", {{17, 509}}},
                        {"layernorm", {{33, 1000}}},
                        {"layernorm_backward", {{65, 768}}},
                        {"matmul", {{512, 512, 512}}},
                        {"matmul", {{333, 222, 444}}},
                        {"matmul", {{127, 129, 131}}},
                        {"matmul", {{5, 4096, 4096}}},
                        {"conv2d", {{2, 14, 14, 16}, {32, 3, 3}}},
                        {"conv2d", {{2, 7, 9, 5}, {6, 3, 3}}},
                        {"flash_attention", {{1, 8, 512, 64}}},
                        {"flash_attention", {{1, 2, 37, 24}}},
                        {"add", {{64, 4095}, {4095}}},
                        {"rms_norm", {{64, 1000}}},
                        {"cumsum", {{64, 512}}},
                        {"topk", {{64, 512}}},
                        {"transpose", {{8, 64, 48}}},
                        {"max_pool", {{4, 3, 16, 16}}},
                        {"batch_norm_inference", {{8, 16, 14, 14}}},
                        {"linear", {{64, 128}, {96, 128}}}};
  size_t checked = 0;
  for (const Task& task : tasks) {
    for (const auto& [dtype, gpu] :
         {std::pair(DType::kFloat32, "A100"), std::pair(DType::kFloat16, "A100"),
          std::pair(DType::kBFloat16, "A100"), std::pair(DType::kBFloat16, "H200")}) {
      const auto schedule = Bound(task, dtype, gpu);
      const KernelSpec& spec = schedule->spec();
      for (const Configuration& configuration : Some(*schedule)) {
        const ValidSizes freedom = schedule->FreeSizes(configuration);
        std::vector<Dims> sizes = schedule->CheckDims(configuration);
        sizes.push_back(spec.dims);
        for (const Dims& dims : sizes) {
          const Status served = Serves(freedom, spec.dims, dims, spec.attributes);
          EXPECT_TRUE(served.has_value())
              << task.op << " " << Name(dtype) << " " << schedule->space().Describe(configuration)
              << ": " << served.error().ToString();
          ++checked;
        }
      }
    }
  }
  EXPECT_GT(checked, 1000u);
}

std::string WhyNot(const ScheduleTemplate& schedule, const Dims& dims) {
  const Status served = ServedAt(schedule, dims);
  return served ? "served" : served.error().ToString();
}

TEST(FreeSizes, RowsServeOtherRowsOfTheSameLength) {
  const auto schedule = Bound({"softmax", {{64, 4096}}}, DType::kFloat16);
  EXPECT_EQ(WhyNot(*schedule, {{"rows", 1}}), "served");
  EXPECT_EQ(WhyNot(*schedule, {{"rows", 1 << 20}}), "served");
  EXPECT_THAT(WhyNot(*schedule, {{"cols", 4095}}), HasSubstr("cols = 4096"));
}

TEST(FreeSizes, ElementsNumberedByWordsAreNoMoreThanTheseNumber) {
  const auto schedule = Bound({"add", {{64, 4095}, {4095}}}, DType::kFloat32);
  ASSERT_THAT(schedule->Render(schedule->Default()).value().source.text,
              HasSubstr("const int c1 ="));
  EXPECT_EQ(WhyNot(*schedule, {{"rows", 1 << 17}}), "served");
  EXPECT_THAT(WhyNot(*schedule, {{"rows", 1 << 20}}),
              HasSubstr("elements are numbered by 32 bits"));
}

TEST(FreeSizes, ProductsKeepTheirAlignment) {
  const auto aligned = Bound({"matmul", {{512, 512, 512}}}, DType::kFloat16);
  EXPECT_EQ(WhyNot(*aligned, {{"M", 3}, {"N", 88}, {"K", 1000}}), "served");
  EXPECT_THAT(WhyNot(*aligned, {{"K", 500}}), HasSubstr("K % 8 == 0"));
  EXPECT_THAT(WhyNot(*aligned, {{"N", 500}}), HasSubstr("N % 8 == 0"));
  const auto single = Bound({"matmul", {{512, 512, 512}}}, DType::kFloat32);
  EXPECT_EQ(WhyNot(*single, {{"K", 500}}), "served");
  EXPECT_THAT(WhyNot(*single, {{"K", 502}}), HasSubstr("K % 4 == 0"));
  // Odd rows are gathered element by element, or widened first: any size.
  for (const DType dtype : {DType::kFloat32, DType::kFloat16})
    EXPECT_EQ(
        WhyNot(*Bound({"matmul", {{127, 129, 131}}}, dtype), {{"M", 64}, {"N", 64}, {"K", 65}}),
        "served");
}

TEST(FreeSizes, RowsThatAreNotFetchedAreNotServed) {
  const auto few = Bound({"matmul", {{5, 4096, 4096}}}, DType::kBFloat16, "H200");
  EXPECT_EQ(WhyNot(*few, {{"M", 8}, {"N", 88}, {"K", 1000}}), "served");
  EXPECT_THAT(WhyNot(*few, {{"M", 9}}), HasSubstr("rows of the only tile"));
}

TEST(FreeSizes, OperandsThatAreNotWidenedKeepTheirAlignment) {
  const auto schedule = Bound({"matmul", {{64, 66, 68}}}, DType::kFloat16);
  const KernelSpec& spec = schedule->spec();
  const int widen = schedule->space().Find("widen");
  for (const Configuration& each : Some(*schedule)) {
    const bool widened = std::get<int64_t>(each.values[static_cast<size_t>(widen)]) != 0;
    const auto serves = [&](int64_t n, int64_t k) {
      const Dims dims = {{"M", 64}, {"N", n}, {"K", k}};
      return Serves(schedule->FreeSizes(each), spec.dims, dims, spec.attributes).has_value();
    };
    EXPECT_TRUE(serves(2, 4));
    EXPECT_EQ(serves(3, 4), widened);
    EXPECT_EQ(serves(2, 6), widened);
  }
}

TEST(FreeSizes, ConvolutionsServeOtherNumbersOfImages) {
  for (const auto& [dtype, gpu] :
       {std::pair(DType::kFloat32, "A100"), std::pair(DType::kFloat16, "A100"),
        std::pair(DType::kBFloat16, "H200")}) {
    const auto schedule = Bound({"conv2d", {{2, 14, 14, 16}, {32, 3, 3}}}, dtype, gpu);
    EXPECT_EQ(WhyNot(*schedule, {{"N", 1}}), "served");
    EXPECT_EQ(WhyNot(*schedule, {{"N", 500}}), "served");
    EXPECT_THAT(WhyNot(*schedule, {{"H", 20}, {"P", 18}}), HasSubstr("H = 14"));
    EXPECT_THAT(WhyNot(*schedule, {{"N", 1 << 26}}), HasSubstr("31 bits"));
  }
}

TEST(FreeSizes, AttentionServesOtherLengthsAndHeads) {
  const auto schedule = Bound({"flash_attention", {{1, 8, 512, 64}}}, DType::kFloat16);
  EXPECT_EQ(WhyNot(*schedule, {{"heads", 3}, {"sequence", 1001}}), "served");
  EXPECT_THAT(WhyNot(*schedule, {{"dim", 128}}), HasSubstr("dim = 64"));
}

TEST(FreeSizes, ProductsOfPlanesServeOtherSizes) {
  for (const auto& [n, k] : {std::pair(4096, 4096), std::pair(4097, 4095)}) {
    const auto schedule = Bound({"matmul", {{4096, n, k}}}, DType::kFloat32, "H200");
    ASSERT_GE(schedule->space().Find("planes"), 0) << "tensor cores pay at this size";
    for (const Configuration& one : Some(*schedule)) {
      for (const Dims& dims : schedule->CheckDims(one))
        EXPECT_EQ(WhyNot(*schedule, dims), "served");
    }
    EXPECT_EQ(WhyNot(*schedule, {{"M", 3}, {"N", 64}, {"K", 100}}), "served");
    EXPECT_EQ(WhyNot(*schedule, {{"N", 65}}) == "served", n % 4 != 0);
    EXPECT_EQ(WhyNot(*schedule, {{"K", 65}}) == "served", k % 4 != 0);
  }
}

}  // namespace
}  // namespace atunner
