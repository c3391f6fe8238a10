#include "atunner/verify/own_size/written_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace atunner {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<ElementRange> Ranges(std::vector<ElementRange> ranges) { return ranges; }

TEST(WrittenValues, CommonAndRemainingElements) {
  const auto all = Ranges({{0, 10}, {20, 30}, {40, 41}});
  const auto some = Ranges({{2, 4}, {8, 25}, {29, 30}, {40, 50}});
  EXPECT_THAT(Common(all, some),
              ElementsAre(ElementRange{2, 4}, ElementRange{8, 10}, ElementRange{20, 25},
                          ElementRange{29, 30}, ElementRange{40, 41}));
  EXPECT_THAT(Without(all, some),
              ElementsAre(ElementRange{0, 2}, ElementRange{4, 8}, ElementRange{25, 29}));
  EXPECT_THAT(Without(all, all), IsEmpty());
  EXPECT_EQ(Without(all, {}), all);
  EXPECT_EQ(SizeOf(all), 21u);
}

TEST(WrittenValues, AnElementCountsIfAllItsBytesAreWritten) {
  ArgSpec arg;
  arg.dtype = DType::kFloat32;
  TaskBuffers::Tensor tensor;
  tensor.spec = &arg;
  tensor.address = 1024;
  tensor.shape.bytes = 400;
  const std::vector<AddressRange> written = {{900, 1026}, {1030, 1048}, {1400, 1500}};
  EXPECT_THAT(WrittenElements(tensor, written),
              ElementsAre(ElementRange{2, 6}, ElementRange{94, 100}));
}

WrittenValues Floats(std::vector<float> values, std::vector<ElementRange> elements) {
  WrittenValues made{DType::kFloat32, std::move(elements), {}};
  const auto bytes = std::as_bytes(std::span(values));
  made.values.assign(bytes.begin(), bytes.end());
  return made;
}

TEST(WrittenValues, APartHasTheValuesOfItsElements) {
  const auto all = Floats({1, 2, 3, 4, 5}, {{10, 13}, {20, 22}});
  const auto part = all.Part(Ranges({{11, 13}, {21, 22}}));
  EXPECT_EQ(part.values, Floats({2, 3, 5}, {}).values);
}

TEST(WrittenValues, SpecialValuesMatchOnlyThemselves) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const auto wrong = [](float y, float r) {
    return CompareElements(Floats({y, 1}, {{0, 2}}), Floats({r, 1}, {{0, 2}}), {}, 0).wrong;
  };
  EXPECT_EQ(wrong(kNan, kNan), 0u);
  EXPECT_EQ(wrong(kInf, kInf), 0u);
  EXPECT_EQ(wrong(-kInf, kInf), 1u);
  EXPECT_EQ(wrong(3e38f, kInf), 1u);
  EXPECT_EQ(wrong(1, kNan), 1u);
  EXPECT_EQ(wrong(kNan, 1), 1u);
  EXPECT_EQ(wrong(kInf, 1), 1u);
}

TEST(WrittenValues, BoundsAreThoseOfTheTaskIfItStatesOne) {
  const auto right = Floats({1, 1, 1, 1}, {{4, 8}});
  const auto off = Floats({1, 1, 1.01f, 1}, {{4, 8}});
  const ElementComparison derived = CompareElements(off, right, {}, 0);
  EXPECT_EQ(derived.wrong, 1u);
  EXPECT_EQ(derived.first_wrong, 6u);
  EXPECT_EQ(CompareElements(off, right, {}, 2e-2).wrong, 0u);
  Tolerance wide;
  wide.relative = 2e-2;
  EXPECT_EQ(CompareElements(off, right, wide, 0).wrong, 0u);
  wide.relative = 1e-6;
  EXPECT_EQ(CompareElements(off, right, wide, 1).wrong, 1u) << "the task's own goes first";
}

TEST(WrittenValues, IntegersAreEqualOrWrong) {
  WrittenValues a{DType::kInt64, {{0, 1}}, std::vector<std::byte>(8, std::byte{1})};
  WrittenValues b = a;
  EXPECT_EQ(CompareElements(a, b, {}, 1).wrong, 0u);
  b.values[0] = std::byte{2};
  EXPECT_EQ(CompareElements(a, b, {}, 1).wrong, 1u) << "beyond the 53 bits of a double";
}

}  // namespace
}  // namespace atunner
