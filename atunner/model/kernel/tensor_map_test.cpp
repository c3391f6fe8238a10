#include "atunner/model/kernel/tensor_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace atunner {
namespace {

TensorMapSpec Good() {
  TensorMapSpec spec;
  spec.dtype = DType::kFloat16;
  spec.address = 1024;
  spec.dims = {100, 50};
  spec.strides = {208};
  spec.box = {64, 8};
  spec.swizzle_bytes = 128;
  return spec;
}

TEST(TensorMap, BoxBytesCountWhatIsCopied) {
  TensorMapSpec spec = Good();
  EXPECT_TRUE(Check(spec).has_value());
  EXPECT_EQ(spec.BoxBytes(), 64u * 8 * 2);
  spec.element_strides = {2, 3};  // the innermost one does not count
  EXPECT_EQ(spec.BoxBytes(), 64u * 3 * 2);
}

TEST(TensorMap, RulesOfTheDriverAreNamed) {
  const std::pair<const char*, void (*)(TensorMapSpec&)> broken[] = {
      {"one to five dimensions", [](TensorMapSpec& s) { s.dims.assign(6, 1); }},
      {"do not fit the 2 dimensions", [](TensorMapSpec& s) { s.box.pop_back(); }},
      {"do not fit the 2 dimensions", [](TensorMapSpec& s) { s.element_strides = {1}; }},
      {"address is no multiple of 16", [](TensorMapSpec& s) { s.address = 8; }},
      {"length of dimension 1", [](TensorMapSpec& s) { s.dims[1] = 0; }},
      {"box's length of dimension 1", [](TensorMapSpec& s) { s.box[1] = 257; }},
      {"stride of dimension 1", [](TensorMapSpec& s) { s.strides[0] = 200; }},
      {"element stride of dimension 1", [](TensorMapSpec& s) { s.element_strides = {1, 9}; }},
      {"innermost length is no multiple of 16 bytes", [](TensorMapSpec& s) { s.box[0] = 60; }},
      {"32, 64 or 128", [](TensorMapSpec& s) { s.swizzle_bytes = 16; }},
      {"more than the swizzled 64", [](TensorMapSpec& s) { s.swizzle_bytes = 64; }},
      {"only floats", [](TensorMapSpec& s) { s.dtype = DType::kInt16, s.fill_nan = true; }},
  };
  for (const auto& [message, change] : broken) {
    TensorMapSpec spec = Good();
    change(spec);
    const Status status = Check(spec);
    ASSERT_FALSE(status.has_value()) << message;
    EXPECT_THAT(status.error().ToString(), testing::HasSubstr(message));
  }
}

TEST(TensorMap, PixelsOfImages) {
  TensorMapSpec good = Good();
  good.dims = {64, 9, 7, 3};
  good.strides = {128, 1152, 8064};
  good.box = {64, 1000};
  good.im2col = PixelCorners{{-1, -128}, {0, 127}};
  EXPECT_TRUE(Check(good).has_value());
  good.element_strides = {1, 2, 2, 1};
  EXPECT_EQ(good.BoxBytes(), 64u * 1000 * 2);
  const std::pair<const char*, void (*)(TensorMapSpec&)> broken[] = {
      {"three to five dimensions", [](TensorMapSpec& s) { s.im2col->upper.pop_back(); }},
      {"not within -128 and 127", [](TensorMapSpec& s) { s.im2col->upper[0] = 128; }},
      {"pixels not within 1 and 1024", [](TensorMapSpec& s) { s.box[1] = 1025; }},
      {"do not fit the 4 dimensions", [](TensorMapSpec& s) { s.box.push_back(1); }},
  };
  for (const auto& [message, change] : broken) {
    TensorMapSpec spec = good;
    change(spec);
    const Status status = Check(spec);
    ASSERT_FALSE(status.has_value()) << message;
    EXPECT_THAT(status.error().ToString(), testing::HasSubstr(message));
  }
}

}  // namespace
}  // namespace atunner
