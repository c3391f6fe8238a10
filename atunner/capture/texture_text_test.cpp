#include "atunner/capture/texture_text.h"

#include <gtest/gtest.h>

namespace atunner::capture {
namespace {

TEST(TextureText, IsReadAgain) {
  for (const char* text : {"float32[64,32] linear unit repeat", "uint8x4[640,480] fractions",
                           "float32[1024] buffer", "int16[7,5,3] border", "float16x2[9]"}) {
    const auto spec = ParseTexture(text);
    ASSERT_TRUE(spec) << text;
    EXPECT_EQ(TextureText(*spec), text);
  }
}

TEST(TextureText, LayersAndDifferentDirectionsHaveNone) {
  TextureSpec spec = ParseTexture("float32[8,8] unit repeat").value();
  spec.wrap[1] = TextureSpec::Wrap::kClamp;
  EXPECT_EQ(TextureText(spec), "");
  spec = ParseTexture("float32[8,8]").value();
  spec.shape = TextureSpec::Shape::k2DLayered;
  EXPECT_EQ(TextureText(spec), "");
}

}  // namespace
}  // namespace atunner::capture
