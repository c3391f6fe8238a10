#include "atunner/capture/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace atunner::capture {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

template <class T>
std::string BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <class T>
Comparison CompareAs(const std::vector<T>& original, const std::vector<T>& tuned, Element element,
                     double tolerance = 1e-5) {
  const std::string a = BytesOf(original), b = BytesOf(tuned), before(a.size(), '\0');
  return Compare({before, a, b}, element, tolerance);
}

TEST(Comparisons, TypesComeFromTheSignature) {
  EXPECT_THAT(PointedTypes("scale(float*, int const*, Pair*, float)"),
              ElementsAre(Element::kFloat, Element::kExact, Element::kUnknown, Element::kUnknown));
  EXPECT_THAT(PointedTypes("void f<A<int, 2>, g(int)>(A<float, 3>, double2 volatile*, __half*)"),
              ElementsAre(Element::kUnknown, Element::kDouble, Element::kHalf));
  EXPECT_THAT(PointedTypes("f(unsigned long long*, uchar4*, float (*) [3])"),
              ElementsAre(Element::kExact, Element::kExact, Element::kUnknown));
  EXPECT_THAT(PointedTypes("f(float**)"), ElementsAre(Element::kUnknown));
  EXPECT_THAT(PointedTypes("scale"), IsEmpty());
  EXPECT_THAT(PointedTypes(")"), IsEmpty());
}

TEST(Comparisons, EqualBitsAreEqualWhateverTheyAre) {
  const Comparison same = CompareAs<float>({NAN, 1}, {NAN, 1}, Element::kExact);
  EXPECT_TRUE(same.equal && same.accepted);
}

TEST(Comparisons, TheErrorIsRelativeToTheLargestResult) {
  const Comparison close = CompareAs<float>({1000, 1}, {1000, 1.005f}, Element::kFloat);
  EXPECT_FALSE(close.equal);
  EXPECT_TRUE(close.accepted);
  EXPECT_NEAR(close.error, 5e-6, 1e-7);
  EXPECT_EQ(close.at, 4u);
  EXPECT_FALSE(CompareAs<float>({1000, 1}, {1000, 1.02f}, Element::kFloat).accepted);
  EXPECT_TRUE(CompareAs<float>({1000, 1}, {1000, 1.02f}, Element::kFloat, 1e-4).accepted);
  EXPECT_TRUE(CompareAs<double>({3, 1}, {3, 1 + 1e-6}, Element::kDouble).accepted);
  EXPECT_FALSE(CompareAs<double>({0, 0}, {0, 1e-300}, Element::kDouble).accepted);
}

TEST(Comparisons, MemoryThatNoKernelWroteDoesNotWidenTheTolerance) {
  const std::string before = BytesOf<float>({1e9f, 0}), a = BytesOf<float>({1e9f, 1}),
                    b = BytesOf<float>({1e9f, 2});
  EXPECT_FALSE(Compare({before, a, b}, Element::kFloat, 1e-5).accepted);
}

TEST(Comparisons, InfinitiesAndNansMustAgree) {
  EXPECT_FALSE(CompareAs<float>({INFINITY, 1}, {1, 1}, Element::kFloat).accepted);
  EXPECT_FALSE(CompareAs<float>({NAN, 1}, {1, 1}, Element::kFloat).accepted);
  EXPECT_TRUE(CompareAs<float>({NAN, 1}, {-NAN, 1}, Element::kFloat).accepted);
}

TEST(Comparisons, SixteenBitTypesRoundMore) {
  EXPECT_TRUE(CompareAs<uint16_t>({0x3c00}, {0x3c01}, Element::kHalf).accepted);
  EXPECT_FALSE(CompareAs<uint16_t>({0x3c00}, {0x3c04}, Element::kHalf).accepted);
  EXPECT_TRUE(CompareAs<uint16_t>({0x3f80}, {0x3f81}, Element::kBFloat16).accepted);
  EXPECT_FALSE(CompareAs<uint16_t>({0x3f80}, {0x3f84}, Element::kBFloat16).accepted);
  EXPECT_FALSE(CompareAs<uint16_t>({0x7c00}, {0x3c00}, Element::kHalf).accepted);
}

TEST(Comparisons, UnknownNumbersAreFloatsIfTheyLookLikeThat) {
  EXPECT_TRUE(CompareAs<float>({10, 2, 0}, {10, 2.00001f, 0}, Element::kUnknown).accepted);
  EXPECT_TRUE(CompareAs<double>({1, 1 / 3.}, {1, 1 / 3. + 1e-7}, Element::kUnknown).accepted);
  EXPECT_FALSE(CompareAs<int>({10, 2}, {10, 3}, Element::kUnknown).accepted) << "small integers";
  EXPECT_FALSE(CompareAs<int>({10, 2}, {10, 3}, Element::kExact).accepted);
  std::vector<uint32_t> hashes(100);
  for (uint32_t i = 0; i < 100; ++i) hashes[i] = i * 0x9e3779b9u;
  std::vector<uint32_t> other = hashes;
  other[50] ^= 0x00400000;
  EXPECT_FALSE(CompareAs(hashes, other, Element::kUnknown).accepted) << "bits of any magnitude";
}

TEST(Comparisons, BytesBehindTheLastNumberMustBeEqual) {
  EXPECT_FALSE(CompareAs<char>({0, 0, 0, 1, 2}, {0, 0, 0, 1, 3}, Element::kFloat).accepted);
}

}  // namespace
}  // namespace atunner::capture
