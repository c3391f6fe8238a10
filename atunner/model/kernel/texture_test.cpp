#include "atunner/model/kernel/texture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace atunner {
namespace {

TextureSpec Good() {
  TextureSpec spec;
  spec.dtype = DType::kUInt8;
  spec.channels = 4;
  spec.width = 8;
  spec.height = 4;
  return spec;
}

TEST(Texture, BytesCountAllTexels) {
  EXPECT_TRUE(Check(Good()).has_value());
  EXPECT_EQ(Good().Bytes(), 8u * 4 * 4);
}

TEST(Texture, RulesAreNamed) {
  using Shape = TextureSpec::Shape;
  const std::pair<const char*, void (*)(TextureSpec&)> broken[] = {
      {"textures hold", [](TextureSpec& s) { s.dtype = DType::kFloat64; }},
      {"1, 2 or 4 channels", [](TextureSpec& s) { s.channels = 3; }},
      {"at least one texel", [](TextureSpec& s) { s.width = 0; }},
      {"at most 32768", [](TextureSpec& s) { s.width = 40000; }},
      {"height 1", [](TextureSpec& s) { s.shape = Shape::k1D; }},
      {"depth 1", [](TextureSpec& s) { s.depth = 2; }},
      {"whole coordinates",
       [](TextureSpec& s) { s.shape = Shape::kLinear, s.height = 1, s.unit_coordinates = true; }},
      {"six square faces", [](TextureSpec& s) { s.shape = Shape::kCube, s.depth = 6; }},
      {"six square faces each",
       [](TextureSpec& s) { s.shape = Shape::kCubeLayered, s.width = s.height, s.depth = 8; }},
      {"read as fractions", [](TextureSpec& s) { s.dtype = DType::kInt32, s.unit_values = true; }},
      {"blended as fractions only", [](TextureSpec& s) { s.linear = true; }},
      {"repeat where", [](TextureSpec& s) { s.wrap[1] = TextureSpec::Wrap::kMirror; }},
  };
  for (const auto& [rule, breaks] : broken) {
    TextureSpec spec = Good();
    breaks(spec);
    const Status status = Check(spec);
    ASSERT_FALSE(status.has_value()) << rule;
    EXPECT_THAT(status.error().what, testing::HasSubstr(rule));
  }
}

TEST(Texture, IsWrittenAsText) {
  const auto plain = ParseTexture("f32[64,32]");
  ASSERT_TRUE(plain) << plain.error().ToString();
  EXPECT_EQ(plain->width, 64u);
  EXPECT_EQ(plain->height, 32u);
  EXPECT_EQ(plain->shape, TextureSpec::Shape::k2D);
  const auto all = ParseTexture("u8x4[16,8,4] linear unit fractions mirror");
  ASSERT_TRUE(all) << all.error().ToString();
  EXPECT_EQ(all->channels, 4u);
  EXPECT_EQ(all->shape, TextureSpec::Shape::k3D);
  EXPECT_TRUE(all->linear && all->unit_coordinates && all->unit_values);
  EXPECT_EQ(all->wrap[2], TextureSpec::Wrap::kMirror);
  EXPECT_EQ(ParseTexture("f32[100] buffer")->shape, TextureSpec::Shape::kLinear);
  for (const char* wrong :
       {"", "f32", "f32[", "f32[64", "f32[64,]", "f32[1,2,3,4]", "f32x3[4]", "f33[4]",
        "f32[4] soft", "f32[-4]", "f32x[4]", "f32[0]", "f32[4] repeat", "f32x4[32768,32768,2048]"})
    EXPECT_FALSE(ParseTexture(wrong)) << wrong;
}

TEST(Texture, RandomTexelsAreTheSameEveryTime) {
  const TextureSpec spec = ParseTexture("f32[8,8]").value();
  const auto texels = RandomTexels(spec);
  EXPECT_EQ(texels.size(), spec.Bytes());
  EXPECT_EQ(texels, RandomTexels(spec));
}

}  // namespace
}  // namespace atunner
