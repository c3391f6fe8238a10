// Kernels of PyTorch extensions, whose tensor sizes follow from the sizes that the host code reads.
#include "atunner/intake/bare/bare_source_support_test.h"

namespace atunner {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kRows = R"(
template <typename T> __global__ void scale(const T* x, const T* bias, T* y, int rows, int cols) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows * cols) y[i] = x[i] + bias[i % cols];
}
)";

std::string Extension(const std::string& sizes,
                      const std::string& output = "torch::empty_like(x)") {
  return kRows + std::string("torch::Tensor forward(torch::Tensor x, const at::Tensor& bias) {\n") +
         sizes + "  auto y = " + output + R"(;
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "forward", ([&] {
    scale<scalar_t><<<(rows * cols + 255) / 256, 256>>>(x.data_ptr<scalar_t>(), bias.data_ptr<scalar_t>(),
                                                        y.data_ptr<scalar_t>(), rows, cols);
  }));
  return y;
}
)";
}

TEST(Tensors, HaveTheSizesThatTheHostReads) {
  for (const std::string sizes :
       {"const auto rows = x.size(0), cols = x.size(1); const int width = bias.numel();\n",
        "const int cols = static_cast<int>(x.size(-1)); const int rows = (int)x.numel() / "
        "cols, width = bias.size(0);\n",
        "int64_t rows = x.size(0); int cols = x.size(-1); auto width = bias.numel();\n"}) {
    const std::string error = ErrorOf(Extension(sizes));
    for (const char* size : {"rows", "cols", "width"})
      EXPECT_THAT(error, HasSubstr(std::string("size ") + size));
    EXPECT_THAT(error, Not(HasSubstr("ELEMENTS"))) << sizes;
    auto kernel = Parse(
        "// atunner: size rows = 100\n// atunner: size cols = 30\n// atunner: size width = 30\n" +
        Extension(sizes));
    ASSERT_TRUE(kernel) << sizes << kernel.error().ToString();
    EXPECT_EQ(ShapeOf(*kernel->spec.FindArg("x"), kernel->spec, kernel->spec.dims)->elements, 3000)
        << sizes;
    EXPECT_EQ(ShapeOf(*kernel->spec.FindArg("y"), kernel->spec, kernel->spec.dims)->elements, 3000)
        << sizes;
    EXPECT_EQ(ShapeOf(*kernel->spec.FindArg("bias"), kernel->spec, kernel->spec.dims)->elements, 30)
        << sizes;
    EXPECT_EQ(kernel->plan.steps[0].entry, "scale<float>");
  }
}

TEST(Tensors, AreMadeOfExtents) {
  const std::string sizes = "int rows = x.size(0), cols = x.size(1), width = bias.numel();\n";
  const std::string stated =
      "// atunner: size rows = 100\n// atunner: size cols = 30\n// atunner: size width = 30\n";
  auto kernel = Parse(stated + Extension(sizes, "torch::zeros({rows, 2 * cols}, x.options())"));
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(ShapeOf(*kernel->spec.FindArg("y"), kernel->spec, kernel->spec.dims)->elements, 6000);
}

TEST(Tensors, WithAxesThatNobodyReadsAreAskedFor) {
  const std::string error = ErrorOf(
      Extension("int rows = x.size(0), cols = x.size(2), width = bias.numel();\n"));
  EXPECT_THAT(error, HasSubstr("// atunner: arg x in float32[ELEMENTS]"));
}

}  // namespace
}  // namespace atunner
