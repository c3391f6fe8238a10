#include "atunner/verify/inputs/host_fill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "atunner/base/files.h"

namespace atunner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ArgSpec Argument(DType dtype, Fill::Kind kind, const std::string& source) {
  ArgSpec arg;
  arg.name = "x";
  arg.dtype = dtype;
  arg.fill.kind = kind;
  arg.fill.path = source;
  return arg;
}

template <class T>
std::vector<T> Elements(const Result<std::vector<std::byte>>& data) {
  EXPECT_TRUE(data) << data.error().ToString();
  std::vector<T> elements(data->size() / sizeof(T));
  std::memcpy(elements.data(), data->data(), data->size());
  return elements;
}

TEST(HostFill, EvaluatesAnExpressionOfTheIndex) {
  const ArgSpec floats = Argument(DType::kFloat32, Fill::Kind::kGenerator,
                                  "(i//4) * 0.5 if i%4 < 3 else -1");
  EXPECT_THAT(Elements<float>(HostFill(floats, 6)), ElementsAre(0, 0, 0, -1, 0.5f, 0.5f));
  const ArgSpec bytes = Argument(DType::kUInt8, Fill::Kind::kGenerator, "(37 * i + 3) % 251");
  EXPECT_THAT(Elements<uint8_t>(HostFill(bytes, 3)), ElementsAre(3, 40, 77));
}

TEST(HostFill, SaysWhereAnExpressionHasNoValue) {
  const auto data = HostFill(Argument(DType::kInt32, Fill::Kind::kGenerator, "12 // (i - 2)"), 4);
  ASSERT_FALSE(data);
  EXPECT_THAT(data.error().ToString(), HasSubstr("the fill of 'x' at i = 2"));
}

TEST(HostFill, ReadsRawElements) {
  TemporaryDirectory folder;
  const std::vector<int32_t> written = {5, -7, 9};
  const std::string file = (folder.path() / "data.bin").string();
  ASSERT_TRUE(
      WriteFileAtomic(file, std::string(reinterpret_cast<const char*>(written.data()), 12)));
  const ArgSpec arg = Argument(DType::kInt32, Fill::Kind::kFile, file);
  EXPECT_EQ(Elements<int32_t>(HostFill(arg, 3)), written);
  // A smaller problem reads the first part of the file.
  EXPECT_THAT(Elements<int32_t>(HostFill(arg, 2)), ElementsAre(5, -7));
  const auto more = HostFill(arg, 4);
  ASSERT_FALSE(more);
  EXPECT_THAT(more.error().ToString(), HasSubstr("holds 12 bytes, argument 'x' has 16"));
  EXPECT_FALSE(HostFill(Argument(DType::kInt32, Fill::Kind::kFile, file + ".missing"), 1));
}

/// Fills with indices follow the problem's sizes.
TEST(HostFill, IndicesAndOffsetsEndWhereTheSizesSay) {
  KernelSpec spec;
  spec.attributes["width"] = int64_t{4};
  const ArgSpec indices = Argument(DType::kInt32, Fill::Kind::kIndices, "n // width");
  const auto uniform = BindFill(indices, spec, {{"n", 100}}, 10);
  ASSERT_TRUE(uniform) << uniform.error().ToString();
  EXPECT_EQ(uniform->kind, Fill::Kind::kUniform);
  EXPECT_EQ(uniform->low, 0);
  EXPECT_EQ(uniform->high, 25);
  ArgSpec offsets = Argument(DType::kInt32, Fill::Kind::kOffsets, "nnz");
  for (const int64_t nnz : {0, 5, 1000, 12345}) {
    for (const uint64_t elements : {1, 2, 9, 1001}) {
      ArgSpec bound = offsets;
      const auto fill = BindFill(offsets, spec, {{"nnz", nnz}}, static_cast<int64_t>(elements));
      ASSERT_TRUE(fill) << fill.error().ToString();
      bound.fill = *fill;
      const auto values = Elements<int32_t>(HostFill(bound, elements));
      EXPECT_EQ(values.front(), 0);
      EXPECT_TRUE(std::ranges::is_sorted(values));
      EXPECT_EQ(values.back(), elements == 1 ? 0 : nnz);
    }
  }
  const auto unknown = BindFill(offsets, spec, {{"n", 3}}, 3);
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().ToString(), HasSubstr("the fill of 'x'"));
  EXPECT_FALSE(BindFill(offsets, spec, {{"nnz", -1}}, 3));
}

TEST(Varying, FloatsChangeAsOtherTypesDo) {
  const std::vector<float> singles(100, 3.0F);
  const std::vector<double> doubles(100, 3.0);
  std::vector<std::byte> of_singles(400), of_doubles(800);
  std::memcpy(of_singles.data(), singles.data(), of_singles.size());
  std::memcpy(of_doubles.data(), doubles.data(), of_doubles.size());
  Vary(DType::kFloat32, 5, of_singles);
  Vary(DType::kFloat64, 5, of_doubles);
  const auto small = Elements<float>(of_singles);
  const auto large = Elements<double>(of_doubles);
  for (size_t i = 0; i < 100; ++i) {
    ASSERT_EQ(small[i], static_cast<float>(large[i])) << i;
    ASSERT_NEAR(large[i], 3, 0.75);
  }
  EXPECT_NE(small[0], small[1]);
}

}  // namespace
}  // namespace atunner
