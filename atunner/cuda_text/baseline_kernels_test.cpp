// The texts of baseline kernels. Their results are tested in atunner/operators, on the virtual GPU.
#include "atunner/cuda_text/baseline_kernels.h"

#include "atunner/cuda_text/cuda_text.h"
#include "atunner/graph/graph_support_test.h"

namespace atunner::graph {
namespace {

using testing::HasSubstr;

TEST(BaselineKernels, OneForEachNodeAfterMapsAreFused) {
  const ValidGraph graph = MustParse(R"(
graph norm
dim B = 1..8
input x: float16[B, 6]
wide = cast(x, float32)
mean = reduce_mean(wide, axes=[1], keep=true)
moved = wide - mean
y = moved * 2
output y
)");
  const RenderedKernel kernel = BaselineKernels(graph, BaselineForm::kNaive).value();
  EXPECT_EQ(kernel.plan.steps.size(), 3u) << "the conversion, the mean, the rest\n"
                                          << kernel.source.text;
  EXPECT_THAT(kernel.source.text,
              HasSubstr("reduce1(const float* a0, float* result, long long B)"));
  EXPECT_THAT(BaselineKernels(graph, BaselineForm::kReference)->source.text,
              HasSubstr("double* result"));
}

// Pooling's windows and broken extents kept blocks of 256 threads and their barriers busy with a
// few elements each.
TEST(BaselineKernels, AThreadReducesFewElementsAndABlockMany) {
  const auto step = [](const char* extent, const char* op) {
    const ValidGraph graph = MustParse(std::string("graph g\ninput x: float32[1000, ") + extent +
                                       "]\ny = reduce_" + op + "(x, axes=[1])\noutput y\n");
    return BaselineKernels(graph, BaselineForm::kNaive).value();
  };
  EXPECT_THAT(step("32", "sum").source.text, HasSubstr("few_sum<float, 32>(element)"));
  EXPECT_THAT(step("33", "sum").source.text, HasSubstr("block_sum<float>(33, element)"));
  EXPECT_EQ(step("32", "argmax").plan.steps[0].grid[0].EvaluateInt({}).value(), 4);
  EXPECT_EQ(step("33", "argmax").plan.steps[0].grid[0].EvaluateInt({}).value(), 1000);
}

TEST(BaselineKernels, SparseProductsLookForZeros) {
  const auto text = [](const char* more) {
    return BaselineKernels(MustParse(std::string("graph g\ninput a: float32[3, 4]\ninput b: "
                                                 "float32[4, 5]\ny = contract(a, b, "
                                                 "equation=\"mk,kn->mn\"") +
                                     more + ")\noutput y\n"),
                           BaselineForm::kNaive)
        ->source.text;
  };
  EXPECT_THAT(text(", sparse=true"), HasSubstr("(float)a_2 == 0 ||"));
  EXPECT_THAT(text(""), testing::Not(HasSubstr("(float)a_2 == 0 ||")));
}

TEST(BaselineKernels, TheLeastIntegersAreOfTheirType) {
  EXPECT_EQ(CudaLiteral(DType::kInt32, Whole(INT32_MIN), false), "(-2147483647 - 1)");
  EXPECT_EQ(CudaLiteral(DType::kInt64, Whole(INT32_MIN), false), "(-2147483648ll)");
  EXPECT_EQ(CudaLiteral(DType::kInt64, Whole(INT64_MIN), false), "(-9223372036854775807ll - 1)");
}

TEST(BaselineKernels, WhatTheyDoNotServeIsSaid) {
  const auto error = [](const std::string& lines) {
    return BaselineKernels(MustParse("graph g\ninput x: float32[6]\n" + lines + "\noutput y\n"),
                           BaselineForm::kNaive)
        .error();
  };
  std::string table = "t: float32[4097] = constant(0";
  for (int i = 1; i <= 4096; ++i) table += ", " + std::to_string(i);
  EXPECT_THAT(error(table + ")\ny = concat(x, t, axis=0)").what,
              HasSubstr("more than 4096 elements"));
}

}  // namespace
}  // namespace atunner::graph
