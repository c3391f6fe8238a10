#include "atunner/graph/match/convolution.h"

#include <gtest/gtest.h>

#include "atunner/graph/library/library.h"
#include "atunner/graph/rewrite/rewrite.h"
#include "atunner/graph/text.h"

namespace atunner::graph {
namespace {

std::optional<ConvForm> FormOf(const char* name, const std::vector<std::vector<int64_t>>& shapes,
                               Attributes attributes) {
  const Found found = *FindInLibrary(name);
  const auto built = Build(found,
                           {DType::kBFloat16, shapes, std::move(attributes), !found.backward});
  EXPECT_TRUE(built.has_value()) << built.error().ToString();
  return ConvFormOf(FuseMaps(*built));
}
Attributes Of(int64_t stride, int64_t padding, int64_t dilation = 1, int64_t groups = 1) {
  return {{"stride", stride}, {"padding", padding}, {"dilation", dilation}, {"groups", groups}};
}

TEST(Convolution, IsFoundWithItsGroupsAndStrides) {
  const auto form = FormOf("conv", {{5, 12, 20, 30}, {8, 6, 3, 5}}, Of(2, 1, 2, 2));
  ASSERT_TRUE(form.has_value());
  EXPECT_EQ(form->images.ToString(), "rows");
  EXPECT_EQ(form->groups, 2);
  EXPECT_EQ(form->channels, 6);
  EXPECT_EQ(form->filters, 4);
  const ConvAxis& w = form->axes[2];
  EXPECT_EQ(form->axes[0].in, 1);
  EXPECT_EQ((std::array{w.in, w.out, w.taps, w.stride, w.dilation, w.shift, w.inner}),
            (std::array<int64_t, 7>{30, 12, 5, 2, 2, -1, 1}));
  EXPECT_EQ(form->x.channel, 600);
  EXPECT_EQ(form->x.group, 3600);
  EXPECT_EQ(form->w.filter, 90);
}

TEST(Convolution, OfChannelsLastHasItsChannelsSideBySide) {
  Attributes attributes = Of(1, 1);
  attributes["channels_last"] = true;
  const auto form = FormOf("conv", {{2, 8, 9, 16}, {4, 3, 3, 16}}, attributes);
  ASSERT_TRUE(form.has_value());
  EXPECT_EQ(form->x.channel, 1);
  EXPECT_EQ(form->y.filter, 1);
  EXPECT_EQ(form->w.channel, 1);
  EXPECT_EQ(form->axes[1].x, 9 * 16);
}

TEST(Convolution, TransposedIsOneOfPhases) {
  const auto form = FormOf("conv_transpose", {{2, 8, 5}, {8, 4, 4}}, Of(2, 1));
  ASSERT_TRUE(form.has_value());
  EXPECT_EQ(form->Phases(), 2);
  EXPECT_EQ(form->channels, 8);
  EXPECT_EQ(form->filters, 4);
  EXPECT_EQ(form->axes[2].shift, -2);
  EXPECT_EQ(form->axes[2].w, -1);
  EXPECT_EQ(form->w.base, 3);
}

TEST(Convolution, GradientsByTheImageAreToo) {
  Attributes attributes = Of(2, 1);
  attributes["wrt"] = std::string("x");
  const auto form = FormOf("conv_backward", {{2, 16, 9, 9}, {8, 16, 3, 3}}, attributes);
  ASSERT_TRUE(form.has_value());
  EXPECT_EQ(form->x.name, "dy");
  EXPECT_EQ(form->channels, 8);
  EXPECT_EQ(form->filters, 16);
  EXPECT_EQ(form->Phases(), 4);
  const auto point = FormOf("conv_backward", {{2, 16, 9, 9}, {8, 16, 1, 1}},
                            {{"stride", int64_t{2}}, {"wrt", std::string("x")}});
  ASSERT_TRUE(point.has_value());
  EXPECT_EQ(point->axes[2].inner, 2);
}

// Images are summed as channels are, and pixels of the result's gradient as taps; channels are
// images.
TEST(Convolution, GradientsByTheFilterAreToo) {
  Attributes attributes = Of(2, 1, 1, 2);
  attributes["wrt"] = std::string("w");
  const auto form = FormOf("conv_backward", {{5, 12, 20, 30}, {8, 6, 3, 5}}, attributes);
  ASSERT_TRUE(form.has_value());
  EXPECT_EQ(form->images.ToString(), "6");
  EXPECT_EQ((std::array{form->groups, form->channels, form->filters}),
            (std::array<int64_t, 3>{2, 5, 4}));
  const ConvAxis& w = form->axes[2];
  EXPECT_EQ((std::array{w.in, w.out, w.taps, w.stride, w.dilation, w.shift, w.inner}),
            (std::array<int64_t, 7>{30, 5, 14, 1, 2, -1, 1}));
  EXPECT_EQ((std::array{form->x.image, form->x.group, form->x.channel}),
            (std::array<int64_t, 3>{600, 3600, 7200}));
  EXPECT_EQ((std::array{form->y.image, form->y.group, form->y.filter}),
            (std::array<int64_t, 3>{15, 360, 90}));
  EXPECT_EQ((std::array{form->w.group, form->w.filter, form->w.channel}),
            (std::array<int64_t, 3>{560, 140, 1120}));
}

TEST(Convolution, GradientsByAPointMeetEveryPixelOnce) {
  Attributes attributes = Of(2, 0);
  attributes["wrt"] = std::string("w");
  const auto form = FormOf("conv_backward", {{5, 16, 8, 10}, {24, 16, 1, 1}}, attributes);
  ASSERT_TRUE(form.has_value());
  EXPECT_EQ(form->x.name, "x");
  EXPECT_EQ((std::array{form->channels, form->filters}), (std::array<int64_t, 2>{5, 24}));
  const ConvAxis& w = form->axes[2];
  EXPECT_EQ((std::array{w.in, w.out, w.taps, w.dilation, w.x, w.w}),
            (std::array<int64_t, 6>{10, 1, 5, 2, 1, 1}));
}

TEST(Convolution, OtherGraphsAreNone) {
  EXPECT_FALSE(FormOf("batched_matmul", {{2, 3, 4}, {2, 4, 5}}, {}).has_value());
  EXPECT_FALSE(FormOf("softmax", {{4, 8}}, {}).has_value());
  EXPECT_FALSE(FormOf("separable_conv", {{1, 2, 5, 4}, {2, 1, 2, 3}}, {{"channels", int64_t{3}}})
                   .has_value());
}

}  // namespace
}  // namespace atunner::graph
