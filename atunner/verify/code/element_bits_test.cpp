#include "atunner/verify/code/element_bits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace atunner {
namespace {

double Next(DType dtype, double value, bool larger) {
  const auto bits = Neighbour(dtype, ElementBits(dtype, value), larger);
  return bits ? ElementOf(dtype, *bits) : std::nan("");
}

TEST(ElementBits, NeighboursOfFloatsAreOneUnitAway) {
  EXPECT_EQ(Next(DType::kFloat32, 300, true), std::nextafter(300.0f, 1e9f));
  EXPECT_EQ(Next(DType::kFloat32, 300, false), std::nextafter(300.0f, 0.0f));
  EXPECT_EQ(Next(DType::kFloat32, -300, true), -std::nextafter(300.0f, 0.0f));
  EXPECT_EQ(Next(DType::kFloat32, 0, false), -std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(Next(DType::kFloat64, 1, false), std::nextafter(1.0, 0.0));
  EXPECT_EQ(Next(DType::kFloat16, 1, true), 1 + 0x1p-10);
  EXPECT_EQ(Next(DType::kBFloat16, 1, false), 1 - 0x1p-8);
  EXPECT_EQ(Next(DType::kFloat16, 65504, true), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(Next(DType::kFloat32, std::numeric_limits<double>::infinity(), true)));
  EXPECT_TRUE(std::isnan(Next(DType::kFloat32, std::nan(""), true)));
}

TEST(ElementBits, NeighboursOfIntegersEndAtTheType) {
  EXPECT_EQ(Next(DType::kInt8, -1, true), 0);
  EXPECT_EQ(Next(DType::kInt8, 0, false), -1);
  EXPECT_TRUE(std::isnan(Next(DType::kInt8, 127, true)));
  EXPECT_TRUE(std::isnan(Next(DType::kInt32, -0x1p31, false)));
  EXPECT_TRUE(std::isnan(Next(DType::kUInt16, 0, false)));
  EXPECT_TRUE(std::isnan(Next(DType::kBool, 1, true)));
  EXPECT_EQ(Neighbour(DType::kInt64, uint64_t{1} << 53, true), (uint64_t{1} << 53) + 1);
}

TEST(ElementBits, TheLargestBelowABoundIsOfTheType) {
  EXPECT_EQ(LargestBelow(DType::kInt32, 7), 6);
  EXPECT_EQ(LargestBelow(DType::kInt32, 6.5), 6);
  EXPECT_EQ(LargestBelow(DType::kFloat32, 1), 1 - 0x1p-24);
  EXPECT_EQ(LargestBelow(DType::kBFloat16, 1), 1 - 0x1p-8);
  EXPECT_LT(LargestBelow(DType::kFloat32, 0.1), 0.1);
  EXPECT_LT(LargestBelow(DType::kFloat32, -0.1), -0.1);
}

}  // namespace
}  // namespace atunner
