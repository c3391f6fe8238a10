// Products on the virtual GPU: of matrices, inside of graphs, of 8 bits, and in float32 as planes
// of 16 bits.
#include <cmath>
#include <functional>

#include "atunner/codegen/matmul/matrix_product.h"
#include "atunner/codegen/tests/family_numbers_test.h"
#include "atunner/graph/text.h"
#include "atunner/model/kernel/accuracy.h"
#include "atunner/operators/graph_operator.h"

namespace atunner {
namespace {

TEST_F(FamilyNumbers, MatrixProducts) {
  CheckAllTypes({"matmul", {{512, 512, 512}}, {}}, 6);
  CheckAllTypes({"matmul", {{97, 101, 103}}, {}}, 7);
}

TEST_F(FamilyNumbers, SplitProducts) {
  CheckTask({"matmul", {{64, 64, 8192}}, {}}, DType::kFloat32, 8);
  CheckTask({"matmul", {{64, 64, 8192}}, {}}, DType::kBFloat16, 8);
}

TEST_F(HopperNumbers, ProductsOfGroupsOfWarps) {
  CheckTask({"matmul", {{512, 512, 512}}, {}}, DType::kBFloat16, 31);
  CheckTask({"matmul", {{97, 101, 103}}, {}}, DType::kFloat16, 32);
  CheckTask({"matmul", {{64, 64, 8192}}, {}}, DType::kBFloat16, 33);
  CheckTask({"conv2d", {{4, 28, 28, 16}, {32, 3, 3}}, {{"padding", int64_t{1}}}}, DType::kBFloat16,
            34);
}

TEST_F(HopperNumbers, ProductsByTensorMaps) {
  const auto schedule = MakeTemplate(SpecOf({"matmul", {{4096, 4096, 1024}}, {}}, DType::kBFloat16),
                                     gpu_.profile())
                            .value();
  CheckConfigurations(*schedule,
                      ProductSchedules(*schedule, {{128, 256, 64, 0, 4, 1, 1, 0},
                                                   {128, 128, 64, 0, 3, 1, 0, 0},
                                                   {64, 64, 64, 0, 5, 1, 1, 0},
                                                   {128, 128, 128, 1, 3, 1, 1, 0},
                                                   {64, 128, 64, 1, 4, 1, 1, 0}}),
                      38);
}

TEST_F(HopperNumbers, SplitsOfTheDepth) {
  const auto maps = MakeTemplate(SpecOf({"matmul", {{64, 4096, 4096}}, {}}, DType::kFloat16),
                                 gpu_.profile())
                        .value();
  CheckConfigurations(*maps,
                      ProductSchedules(*maps, {{64, 128, 64, 0, 8, 4, 0, 1},
                                               {64, 64, 64, 0, 6, 8, 0, 1},
                                               {64, 64, 64, 0, 3, 3, 0, 0}}),
                      39);
  // Fewer rows than the tensor cores multiply: the others are not even copied.
  const auto few = MakeTemplate(SpecOf({"matmul", {{5, 4096, 4096}}, {}}, DType::kBFloat16),
                                gpu_.profile())
                       .value();
  CheckConfigurations(
      *few, ProductSchedules(*few, {{64, 256, 64, 0, 5, 4, 0, 1}, {64, 128, 64, 0, 4, 16, 0, 0}}),
      44);
  // Rows that no tensor map takes: every thread copies.
  const auto odd = MakeTemplate(SpecOf({"matmul", {{64, 65, 8192}}, {}}, DType::kBFloat16),
                                gpu_.profile())
                       .value();
  CheckConfigurations(*odd,
                      {WithValues(*odd, {{"tile_m", 64},
                                         {"tile_n", 64},
                                         {"group_rows", 64},
                                         {"stages", 4},
                                         {"split_k", 4},
                                         {"in_cluster", 1},
                                         {"widen", 0}})},
                      40);
}

class BlackwellNumbers : public FamilyNumbers {
 protected:
  BlackwellNumbers() : FamilyNumbers("B200") {}
};

TEST_F(BlackwellNumbers, SplitsOfTheDepthInAClusterOfWarpTiles) {
  const auto schedule = MakeTemplate(SpecOf({"matmul", {{64, 64, 8192}}, {}}, DType::kBFloat16),
                                     gpu_.profile())
                            .value();
  CheckConfigurations(*schedule,
                      {WithValues(*schedule, {{"tile_m", 64},
                                              {"tile_n", 64},
                                              {"tile_k", 64},
                                              {"warp_m", 32},
                                              {"warp_n", 32},
                                              {"stages", 4},
                                              {"split_k", 4},
                                              {"in_cluster", 1},
                                              {"widen", 0}})},
                      43);
}

TEST_F(HopperNumbers, ProductsOfOddRowsByTensorMaps) {
  CheckTask({"matmul", {{333, 1111, 999}}, {}}, DType::kBFloat16, 41);
  CheckTask({"matmul", {{333, 1111, 1024}}, {}}, DType::kFloat16, 42);
}

using Values = std::vector<std::pair<const char*, int64_t>>;

// Scales of both sides where sums are rounded, where a cluster adds shares up, and in a second
// step.
TEST_F(HopperNumbers, ProductsOf8BitFloats) {
  KernelSpec spec = SpecOf({"fp8_linear", {{1024, 1040}, {264, 1040}}, {}}, DType::kBFloat16);
  SetAccuracy(spec, Accuracy::kFast);
  const auto schedule = MakeTemplate(spec, gpu_.profile()).value();
  const Values small = {{"tile_m", 64}, {"tile_n", 64}, {"persistent", 0}};
  const auto with = [&](Values more) {
    Values all = small;
    all.insert(all.end(), more.begin(), more.end());
    return WithValues(*schedule, all);
  };
  CheckConfigurations(*schedule,
                      {with({{"promote", 0}, {"stages", 3}}), with({{"promote", 2}, {"stages", 3}}),
                       with({{"tile_m", 128}, {"promote", 2}, {"stages", 4}}),
                       with({{"promote", 2}, {"stages", 5}, {"split_k", 2}, {"in_cluster", 1}}),
                       with({{"promote", 2}, {"stages", 3}, {"split_k", 2}, {"in_cluster", 0}})},
                      50);
}

TEST_F(HopperNumbers, ProductsInsideOfGraphs) {
  const auto check = [&](const KernelSpec& spec, uint64_t seed) {
    SCOPED_TRACE(spec.name);
    ASSERT_TRUE(kProductFamily.Try(Task::Of(spec)));
    const auto schedule = MakeTemplate(spec, gpu_.profile()).value();
    CheckConfigurations(
        *schedule, {WithValues(*schedule, {{"tile_m", 64}, {"tile_n", 64}, {"persistent", 0}})},
        seed);
  };
  check(SpecOf({"linear", {{512, 128}, {72, 128}}, {}}, DType::kFloat16), 51);
  check(
      SpecOf({"addmm", {{512, 128}, {128, 68}}, {{"alpha", 0.5}, {"beta", 2.0}}}, DType::kBFloat16),
      52);
  // rows are widened
  check(SpecOf({"int8_linear", {{512, 264}, {300, 264}}, {}}, DType::kBFloat16), 53);
  check(SpecOf({"fp8_linear", {{512, 256}, {70, 256}}, {{"per_tensor", true}}}, DType::kFloat32),
        55);
  const auto mixed = graph::Parse(R"(
graph mixed
dim B = 1..80
input x: float8_e4m3[B, 160]
input w: float8_e5m2[65, 160]
input more: bfloat16[B, 65]
input scale: float32[]
product = contract(x, w, equation="mk,nk->mn", as=float32)
y = cast(maximum(product * scale + cast(more, float32) + cast(index(-1) - index(-2), float32), 0), bfloat16)
output y
)",
                                  "mixed");
  check(SpecOfGraph(mixed.value(), {}).value(), 54);
}

/// Products of graphs, by the family that takes them, at check sizes or at the task's own.
void CheckProducts(const std::function<void(const FamilyTask&, DType, const char*)>& check,
                   DType dtype) {
  check({"batched_matmul", {{3, 70, 72}, {3, 72, 88}}, {}}, dtype, "product");
  check({"batched_matmul", {{3, 70, 71}, {3, 65, 71}}, {{"transpose_b", true}}}, dtype, "product");
  // one matrix for all
  check({"batched_matmul", {{70, 40}, {2, 1, 40, 80}}, {}}, dtype, "product");
  check({"batched_matmul", {{2, 3, 40, 40}, {40, 72}}, {}}, dtype, "product");  // more rows
  check({"triangular_matmul", {{200, 150}, {150, 80}}, {}}, dtype, "product");
  check({"triangular_matmul", {{150, 207}, {207, 70}}, {{"upper", true}}}, dtype, "product");
  check({"linear", {{70, 100}, {68, 100}}, {}}, dtype, "product");
  check({"matvec", {{70, 264}}, {}}, dtype, "reduction");
}

TEST_F(FamilyNumbers, ProductsOfGraphs) {
  for (DType dtype : {DType::kFloat32, DType::kBFloat16})
    CheckProducts([&](const auto&... task) { CheckGraph(task...); }, dtype);
}
TEST_F(HopperNumbers, ProductsOfGraphs) {
  CheckProducts([&](const auto&... task) { CheckGraph(task...); }, DType::kFloat16);
}

// Every thread copies the operands, which are of another type than the result.
TEST_F(FamilyNumbers, ProductsOf16BitsIntoFloat32) {
  const auto wide = graph::Parse(R"(
graph wide
dim B = 1..80
input x: bfloat16[B, 96]
input w: bfloat16[68, 96]
y = contract(x, w, equation="mk,nk->mn", as=float32)
output y
)",
                                 "wide");
  const auto schedule = MakeTemplate(SpecOfGraph(wide.value(), {}).value(), gpu_.profile()).value();
  CheckConfigurations(*schedule, DrawConfigurations(*schedule, 3, 9), 62);
}

TEST_F(HopperNumbers, ProductsOfBatchesWithWhatFollows) {
  const char* text = R"(
graph scores
input x: bfloat16[2, 3, 70, 64]
input w: bfloat16[2, 3, 80, 64]
input row: float32[2, 3, 70, 1]
input column: bfloat16[3, 1, 80]
input more: bfloat16[2, 1, 70, 80]
product = contract(x, w, equation="bhmk,bhnk->bhmn")
wide = cast(product, float32) * row + cast(column, float32) + cast(more, float32)
y = cast(select(index(-1) + index(-3) <= index(-2), wide, 0), bfloat16)
output y
)";
  const KernelSpec spec = SpecOfGraph(graph::Parse(text, "scores").value(), {}).value();
  ASSERT_TRUE(kProductFamily.Try(Task::Of(spec)));
  const auto schedule = MakeTemplate(spec, gpu_.profile()).value();
  CheckConfigurations(*schedule, DrawConfigurations(*schedule, 5, 8), 61);
}

TEST_F(HopperNumbers, SinglePrecisionProductsOfPlanes) {
  const std::initializer_list<InputFamily> families = {
      InputFamily::kNormal,     InputFamily::kUniform,  InputFamily::kHeavyTail,
      InputFamily::kCancelling, InputFamily::kDenormal, InputFamily::kNan};
  for (const FamilyTask& task : {FamilyTask{"matmul", {{512, 512, 512}}, {}},
                                 FamilyTask{"matmul", {{4096, 4097, 4099}}, {}}}) {
    SCOPED_TRACE(Describe(task, DType::kFloat32));
    const KernelSpec spec = SpecOf(task, DType::kFloat32);
    const auto schedule = MakeSplitFloatGemm(spec, gpu_.profile(), MatmulOf(spec));
    CheckConfigurations(*schedule, DrawConfigurations(*schedule, 2, 41), 41, families);
  }
  // Fewer planes are for tasks that state how much error they bear.
  for (const bool fast : {false, true}) {
    KernelSpec rough = SpecOf({"matmul", {{4096, 4096, 4096}}, {}}, DType::kFloat32);
    if (fast)
      SetAccuracy(rough, Accuracy::kFast);
    else
      rough.tolerance.relative = 1e-4;
    const auto schedule = MakeSplitFloatGemm(rough, gpu_.profile(), MatmulOf(rough));
    EXPECT_EQ(GetInt(schedule->space(), schedule->Default(), "planes"), fast ? 1 : 2);
    CheckConfigurations(*schedule, DrawConfigurations(*schedule, 2, 42), 42,
                        {InputFamily::kNormal, InputFamily::kHeavyTail, InputFamily::kCancelling});
  }
}

TEST_F(HopperNumbers, SinglePrecisionProductsOfGraphsByPlanes) {
  const FamilyTask tasks[] = {
      {"linear", {{70, 200}, {136, 200}}, {}},
      {"linear", {{131, 67}, {65, 67}}, {}},
      {"batched_matmul", {{3, 70, 72}, {3, 72, 88}}, {}},
      {"batched_matmul", {{3, 70, 71}, {3, 65, 71}}, {{"transpose_b", true}}},
      {"batched_matmul", {{70, 40}, {2, 1, 40, 80}}, {}}};
  for (const FamilyTask& task : tasks) {
    for (const int64_t planes : {1, 2, 3}) {
      if (planes < 3 && task.shapes[0].size() < 3) continue;
      SCOPED_TRACE(Describe(task, DType::kFloat32) + " of planes: " + std::to_string(planes));
      KernelSpec spec = SpecOf(task, DType::kFloat32);
      if (planes == 1) SetAccuracy(spec, Accuracy::kFast);
      if (planes == 2) spec.tolerance.relative = 1e-4;
      const auto schedule = MakeSplitFloatGemm(spec, gpu_.profile(),
                                               ProductOf(Task::Of(spec)).value());
      const std::vector<Configuration> drawn = DrawConfigurations(*schedule, planes < 3 ? 1 : 2,
                                                                  43);
      if (planes < 3)
        CheckConfigurations(*schedule, drawn, 43, {InputFamily::kNormal, InputFamily::kCancelling});
      else
        CheckConfigurations(*schedule, drawn, 43,
                            {InputFamily::kNormal, InputFamily::kDenormal, InputFamily::kNan});
    }
  }
  // Where the product is large enough it goes that way.
  const auto large = MakeTemplate(
      SpecOf({"linear", {{4096, 4096}, {4096, 4096}}, {}}, DType::kFloat32), gpu_.profile());
  EXPECT_GE((*large)->space().Find("planes"), 0);
}

/// A product in float32 at one size, inputs from the host.
class PlanesOfAnyNumbers : public HopperNumbers {
 protected:
  int64_t m_ = 70, n_ = 80, k_ = 200;
  std::vector<float> a_ = Normal(m_ * k_, 1), b_ = Normal(k_ * n_, 2);

  static std::vector<float> Normal(int64_t count, uint64_t seed) {
    Random random(seed);
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(random.Normal()));
    return values;
  }
  std::vector<float> Multiply() {
    const KernelSpec spec = SpecOf({"matmul", {{m_, n_, k_}}, {}}, DType::kFloat32);
    const auto schedule = MakeSplitFloatGemm(spec, gpu_.profile(), MatmulOf(spec));
    const RenderedKernel kernel = schedule->Render(schedule->Default()).value();
    const TaskBuffers buffers =
        TaskBuffers::Allocate(gpu_, schedule->spec(), schedule->spec().dims, 0).value();
    EXPECT_TRUE(gpu_.CopyIn(buffers.Find("a")->address, std::as_bytes(std::span(a_))));
    EXPECT_TRUE(gpu_.CopyIn(buffers.Find("b")->address, std::as_bytes(std::span(b_))));
    Run(Compile(kernel), kernel.plan, schedule->spec(), buffers);
    std::vector<float> c(m_ * n_);
    EXPECT_TRUE(gpu_.CopyOut(std::as_writable_bytes(std::span(c)), buffers.Find("c")->address));
    return c;
  }
  /// As |a| · |b| where `magnitude`.
  double Exact(int64_t at, bool magnitude) const {
    double sum = 0;
    for (int64_t k = 0; k < k_; ++k) {
      const double product = double{a_[at / n_ * k_ + k]} * b_[k * n_ + at % n_];
      sum += magnitude ? std::abs(product) : product;
    }
    return sum;
  }
  std::vector<float> PlainSums() const {
    std::vector<float> c(m_ * n_);
    for (int64_t i = 0; i < m_ * n_; ++i) {
      for (int64_t k = 0; k < k_; ++k)
        c[i] = std::fma(a_[i / n_ * k_ + k], b_[k * n_ + i % n_], c[i]);
    }
    return c;
  }
  /// The largest |c - a · b| / |a| · |b| of one element, in units of float32's roundoff.
  double WorstRoundoffs(const std::vector<float>& c) const {
    double worst = 0;
    for (int64_t i = 0; i < m_ * n_; ++i) {
      const double magnitude = Exact(i, true);
      if (magnitude > 0)
        worst = std::max(worst, std::abs(c[i] - Exact(i, false)) / magnitude * 0x1p24);
    }
    return worst;
  }
  double Distance(const std::vector<float>& c) const {
    double sum = 0;
    for (int64_t i = 0; i < m_ * n_; ++i) sum += std::pow(c[i] - Exact(i, false), 2);
    return std::sqrt(sum);
  }
};

// Tensor cores cut sums off: without promotion both errors would be several times those of plain
// sums.
TEST_F(PlanesOfAnyNumbers, LongSumsDoNotDrift) {
  m_ = n_ = 16;
  k_ = 4096;
  a_ = Normal(m_ * k_, 3);
  b_ = Normal(k_ * n_, 4);
  for (float& value : a_) value = std::abs(value);
  for (float& value : b_) value = std::abs(value);
  EXPECT_LT(Distance(Multiply()), Distance(PlainSums())) << "products of the first planes";
  // Pairs that nearly cancel leave the products of the others.
  k_ = 16384;
  a_ = Normal(m_ * k_, 5);
  b_ = Normal(k_ * n_, 6);
  for (int64_t i = 0; i < m_ * k_; ++i) a_[i] = i % 2 == 0 ? 8 + a_[i] : 0.125F * a_[i] - a_[i - 1];
  for (float& value : b_) value = 1 + value / 64;
  EXPECT_LT(Distance(Multiply()), 2 * Distance(PlainSums())) << "all others";
}

TEST_F(PlanesOfAnyNumbers, OperandsOfOppositeRangesKeepTheirDigits) {
  EXPECT_LT(WorstRoundoffs(Multiply()), 4);
  // Columns of a by powers of two, rows of b by their inverses: what is smallest in a row meets the
  // largest of a column.
  for (int64_t k = 0; k < k_; ++k) {
    const int power = static_cast<int>(k * 37 % 140) - 70;
    for (int64_t m = 0; m < m_; ++m) a_[m * k_ + k] = std::ldexp(a_[m * k_ + k], power);
    for (int64_t n = 0; n < n_; ++n) b_[k * n_ + n] = std::ldexp(b_[k * n_ + n], -power);
  }
  EXPECT_LT(WorstRoundoffs(Multiply()), 8) << "as one sum after the other is";
  // And where only the small meet: nothing else is left of the row.
  for (int64_t k = 0; k < k_; ++k) {
    for (int64_t n = 0; n < n_; ++n) b_[k * n_ + n] = k * 37 % 140 < 10 ? b_[k * n_ + n] : 0;
  }
  EXPECT_LT(WorstRoundoffs(Multiply()), 8);
}

TEST_F(PlanesOfAnyNumbers, ScalesReachBothEndsOfTheType) {
  for (float& value : a_) value *= 0x1p-140f;
  for (float& value : b_) value *= 0x1p120f;
  EXPECT_LT(WorstRoundoffs(Multiply()), 4) << "denormal operands";
}

TEST_F(PlanesOfAnyNumbers, InfinitiesAndNansComeOutAsFromPlainSums) {
  const float infinity = INFINITY;
  a_[3 * k_ + 5] = infinity;
  a_[40 * k_ + 7] = NAN;
  b_[9 * n_ + 17] = -infinity;
  a_[50 * k_ + 11] = 3e38f;
  b_[11 * n_ + 60] = 3e38f;
  for (int64_t k = 0; k < k_; ++k) a_[60 * k_ + k] = 0;
  const std::vector<float> c = Multiply(), plain = PlainSums();
  int infinite = 0, nan = 0;
  for (int64_t i = 0; i < m_ * n_; ++i) {
    const float sum = plain[i];
    infinite += std::isinf(sum);
    nan += std::isnan(sum);
    EXPECT_EQ(std::isnan(c[i]), std::isnan(sum)) << i;
    EXPECT_EQ(std::isinf(c[i]), std::isinf(sum)) << i;
    if (std::isinf(sum)) EXPECT_EQ(c[i], sum) << i;
  }
  EXPECT_GT(infinite, 100);
  EXPECT_GT(nan, 79);
}

}  // namespace
}  // namespace atunner
