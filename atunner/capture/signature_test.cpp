#include "atunner/capture/signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace atunner::capture {
namespace {

using testing::ElementsAre;

TEST(Signatures, AreReadFromDemangledNames) {
  const Signature one = ParseSignature(
      "void ns::blur<float, 3>(float const*, Image<int, 2>*, int)");
  EXPECT_EQ(one.name, "ns::blur");
  EXPECT_THAT(one.template_args, ElementsAre("float", "3"));
  EXPECT_THAT(one.parameters, ElementsAre("float const*", "Image<int, 2>*", "int"));
  EXPECT_EQ(ParseSignature("add").name, "add");
  EXPECT_THAT(ParseSignature("(anonymous namespace)::k(int*)").parameters, ElementsAre("int*"));
  EXPECT_EQ(PointeeOf("float const*"), DType::kFloat32);
  EXPECT_EQ(PointeeOf("float4 const* __restrict__"), DType::kFloat32);
  EXPECT_EQ(PointeeOf("unsigned long long*"), DType::kInt64);
  EXPECT_EQ(PointeeOf("__half*"), DType::kFloat16);
  EXPECT_EQ(PointeeOf("Image*"), std::nullopt);
  EXPECT_EQ(PointeeOf("float"), std::nullopt);
}

}  // namespace
}  // namespace atunner::capture
