// Compares the judge's device code, run on the virtual GPU, with the same computations on the host.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "atunner/base/files.h"
#include "atunner/base/random.h"
#include "atunner/capture/blob_store.h"
#include "atunner/verify/budget/error_budget.h"
#include "atunner/verify/launch/judge_kernels.h"
#include "atunner/verify/virtual_gpu_test.h"

namespace atunner {
namespace {

constexpr size_t kMany = 4096;
constexpr double kSpikeValue = 24;

ArgSpec Tensor(DType dtype, Fill fill = {}) {
  return {.name = "x",
          .role = Role::kInput,
          .dtype = dtype,
          .shape = {},
          .value = {},
          .fill = std::move(fill)};
}

class JudgeFillTest : public VirtualGpuTest {
 protected:
  std::vector<double> Draw(const ArgSpec& arg, const InputInstance& instance, size_t position = 0,
                           size_t count = kMany) {
    const auto buffer = Room(count * SizeOf(arg.dtype));
    EXPECT_TRUE(kernels_->FillTensor(buffer->address(), arg, count, position, instance));
    const auto raw = Get<std::byte>(buffer->address(), count * SizeOf(arg.dtype));
    std::vector<double> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = LoadElement(arg.dtype, raw.data(), i);
    return values;
  }
  std::vector<double> Family(InputFamily family, DType dtype = DType::kFloat32,
                             size_t position = 0) {
    return Draw(Tensor(dtype), {family, 7, false}, position);
  }
  static double Mean(const std::vector<double>& v) {
    return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
  }
  static double Deviation(const std::vector<double>& v) {
    const double mean = Mean(v);
    double sum = 0;
    for (double x : v) sum += (x - mean) * (x - mean);
    return std::sqrt(sum / static_cast<double>(v.size()));
  }
  static double Largest(const std::vector<double>& v) {
    return std::abs(*std::ranges::max_element(v, {}, [](double x) { return std::abs(x); }));
  }
};

constexpr DType kFloats[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};

TEST_F(JudgeFillTest, NormalUniformAndMixedSign) {
  for (DType dtype : kFloats) {
    const auto normal = Family(InputFamily::kNormal, dtype);
    EXPECT_NEAR(Mean(normal), 0, 0.06) << Name(dtype);
    EXPECT_NEAR(Deviation(normal), 1, 0.05) << Name(dtype);
    const auto uniform = Family(InputFamily::kUniform, dtype);
    EXPECT_GE(*std::ranges::min_element(uniform), 0) << Name(dtype);
    EXPECT_LE(*std::ranges::max_element(uniform), 1) << Name(dtype);
    EXPECT_NEAR(Mean(uniform), 0.5, 0.02) << Name(dtype);
    const auto mixed = Family(InputFamily::kMixedSign, dtype);
    EXPECT_NEAR(Mean(mixed), 0, 0.04) << Name(dtype);
    EXPECT_LE(Largest(mixed), 1) << Name(dtype);
    EXPECT_NEAR(Deviation(mixed), 1 / std::sqrt(3.0), 0.03) << Name(dtype);
  }
}

TEST_F(JudgeFillTest, ElementsAreNotRepeated) {
  const auto values = Family(InputFamily::kNormal);
  EXPECT_GT(std::set<double>(values.begin(), values.end()).size(), kMany - 8);
}

TEST_F(JudgeFillTest, HeavyTailHasOneAndIsClipped) {
  const auto values = Family(InputFamily::kHeavyTail);
  EXPECT_GT(Largest(values), 20) << "a normal of this many never gets there";
  EXPECT_LE(Largest(values), 256);
}

TEST_F(JudgeFillTest, LargeLogitsOverflowAnUnshiftedExponential) {
  for (DType dtype : kFloats) {
    const auto values = Family(InputFamily::kLargeLogits, dtype);
    EXPECT_NEAR(Deviation(values), 40, 2) << Name(dtype);
    EXPECT_GT(*std::ranges::max_element(values), 88.8) << "exp of it is beyond float32";
  }
}

TEST_F(JudgeFillTest, NeedleIsOneSpikeInNoise) {
  for (DType dtype : kFloats) {
    const auto values = Family(InputFamily::kNeedle, dtype);
    EXPECT_EQ(std::ranges::count(values, kSpikeValue), 1) << Name(dtype);
    EXPECT_EQ(std::ranges::count_if(values, [](double x) { return std::abs(x) > 0.1; }), 1)
        << Name(dtype);
    EXPECT_GT(Deviation(values), 0.005) << "and the noise is there";
  }
  const auto place = [&](uint64_t seed) {
    const auto values = Draw(Tensor(DType::kFloat32), {InputFamily::kNeedle, seed, false});
    return std::ranges::find(values, kSpikeValue) - values.begin();
  };
  EXPECT_NE(place(1), place(2)) << "its place cannot be known";
}

TEST_F(JudgeFillTest, CancellingPairsNearlyCancel) {
  const auto values = Family(InputFamily::kCancelling, DType::kFloat32, 0);
  const auto other = Family(InputFamily::kCancelling, DType::kFloat32, 1);
  double sum_of_sizes = 0;
  double sum = 0;
  for (size_t i = 0; i < kMany; i += 2) {
    EXPECT_LT(std::abs(values[i] + values[i + 1]), 1);
    sum_of_sizes += std::abs(values[i]) + std::abs(values[i + 1]);
    sum += values[i] * other[i] + values[i + 1] * other[i + 1];
  }
  EXPECT_GT(sum_of_sizes / kMany, 6) << "the terms are large";
  EXPECT_LT(std::abs(sum), sum_of_sizes / 500) << "their sum is not";
  for (double x : other) EXPECT_NEAR(x, 1, 0.1);
}

TEST_F(JudgeFillTest, DenormalsAreDenormal) {
  for (DType dtype : kFloats) {
    const double smallest_normal = dtype == DType::kFloat16 ? 0x1p-14 : 0x1p-126;
    const auto values = Family(InputFamily::kDenormal, dtype);
    EXPECT_LT(Largest(values), 6 * smallest_normal) << Name(dtype);
    const auto subnormal = std::ranges::count_if(
        values, [&](double x) { return x != 0 && std::abs(x) < smallest_normal; });
    EXPECT_GT(subnormal, static_cast<int64_t>(kMany) / 2)
        << Name(dtype) << ": flushed to zero they prove nothing";
  }
}

TEST_F(JudgeFillTest, NanIsOneAndInTheFirstTensor) {
  const auto first = Family(InputFamily::kNan, DType::kBFloat16, 0);
  const auto second = Family(InputFamily::kNan, DType::kBFloat16, 1);
  const auto is_nan = [](double x) { return std::isnan(x); };
  EXPECT_EQ(std::ranges::count_if(first, is_nan), 1);
  EXPECT_EQ(std::ranges::count_if(second, is_nan), 0);
}

TEST_F(JudgeFillTest, EverythingElseIsFiniteInEveryType) {
#define ATUNNER_INPUT_FAMILY(id, name, meaning)                                           \
  for (DType dtype : kFloats) {                                                           \
    const auto values = Family(InputFamily::id, dtype, 1);                                \
    EXPECT_TRUE(std::ranges::all_of(values, [](double x) { return std::isfinite(x); }) || \
                InputFamily::id == InputFamily::kInfinities)                              \
        << name << Name(dtype);                                                           \
  }
#include "atunner/verify/inputs/input_family.def"
#undef ATUNNER_INPUT_FAMILY
}

TEST_F(JudgeFillTest, AMutationIsExactlyOneElement) {
  for (uint64_t seed : {1u, 2u, 3u}) {
    for (size_t position : {0u, 1u}) {
      const auto before = Draw(Tensor(DType::kFloat16), {InputFamily::kNormal, seed, false},
                               position);
      const auto after = Draw(Tensor(DType::kFloat16), {InputFamily::kNormal, seed, true},
                              position);
      size_t changed = 0;
      for (size_t i = 0; i < kMany; ++i) changed += before[i] != after[i];
      EXPECT_EQ(changed, 1u);
    }
  }
}

TEST_F(JudgeFillTest, InstancesAreReproducibleAndDiffer) {
  const ArgSpec arg = Tensor(DType::kFloat32);
  const InputInstance instance{InputFamily::kNormal, 5, false};
  EXPECT_EQ(Draw(arg, instance), Draw(arg, instance));
  EXPECT_NE(Draw(arg, instance), Draw(arg, {InputFamily::kNormal, 6, false}));
  EXPECT_NE(Draw(arg, instance, 0), Draw(arg, instance, 1)) << "two operands must not be equal";
}

TEST_F(JudgeFillTest, TiesAreFewValues) {
  const auto distinct = [](const std::vector<double>& v) {
    return std::set<double>(v.begin(), v.end()).size();
  };
  for (DType dtype : kFloats) EXPECT_EQ(distinct(Family(InputFamily::kTies, dtype)), 5u);
  EXPECT_EQ(distinct(Family(InputFamily::kTies, DType::kInt32)), 3u);
  EXPECT_EQ(distinct(Family(InputFamily::kTies, DType::kUInt8)), 3u);
}

TEST_F(JudgeFillTest, ALargeMeanLosesTheVarianceInOnePass) {
  const auto values = Family(InputFamily::kLargeMean);
  EXPECT_NEAR(Mean(values), 1e4, 1);
  EXPECT_NEAR(Deviation(values), 1, 0.05);
  float sum = 0;
  float squares = 0;
  for (double x : values) {
    sum += static_cast<float>(x);
    squares += static_cast<float>(x) * static_cast<float>(x);
  }
  const float mean = sum / kMany;
  EXPECT_GT(std::abs(squares / kMany - mean * mean - 1), 0.5);
  EXPECT_GT(Deviation(Family(InputFamily::kLargeMean, DType::kFloat16)), 0.9);
  EXPECT_GT(Deviation(Family(InputFamily::kLargeMean, DType::kBFloat16)), 0.9);
}

TEST_F(JudgeFillTest, EveryDecadeIsReachedWithEitherSign) {
  const auto values = Family(InputFamily::kDecades);
  std::map<int, int> decades;
  int negative = 0;
  for (double x : values) {
    ++decades[static_cast<int>(std::floor(std::log10(std::abs(x))))];
    negative += x < 0;
  }
  const auto whole = [](double x) { return std::abs(x) > 1000 && x == std::floor(x); };
  EXPECT_GT(std::ranges::count_if(values, whole), static_cast<int64_t>(kMany) / 20);
  for (int decade = -3; decade < 6; ++decade) EXPECT_GT(decades[decade], kMany / 18) << decade;
  EXPECT_NEAR(negative, kMany / 2.0, kMany / 20.0);
  EXPECT_LE(Largest(values), 1e6);
  EXPECT_LE(Largest(Family(InputFamily::kDecades, DType::kFloat16)), 1e4);
}

TEST_F(JudgeFillTest, NearOneIsCloseToOneButSeldomOne) {
  for (DType dtype : kFloats) {
    const auto values = Family(InputFamily::kNearOne, dtype);
    EXPECT_LT(Largest(values), 1.5) << Name(dtype);
    EXPECT_GT(*std::ranges::min_element(values), 0.5) << Name(dtype);
  }
  const auto close = std::ranges::count_if(
      Family(InputFamily::kNearOne), [](double x) { return x != 1 && std::abs(x - 1) < 1e-4; });
  EXPECT_GT(close, static_cast<int64_t>(kMany) / 6);
}

TEST_F(JudgeFillTest, HugeNumbersHaveFiniteSumsAndInfiniteSquares) {
  for (const auto& [dtype, most] :
       {std::pair(DType::kFloat32, 3.4e38), std::pair(DType::kBFloat16, 3.3e38),
        std::pair(DType::kFloat16, 65504.0)}) {
    const auto values = Family(InputFamily::kHuge, dtype);
    EXPECT_LT(Largest(values), most) << Name(dtype);
    const auto square = [&](double x) { return x * x > most; };
    EXPECT_GT(std::ranges::count_if(values, square), static_cast<int64_t>(kMany) * 9 / 10)
        << Name(dtype);
  }
  double sum = 0;
  for (double x : Family(InputFamily::kHuge)) sum += std::abs(x);
  EXPECT_LT(sum, 1e38);
}

TEST_F(JudgeFillTest, SomeInfinitiesOfEitherSign) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (DType dtype : kFloats) {
    const auto values = Family(InputFamily::kInfinities, dtype);
    EXPECT_GT(std::ranges::count(values, kInfinity), 2) << Name(dtype);
    EXPECT_GT(std::ranges::count(values, -kInfinity), 2) << Name(dtype);
    EXPECT_LT(std::ranges::count_if(values, [](double x) { return std::isinf(x); }), 40);
  }
}

TEST_F(JudgeFillTest, ZerosWholeNumbersAndAscendingOnes) {
  EXPECT_THAT(Family(InputFamily::kZeros), testing::Each(0));
  EXPECT_THAT(Family(InputFamily::kZeros, DType::kInt16), testing::Each(0));
  const auto whole = Family(InputFamily::kWhole);
  EXPECT_TRUE(std::ranges::all_of(whole, [](double x) { return 256 * x == std::floor(256 * x); }));
  EXPECT_GT(std::ranges::count_if(whole, [](double x) { return x != std::floor(x); }), 1000);
  EXPECT_LT(*std::ranges::min_element(whole), -20);
  for (DType dtype : {DType::kFloat32, DType::kInt8, DType::kUInt8, DType::kInt64}) {
    const auto ascending = Family(InputFamily::kMonotone, dtype);
    EXPECT_TRUE(std::ranges::is_sorted(ascending)) << Name(dtype);
    EXPECT_LT(ascending.front(), ascending.back()) << Name(dtype);
    const auto falling = Family(InputFamily::kFalling, dtype);
    EXPECT_TRUE(std::ranges::is_sorted(falling, std::greater())) << Name(dtype);
    EXPECT_GT(falling.front(), falling.back()) << Name(dtype);
    if (dtype != DType::kUInt8) EXPECT_LT(falling.front(), 0) << Name(dtype);
  }
}

TEST_F(JudgeFillTest, WideIntegersSpanTheirType) {
  const auto span = [&](InputFamily family, DType dtype) {
    const auto values = Family(family, dtype);
    return std::pair(*std::ranges::min_element(values), *std::ranges::max_element(values));
  };
  for (InputFamily family : {InputFamily::kWide, InputFamily::kDecades}) {
    EXPECT_LT(span(family, DType::kInt32).first, -0.9 * 0x1p31) << Name(family);
    EXPECT_GT(span(family, DType::kInt32).second, 0.9 * 0x1p31) << Name(family);
    EXPECT_GT(span(family, DType::kUInt64).second, 0.9 * 0x1p64) << Name(family);
  }
  EXPECT_EQ(span(InputFamily::kWide, DType::kInt8), std::pair(-128.0, 127.0));
  EXPECT_EQ(span(InputFamily::kWide, DType::kBool), std::pair(0.0, 1.0));
  const auto bits = Family(InputFamily::kDecades, DType::kUInt32);
  EXPECT_GT(std::ranges::count_if(bits, [](double x) { return x < 256; }), 800);
}

TEST_F(JudgeFillTest, EdgesOfIntegers) {
  for (DType dtype : {DType::kInt8, DType::kInt32, DType::kUInt16}) {
    const auto values = Family(InputFamily::kEdges, dtype);
    const std::set<double> found(values.begin(), values.end());
    const int bits = static_cast<int>(8 * SizeOf(dtype));
    const bool is_signed = KindOf(dtype) == DTypeKind::kSigned;
    const double largest = std::ldexp(1.0, is_signed ? bits - 1 : bits) - 1;
    const double least = is_signed ? -largest - 1 : 0;
    for (double x : {least, least + 1, largest - 1, largest, 0.0, 1.0, 7.0, 8.0, 9.0, 31.0, 33.0})
      EXPECT_TRUE(found.contains(x)) << Name(dtype) << ' ' << x;
    if (is_signed) EXPECT_TRUE(found.contains(-1)) << Name(dtype);
    if (is_signed) EXPECT_TRUE(found.contains(-16)) << Name(dtype);
  }
}

// The values are those of the formula in integers, not of one that goes through float64.
TEST_F(JudgeFillTest, WideIntegersOf64BitsKeepTheirLowBits) {
  const auto buffer = Room(kMany * 8);
  ASSERT_TRUE(kernels_->FillTensor(buffer->address(), Tensor(DType::kInt64), kMany, 0,
                                   {InputFamily::kWide, 7, false}));
  const auto values = Get<uint64_t>(buffer->address(), kMany);
  EXPECT_GT(std::ranges::count_if(values, [](uint64_t x) { return x % 2 == 1; }), 1800);
  const uint64_t seed = Mix64(uint64_t{7} * 1315423911u);
  EXPECT_EQ(values[5], Mix64(Mix64(Mix64(seed) + 5))) << "the same on every device";
}

TEST_F(JudgeFillTest, StatedRangesAreKeptByAllFamilies) {
  const Fill range{.kind = Fill::Kind::kUniform, .low = -3, .high = 0.1, .path = {}};
  const Fill indices{.kind = Fill::Kind::kUniform, .low = 3, .high = 700, .path = {}};
#define ATUNNER_INPUT_FAMILY(id, name, meaning)                                      \
  {                                                                                  \
    const auto x = Draw(Tensor(DType::kFloat32, range), {InputFamily::id, 7, true}); \
    EXPECT_GE(*std::ranges::min_element(x), -3) << name;                             \
    EXPECT_LT(*std::ranges::max_element(x), 0.1) << name;                            \
    const auto i = Draw(Tensor(DType::kInt32, indices), {InputFamily::id, 7, true}); \
    EXPECT_GE(*std::ranges::min_element(i), 3) << name;                              \
    EXPECT_LT(*std::ranges::max_element(i), 700) << name;                            \
  }
#include "atunner/verify/inputs/input_family.def"
#undef ATUNNER_INPUT_FAMILY
  const auto edges = Draw(Tensor(DType::kInt32, indices), {InputFamily::kEdges, 7, false});
  EXPECT_GT(std::ranges::count(edges, 3), 800);
  EXPECT_GT(std::ranges::count(edges, 699), 800);
  const auto close = Draw(Tensor(DType::kFloat32, range), {InputFamily::kDecades, 7, false});
  EXPECT_GT(std::ranges::count_if(close, [](double x) { return x < -2.9999; }), 300);
}

TEST_F(JudgeFillTest, VariedFillsAreOtherValuesOfSimilarSize) {
  const InputInstance varied{InputFamily::kVariedFill, 3, false};
  const auto draw = [&](DType dtype, Fill::Kind kind, double low) {
    return Draw(Tensor(dtype, {.kind = kind, .low = low, .path = {}}), varied);
  };
  auto iota = draw(DType::kInt32, Fill::Kind::kIota, 0);
  EXPECT_FALSE(std::ranges::is_sorted(iota));
  std::ranges::sort(iota);
  for (size_t i = 0; i < kMany; ++i) ASSERT_EQ(iota[i], static_cast<double>(i)) << "a permutation";
  EXPECT_GT(Deviation(draw(DType::kFloat32, Fill::Kind::kZeros, 0)), 1);
  EXPECT_GT(Deviation(draw(DType::kInt32, Fill::Kind::kZeros, 0)), 1);
  EXPECT_GT(Deviation(draw(DType::kBool, Fill::Kind::kZeros, 0)), 0.4);
  const auto hundred = draw(DType::kInt32, Fill::Kind::kConstant, 100);
  EXPECT_GE(*std::ranges::min_element(hundred), 50);
  EXPECT_LE(*std::ranges::max_element(hundred), 150);
  EXPECT_GT(Deviation(hundred), 20);
  EXPECT_THAT(draw(DType::kUInt8, Fill::Kind::kConstant, 1), testing::Each(testing::Ge(0)));
}

TEST_F(JudgeFillTest, StatedFillsArePromises) {
  const InputInstance needle{InputFamily::kNeedle, 3, true};
  EXPECT_THAT(Draw(Tensor(DType::kFloat32, {.kind = Fill::Kind::kConstant, .low = 2.5, .path = {}}),
                   needle),
              testing::Each(2.5));
  EXPECT_THAT(
      Draw(Tensor(DType::kFloat16, {.kind = Fill::Kind::kZeros, .low = 9, .path = {}}), needle),
      testing::Each(0));
  const auto iota = Draw(Tensor(DType::kInt32, {.kind = Fill::Kind::kIota, .path = {}}), needle);
  for (size_t i = 0; i < kMany; ++i) ASSERT_EQ(iota[i], static_cast<double>(i));
  const auto indices = Draw(
      Tensor(DType::kInt64, {.kind = Fill::Kind::kUniform, .low = 3, .high = 7, .path = {}}),
      needle);
  EXPECT_EQ(std::set<double>(indices.begin(), indices.end()), (std::set<double>{3, 4, 5, 6}));
}

TEST_F(JudgeFillTest, HostFillsReachTheDevice) {
  const InputInstance needle{InputFamily::kNeedle, 3, true};
  const ArgSpec squares = Tensor(DType::kInt32,
                                 {.kind = Fill::Kind::kGenerator, .path = "i * i % 1000"});
  for (int again = 0; again < 2; ++again) {  // the second time they are remembered
    const auto values = Draw(squares, needle);
    for (size_t i = 0; i < kMany; ++i) ASSERT_EQ(values[i], static_cast<double>(i * i % 1000));
  }
  const auto others = Draw(
      Tensor(DType::kFloat64, {.kind = Fill::Kind::kGenerator, .path = "0.5 - i"}), needle);
  EXPECT_EQ(others[7], -6.5);
}

TEST_F(JudgeFillTest, VariedContentsOfACaptureAreUnpackedOnce) {
  const TemporaryDirectory folder;
  const std::vector<float> ones(kMany, 1.0F);
  capture::BlobStore blobs(folder.path());
  const std::string bytes(reinterpret_cast<const char*>(ones.data()), kMany * sizeof(float));
  const ArgSpec captured = Tensor(DType::kFloat32, {.kind = Fill::Kind::kBlob,
                                                    .path = folder.path().string(),
                                                    .digest = blobs.Put(bytes).value()});
  const InputInstance varied{InputFamily::kVariedFill, 3, false};
  const auto first = Draw(captured, varied);
  EXPECT_GT(Deviation(first), 0.1);
  std::filesystem::remove_all(folder.path());
  EXPECT_EQ(Draw(captured, varied), first);
}

TEST_F(JudgeFillTest, IntegersWithoutAFillAreSmallAndOfBothSignsWherePossible) {
  const InputInstance instance{InputFamily::kLargeLogits, 3, false};
  const auto range = [&](DType dtype) {
    const auto values = Draw(Tensor(dtype), instance);
    return std::pair(*std::ranges::min_element(values), *std::ranges::max_element(values));
  };
  EXPECT_EQ(range(DType::kInt8), std::pair(-8.0, 8.0));
  EXPECT_EQ(range(DType::kInt64), std::pair(-8.0, 8.0));
  EXPECT_EQ(range(DType::kUInt16), std::pair(0.0, 8.0));
  EXPECT_EQ(range(DType::kBool), std::pair(0.0, 1.0));
}

class FingerprintTest : public VirtualGpuTest {};

TEST_F(FingerprintTest, AnyFlippedByteShows) {
  for (size_t bytes : {1u, 3u, 4u, 7u, 4099u}) {
    std::vector<uint8_t> data(bytes);
    Random random(bytes);
    for (uint8_t& byte : data) byte = static_cast<uint8_t>(random.Next());
    const auto buffer = Put(data);
    const uint64_t before = kernels_->Fingerprint(buffer->address(), bytes).value();
    EXPECT_EQ(kernels_->Fingerprint(buffer->address(), bytes).value(), before);
    for (size_t at : {size_t{0}, bytes / 2, bytes - 1}) {
      data[at] ^= 0x10;
      ASSERT_TRUE(gpu_.CopyIn(buffer->address(), std::as_bytes(std::span(data))));
      EXPECT_NE(kernels_->Fingerprint(buffer->address(), bytes).value(), before)
          << at << " of " << bytes;
      data[at] ^= 0x10;
    }
  }
}

TEST_F(FingerprintTest, PlacesMatter) {
  std::vector<uint32_t> data = {1, 2, 3, 4};
  const auto a = Put(data);
  std::swap(data[1], data[2]);
  const auto b = Put(data);
  EXPECT_NE(kernels_->Fingerprint(a->address(), 16).value(),
            kernels_->Fingerprint(b->address(), 16).value());
}

class NudgeTest : public VirtualGpuTest {};

TEST_F(NudgeTest, MovesThreeQuartersByOneUnitAndBack) {
  const std::vector<float> data(4000, 1.5f);
  const auto buffer = Put(data);
  ASSERT_TRUE(kernels_->Nudge(buffer->address(), DType::kFloat32, data.size(), 7));
  const auto nudged = Get<float>(buffer->address(), data.size());
  const auto moved = std::ranges::count(nudged, std::nextafter(1.5f, 2.0f));
  EXPECT_NEAR(static_cast<double>(moved), 3000, 150);
  EXPECT_EQ(std::ranges::count(nudged, 1.5f), 4000 - moved);
  ASSERT_TRUE(kernels_->Nudge(buffer->address(), DType::kFloat32, data.size(), 7));
  EXPECT_EQ(Get<float>(buffer->address(), data.size()), data);
}

TEST_F(NudgeTest, MovesFloat64AndLeavesWhatHasNoDigits) {
  const std::vector<double> data = {1.5, 0, -0.0, INFINITY, -INFINITY, 0x1p-1074, -3};
  const auto buffer = Put(data);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    ASSERT_TRUE(kernels_->Nudge(buffer->address(), DType::kFloat64, data.size(), seed));
    const auto nudged = Get<double>(buffer->address(), data.size());
    for (size_t i = 1; i < 6; ++i) EXPECT_EQ(nudged[i], data[i]);
    EXPECT_NEAR(nudged[0], 1.5, 0x1p-52);
    EXPECT_NEAR(nudged[6], -3, 0x1p-51);
    ASSERT_TRUE(kernels_->Nudge(buffer->address(), DType::kFloat64, data.size(), seed));
    EXPECT_EQ(Get<double>(buffer->address(), data.size()), data);
  }
}

class MaskTest : public VirtualGpuTest {};

TEST_F(MaskTest, HidesEveryValueAndGivesItBack) {
  const std::vector<double> reference(777, 0.25);
  const auto buffer = Put(reference);
  ASSERT_TRUE(kernels_->Mask(buffer->address(), reference.size(), 0x1234567));
  const auto masked = Get<double>(buffer->address(), reference.size());
  EXPECT_EQ(std::ranges::count(masked, 0.25), 0);
  EXPECT_EQ(std::set<double>(masked.begin(), masked.end()).size(), masked.size())
      << "equal values do not look equal";
  ASSERT_TRUE(kernels_->Mask(buffer->address(), reference.size(), 0x1234567));
  EXPECT_EQ(Get<double>(buffer->address(), reference.size()), reference);
}

TEST_F(MaskTest, WidenIsExactForEveryType) {
  const std::pair<DType, std::vector<double>> cases[] = {
      {DType::kFloat64, {0.1, -1e300}},
      {DType::kFloat32, {0x1.fffffep127, 0x1p-149}},
      {DType::kFloat16, {65504, 0x1p-24, -0.333251953125}},
      {DType::kBFloat16, {0x1.fep127, 0x1p-133, -3.140625}},
      {DType::kInt8, {-128, 127}},
      {DType::kInt16, {-32768, 32767}},
      {DType::kInt32, {-2147483648.0, 2147483647.0}},
      {DType::kUInt8, {0, 255}},
      {DType::kUInt16, {0, 65535}},
      {DType::kUInt32, {0, 4294967295.0}},
      {DType::kBool, {0, 1}}};
  for (const auto& [dtype, values] : cases) {
    std::vector<std::byte> raw(values.size() * SizeOf(dtype));
    for (size_t i = 0; i < values.size(); ++i) StoreElement(dtype, raw.data(), i, values[i]);
    const auto data = Put(raw);
    const auto wide = Room(values.size() * sizeof(double));
    ASSERT_TRUE(kernels_->Widen(data->address(), dtype, values.size(), wide->address()));
    EXPECT_EQ(Get<double>(wide->address(), values.size()), values) << Name(dtype);
  }
}

class CompareTest : public VirtualGpuTest {
 protected:
  CompareStats Compare(const std::vector<float>& data, const std::vector<double>& reference,
                       double scale = 0, double element_bound = 1e300, uint64_t key = 0) {
    const auto y = Put(data);
    const auto r = Put(reference);
    if (key) EXPECT_TRUE(kernels_->Mask(r->address(), reference.size(), key));
    return kernels_
        ->Compare({y->address(), DType::kFloat32, r->address(), reference.size(), key, scale,
                   element_bound})
        .value();
  }
  CompareStats CompareHalf(double value, double reference) {
    std::vector<uint16_t> data(1);
    StoreElement(DType::kFloat16, data.data(), 0, value);
    const auto y = Put(data);
    const auto r = Put(std::vector<double>{reference});
    return kernels_->Compare({y->address(), DType::kFloat16, r->address(), 1}).value();
  }
};

// A sum just below the largest number of its type: with an error that the budget allows it may
// become infinite.
TEST_F(CompareTest, AtTheEdgeOfTheTypeAnErrorMayDecide) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto refused = [&](float value, double reference, double bound) {
    return Compare({value}, {reference}, 0, bound).new_nonfinite == 1;
  };
  EXPECT_FALSE(refused(kInfinity, 3.395e38, 0.01));
  EXPECT_FALSE(refused(3.395e38f, 3.41e38, 0.01));
  EXPECT_TRUE(refused(kInfinity, 3.395e38, 1e-4)) << "beyond the bound";
  EXPECT_TRUE(refused(kInfinity, 3e38, 0.01));
  EXPECT_TRUE(refused(3e38f, 3.41e38, 0.01));
  EXPECT_TRUE(refused(-kInfinity, 3.395e38, 0.01)) << "the other sign";
  EXPECT_TRUE(refused(std::numeric_limits<float>::quiet_NaN(), 3.41e38, 0.01));
  EXPECT_TRUE(refused(kInfinity, 3.395e38, 1e300)) << "without a bound";
}

TEST_F(CompareTest, StatisticsAreThoseOfTheHost) {
  Random random(3);
  constexpr size_t kCount = 3001;  // more than one block's worth, no multiple of anything
  std::vector<double> reference(kCount);
  std::vector<float> data(kCount);
  double difference = 0;
  double squares = 0;
  double second_half = 0;
  double sum = 0;
  double worst = 0;
  uint64_t beyond = 0;
  constexpr double kScale = 1.5;
  constexpr double kBound = 1e-3;
  uint64_t first = ~uint64_t{0};
  for (size_t i = 0; i < kCount; ++i) {
    reference[i] = random.Normal();
    data[i] = static_cast<float>(reference[i] * (1 + 2e-3 * random.Normal()));
    const double d = std::abs(static_cast<double>(data[i]) - reference[i]);
    difference += d * d;
    squares += reference[i] * reference[i];
    sum += reference[i];
    if (i >= kCount / 2) second_half += reference[i] * reference[i];
    const double error = d / (std::abs(reference[i]) + kScale);
    worst = std::max(worst, error);
    if (error > kBound) {
      ++beyond;
      first = std::min<uint64_t>(first, i);
    }
  }
  ASSERT_GT(beyond, 0u);
  const CompareStats stats = Compare(data, reference, kScale, kBound, 0xfeed);
  EXPECT_NEAR(stats.squared_difference, difference, 1e-12 * difference);
  EXPECT_NEAR(stats.squared_reference, squares, 1e-12 * squares);
  EXPECT_NEAR(stats.squared_reference_second_half, second_half, 1e-12 * squares);
  EXPECT_NEAR(stats.sum_reference, sum, 1e-9);
  EXPECT_NEAR(stats.worst, worst, 1e-15);
  EXPECT_EQ(stats.beyond, beyond);
  EXPECT_EQ(stats.first_bad, first);
  EXPECT_EQ(stats.finite, kCount);
  EXPECT_EQ(stats.elements, kCount);
}

TEST_F(CompareTest, WithTheWrongKeyNothingFits) {
  const std::vector<double> reference(64, 1.0);
  const auto y = Put(std::vector<float>(64, 1.0f));
  const auto r = Put(reference);
  ASSERT_TRUE(kernels_->Mask(r->address(), 64, 41));
  EXPECT_EQ(kernels_->Compare({y->address(), DType::kFloat32, r->address(), 64, 41})
                .value()
                .RelativeNorm(),
            0);
  const CompareStats wrong =
      kernels_->Compare({y->address(), DType::kFloat32, r->address(), 64, 42}).value();
  EXPECT_FALSE(wrong.RelativeNorm() == 0 && wrong.lost_nan + wrong.new_nonfinite == 0);
}

TEST_F(CompareTest, PoisonIsUnwritten) {
  const Poison poison{77, false};
  const auto y = Room(4 * sizeof(float));
  const auto r = Put(std::vector<double>{1, 2, NAN, 4});
  ASSERT_TRUE(kernels_->FillPoison(y->address(), DType::kFloat32, 4, poison));
  const float written[] = {1, 2};
  ASSERT_TRUE(gpu_.CopyIn(y->address(), std::as_bytes(std::span(written))));
  CompareRequest request{y->address(), DType::kFloat32, r->address(), 4};
  request.poison = poison;
  const CompareStats stats = kernels_->Compare(request).value();
  EXPECT_EQ(stats.unwritten, 2u);
  EXPECT_EQ(stats.first_bad, 2u);
  EXPECT_EQ(stats.finite, 2u);
  EXPECT_EQ(stats.lost_nan, 0u);
  EXPECT_EQ(stats.new_nonfinite, 0u);
  request.poison = Poison{78, false};
  EXPECT_EQ(kernels_->Compare(request).value().unwritten, 0u) << "another run's poison is a number";
}

TEST_F(CompareTest, MinusNanWhereNanBelongsIsRight) {
  std::vector<float> data = {1, 0};
  reinterpret_cast<uint32_t&>(data[1]) = 0xffffffffu;  // what a GPU makes of -NaN
  EXPECT_EQ(Compare(data, {1, NAN}).lost_nan, 0u);
}

TEST_F(CompareTest, AResultThatEqualsThePoisonByChanceIsAResult) {
  const Poison poison{79, false};
  for (DType dtype : {DType::kInt8, DType::kInt32, DType::kFloat16, DType::kFloat8E4M3}) {
    constexpr uint64_t kCount = 300;
    const auto y = Room(kCount * SizeOf(dtype));
    const auto r = Room(kCount * sizeof(double));
    ASSERT_TRUE(kernels_->FillPoison(y->address(), dtype, kCount, poison));
    ASSERT_TRUE(kernels_->Widen(y->address(), dtype, kCount, r->address()));
    CompareRequest request{y->address(), dtype, r->address(), kCount};
    request.poison = poison;
    const CompareStats stats = kernels_->Compare(request).value();
    EXPECT_EQ(stats.unwritten, 0u) << Name(dtype);
    EXPECT_EQ(stats.finite, kCount) << Name(dtype);
  }
}

TEST_F(CompareTest, InfinityIsMetByItselfOnly) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto refused = [&](float value, double reference) {
    return Compare({value}, {reference}, 1, 0.01).new_nonfinite == 1;
  };
  EXPECT_FALSE(refused(kInfinity, INFINITY));
  EXPECT_FALSE(refused(-kInfinity, -INFINITY));
  EXPECT_TRUE(refused(1, INFINITY));
  EXPECT_TRUE(refused(std::numeric_limits<float>::max(), INFINITY));
  EXPECT_TRUE(refused(-kInfinity, INFINITY));
  EXPECT_TRUE(refused(std::numeric_limits<float>::quiet_NaN(), INFINITY));
  EXPECT_FALSE(refused(kInfinity, 1e300)) << "finite in float64, but beyond float32";
  EXPECT_FALSE(refused(std::numeric_limits<float>::max(), 1e300));
  EXPECT_EQ(CompareHalf(65504, INFINITY).new_nonfinite, 1u);
  EXPECT_EQ(CompareHalf(INFINITY, INFINITY).new_nonfinite, 0u);
}

TEST_F(CompareTest, EightBitFloatsSaturateAtInfinity) {
  const auto refused = [&](uint8_t bits, double reference) {
    const auto y = Put(std::vector<uint8_t>{bits});
    const auto r = Put(std::vector<double>{reference});
    CompareRequest request{y->address(), DType::kFloat8E4M3, r->address(), 1};
    request.element_bound = 0.1;
    return kernels_->Compare(request).value().new_nonfinite == 1;
  };
  EXPECT_FALSE(refused(0x7e, INFINITY)) << "448";
  EXPECT_TRUE(refused(0x7d, INFINITY)) << "416";
  EXPECT_TRUE(refused(0x7e, -INFINITY));
}

TEST_F(CompareTest, SixtyFourBitIntegersAreComparedExactly) {
  constexpr int64_t kLarge = int64_t{1} << 62;
  const auto compare = [&](std::vector<int64_t> values, std::vector<int64_t> reference) {
    const auto y = Put(values);
    const auto data = Put(reference);
    const auto r = Room(8 * values.size());
    EXPECT_TRUE(kernels_->Widen(data->address(), DType::kInt64, reference.size(), r->address()));
    EXPECT_EQ(Get<int64_t>(r->address(), reference.size()), reference) << "not through float64";
    EXPECT_TRUE(kernels_->Mask(r->address(), reference.size(), 5));
    CompareRequest request{y->address(), DType::kInt64, r->address(), values.size(), 5};
    request.reference_dtype = DType::kInt64;
    request.element_bound = 0;
    return kernels_->Compare(request).value();
  };
  EXPECT_EQ(compare({kLarge, -3, -kLarge}, {kLarge, -3, -kLarge}).beyond, 0u);
  const CompareStats off = compare({kLarge + 1, -3, -kLarge}, {kLarge, -3, -kLarge});
  EXPECT_EQ(off.beyond, 1u);
  EXPECT_EQ(off.first_bad, 0u);
  EXPECT_DOUBLE_EQ(off.squared_difference, 1);
  EXPECT_EQ(compare({1, 2}, {1, 3}).beyond, 1u);
  EXPECT_EQ(compare({INT64_MIN}, {INT64_MAX}).squared_difference, std::pow(2.0, 128));
}

class PoisonTest : public VirtualGpuTest {
 protected:
  static constexpr uint64_t kCount = 4000;
  std::vector<double> Values(DType dtype, const Poison& poison) {
    const auto memory = Room(kCount * SizeOf(dtype));
    EXPECT_TRUE(kernels_->FillPoison(memory->address(), dtype, kCount, poison));
    const auto raw = Get<std::byte>(memory->address(), kCount * SizeOf(dtype));
    std::vector<double> values(kCount);
    for (size_t i = 0; i < kCount; ++i) values[i] = LoadElement(dtype, raw.data(), i);
    return values;
  }
};

constexpr DType kAllTypes[] = {
    DType::kFloat64, DType::kFloat32,    DType::kFloat16,   DType::kBFloat16, DType::kInt8,
    DType::kInt16,   DType::kInt32,      DType::kInt64,     DType::kUInt8,    DType::kUInt16,
    DType::kUInt32,  DType::kFloat8E4M3, DType::kFloat8E5M2};

TEST_F(PoisonTest, FlippedItDiffersInEveryElement) {
  for (DType dtype : kAllTypes) {
    const std::vector<double> first = Values(dtype, {5, false});
    const std::vector<double> second = Values(dtype, {5, true});
    for (size_t i = 0; i < kCount; ++i) ASSERT_NE(first[i], second[i]) << Name(dtype) << ' ' << i;
    EXPECT_EQ(Values(dtype, {5, false}), first) << "the same stream again";
    EXPECT_NE(Values(dtype, {6, false}), first);
  }
}

TEST_F(PoisonTest, TheHostWritesTheSame) {
  for (DType dtype : kAllTypes) {
    for (const bool flipped : {false, true}) {
      const Poison poison{0xfeed, flipped};
      const size_t bytes = kCount * SizeOf(dtype);
      const auto memory = Room(bytes);
      ASSERT_TRUE(kernels_->FillPoison(memory->address(), dtype, kCount, poison));
      std::vector<std::byte> host(bytes);
      WritePoison(poison, dtype, 0, host);
      EXPECT_EQ(host, Get<std::byte>(memory->address(), bytes)) << Name(dtype);
      WritePoison(poison, dtype, 100, std::span(host).first(SizeOf(dtype)));
      EXPECT_TRUE(std::equal(host.begin(), host.begin() + static_cast<ptrdiff_t>(SizeOf(dtype)),
                             host.begin() + static_cast<ptrdiff_t>(100 * SizeOf(dtype))));
    }
  }
}

// What a kernel might do with an output's old contents shows in many elements.
TEST_F(PoisonTest, NoOperationAbsorbsIt) {
  for (DType dtype : kAllTypes) {
    const std::vector<double> values = Values(dtype, {8, false});
    const auto share = [&](auto holds) {
      return static_cast<double>(std::ranges::count_if(values, holds)) / kCount;
    };
    const bool is_signed = KindOf(dtype) != DTypeKind::kUnsigned;
    EXPECT_EQ(share([](double v) { return std::isfinite(v); }), 1.0) << Name(dtype);
    EXPECT_GT(share([](double v) { return v > 20; }), 0.2) << Name(dtype) << ": max";
    if (is_signed)
      EXPECT_GT(share([](double v) { return v < -20; }), 0.2) << Name(dtype) << ": min";
    EXPECT_GT(share([](double v) { return v != 0 && std::fabs(v) < 100; }), 0.1) << Name(dtype);
  }
}

TEST_F(PoisonTest, ADifferenceOfTwoRunsIsFoundBesideUnwrittenElements) {
  const auto first = Put(std::vector<float>(kCount, 1.0f));
  const auto second = Put(std::vector<float>(kCount, 1.0f));
  const Poison poison{9, false};
  TwoRuns runs{first->address(), second->address(), DType::kFloat32, kCount,
               poison,           poison.Flipped()};
  EXPECT_EQ(kernels_->Difference(runs).value().differing, 0u);
  ASSERT_TRUE(kernels_->FillPoison(first->address(), DType::kFloat32, 10, poison));
  ASSERT_TRUE(kernels_->FillPoison(second->address(), DType::kFloat32, 9, poison.Flipped()));
  const RunDifference found = kernels_->Difference(runs).value();
  EXPECT_EQ(found.unwritten, 9u);
  EXPECT_EQ(found.differing, 1u) << "the tenth was written in the second run only";
  EXPECT_EQ(found.first, 9u);
}

// A kernel's result may equal the poison; what is unwritten changes with the poison.
TEST_F(PoisonTest, ASecondRunTellsUnwrittenFromEqual) {
  const Poison poison{10, false};
  const auto first = Room(kCount);
  const auto wide = Room(8 * kCount);
  ASSERT_TRUE(kernels_->FillPoison(first->address(), DType::kUInt8, kCount, poison));
  EXPECT_EQ(kernels_->Widen(first->address(), DType::kUInt8, kCount, wide->address(), poison),
            kCount);
  auto results = Get<uint8_t>(first->address(), kCount);  // which the second run writes, too
  const auto second = Room(kCount);
  ASSERT_TRUE(kernels_->FillPoison(second->address(), DType::kUInt8, kCount, poison.Flipped()));
  ASSERT_TRUE(gpu_.CopyIn(second->address(), std::as_bytes(std::span(results).first(100))));
  ASSERT_TRUE(kernels_->ConfirmUnwritten(second->address(), DType::kUInt8, kCount, wide->address(),
                                         poison.Flipped()));
  const auto values = Get<double>(wide->address(), kCount);
  for (size_t i = 0; i < 100; ++i) ASSERT_EQ(values[i], results[i]);
  for (size_t i = 100; i < kCount; ++i) ASSERT_TRUE(std::isnan(values[i]));
}

TEST_F(CompareTest, NanMustStayNanAndNothingElseMayBecomeOne) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(Compare({nan, 1}, {NAN, 1}).lost_nan, 0u);
  EXPECT_EQ(Compare({0, 1}, {NAN, 1}).lost_nan, 1u);
  EXPECT_EQ(Compare({INFINITY, 1}, {NAN, 1}).lost_nan, 1u) << "infinity is not NaN";
  EXPECT_EQ(Compare({1, nan}, {1, 1}).new_nonfinite, 1u);
  EXPECT_EQ(Compare({1, INFINITY}, {1, 1}).new_nonfinite, 1u);
  EXPECT_EQ(Compare({1, INFINITY}, {1, 1}).first_bad, 1u);
}

TEST_F(CompareTest, BeyondTheTypesRangeInfinityAndTheLargestNumberAreRight) {
  EXPECT_EQ(CompareHalf(INFINITY, 1e5).new_nonfinite, 0u);
  EXPECT_EQ(CompareHalf(65504, 1e5).new_nonfinite, 0u) << "saturating is honest";
  EXPECT_EQ(CompareHalf(-INFINITY, 1e5).new_nonfinite, 1u);
  EXPECT_EQ(CompareHalf(1000, 1e5).new_nonfinite, 1u);
  EXPECT_EQ(CompareHalf(INFINITY, 65504).new_nonfinite, 1u);
}

// The documented limits of results that are nearly right: in float32 the floors allow 8 u in the
// norm and 16 u in an element; in 16-bit types 2.4 u, where few elements err, or 0.9 u, and 4.2 u.
class UlpTest : public CompareTest {
 protected:
  static constexpr size_t kCount = 2048;
  static constexpr size_t kOne = kCount;  // element of all
  OutputJudgement OffBy(DType dtype, int ulps, size_t every) {
    Random random(17);
    std::vector<double> reference(kCount);
    std::vector<std::byte> raw(kCount * SizeOf(dtype));
    double squares = 0;
    for (size_t i = 0; i < kCount; ++i) {
      StoreElement(dtype, raw.data(), i, random.Normal());
      reference[i] = LoadElement(dtype, raw.data(), i);
      squares += reference[i] * reference[i];
      if (i % every != 5 % every) continue;
      const int either_way = i / every % 2 == 0 ? ulps : -ulps;
      if (SizeOf(dtype) == 4)
        reinterpret_cast<uint32_t*>(raw.data())[i] += static_cast<uint32_t>(either_way);
      else
        reinterpret_cast<uint16_t*>(raw.data())[i] += static_cast<uint16_t>(either_way);
    }
    const auto y = Put(raw);
    const auto r = Put(reference);
    const ErrorBudget budget = BudgetFromBaseline({}, dtype, {});
    const CompareStats stats = kernels_
                                   ->Compare({y->address(), dtype, r->address(), kCount, 0,
                                              std::sqrt(squares / kCount), budget.element})
                                   .value();
    return JudgeOutput("y", stats, budget, false);
  }
};

TEST_F(UlpTest, Float32) {
  EXPECT_EQ(OffBy(DType::kFloat32, 2, 1).kind, VerdictKind::kCorrect) << "about 3 u";
  EXPECT_EQ(OffBy(DType::kFloat32, 8, 1).kind, VerdictKind::kLowPrecision) << "about 12 u";
  EXPECT_EQ(OffBy(DType::kFloat32, 2, kOne).kind, VerdictKind::kCorrect);
  EXPECT_EQ(OffBy(DType::kFloat32, 200, kOne).kind, VerdictKind::kWrongResult)
      << "one element, beyond 16 u";
}

TEST_F(UlpTest, SixteenBits) {
  for (DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    EXPECT_EQ(OffBy(dtype, 1, 4).kind, VerdictKind::kCorrect) << "about 0.75 u in the norm";
    EXPECT_EQ(OffBy(dtype, 1, 1).kind, VerdictKind::kLowPrecision)
        << "about 1.5 u, as by eight roundings more";
    EXPECT_EQ(OffBy(dtype, 2, 64).kind, VerdictKind::kCorrect) << "few elements by 4 u at most";
    EXPECT_EQ(OffBy(dtype, 2, 1).kind, VerdictKind::kLowPrecision) << "about 3 u in the norm";
    EXPECT_EQ(OffBy(dtype, 2, kOne).kind, VerdictKind::kCorrect) << "one element by 4 u at most";
    EXPECT_EQ(OffBy(dtype, 40, kOne).kind, VerdictKind::kWrongResult);
  }
}

}  // namespace
}  // namespace atunner
