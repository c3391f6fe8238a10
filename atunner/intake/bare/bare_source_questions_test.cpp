// Bare sources with missing information: the lines asked for, annotations, and errors.
#include "atunner/intake/bare/bare_source_support_test.h"

namespace atunner {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(BareSource, AsksForEverythingAtOnce) {
  const std::string error = ErrorOf(
      "__global__ void k(const float* x, float* y, int n) { y[threadIdx.x] = x[n]; }");
  EXPECT_THAT(error, HasSubstr("k.cu:1"));
  for (const char* line :
       {"// atunner: block = 256", "// atunner: grid = ", "// atunner: arg x in float32[ELEMENTS]",
        "// atunner: arg y out float32[ELEMENTS]", "// atunner: arg n = VALUE"}) {
    EXPECT_THAT(error, HasSubstr(line));
  }
}

TEST(BareSource, AnnotationsAnswer) {
  auto kernel = Parse(R"(
// atunner: size n = 1 << 16
// atunner: block = block_x
// atunner: grid = ceil_div(n, block_x)
// atunner: tune block_x = 64, 128
// atunner: arg x in float32[n]
// atunner: fill x = uniform 0 1
// atunner: arg y out float32[n]
// atunner: check n = 1000
// atunner: tolerance = 1e-4
__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
})");
  // Only the annotation names block_x, so that the source has no initial value for it.
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(kernel->spec.tolerance.relative, 1e-4);
  EXPECT_EQ(kernel->spec.args[0].fill.kind, Fill::Kind::kUniform);
  ASSERT_EQ(kernel->check_dims.size(), 1u);
  EXPECT_EQ(Space(*kernel), "block_x=64");
  EXPECT_EQ(Launched(*kernel).grid.x, 1024u);
}

TEST(BareSource, TolerancesAreFiniteNumbers) {
  for (const char* value : {"-1e-4", "1e400", "-1"}) {
    const auto kernel = Parse(std::string("// atunner: tolerance = ") + value + R"(
// atunner: size n = 1 << 16
__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
})");
    ASSERT_FALSE(kernel) << value;
    EXPECT_THAT(kernel.error().ToString(), testing::HasSubstr("tolerance"));
  }
}

TEST(BareSource, UnknownSizesAreAskedForByName) {
  const std::string source = R"(
__global__ void norm(const float* x, float* y, float eps, int width) {}
void run(torch::Tensor& x, torch::Tensor& y, double eps) {
  int width = x.size(-1);
  dim3 grid(x.numel() / width);
  norm<<<grid, std::min(width, 1024), width * 4>>>(x.data_ptr<float>(), y.data_ptr<float>(), eps, width);
}
)";
  const std::string error = ErrorOf(source);
  EXPECT_THAT(error, HasSubstr("// atunner: size width = VALUE\n"));
  EXPECT_THAT(error, HasSubstr("// atunner: arg eps = VALUE"));
  EXPECT_THAT(error, HasSubstr("// atunner: arg y in float32[ELEMENTS]"));
  EXPECT_THAT(error, Not(HasSubstr("block =")));
  auto kernel = Parse(
      "// atunner: size width = 512\n// atunner: grid = 64\n// atunner: arg x in float32[64 * "
      "width]\n"
      "// atunner: arg y out float32[64 * width]\n// atunner: arg eps = 1e-5\n" +
      source);
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(Launched(*kernel).block.x, 512u);
  EXPECT_EQ(Launched(*kernel).shared_bytes, 2048u);
  EXPECT_EQ(Space(*kernel), "") << "the width is the task's";
}

/// Found by the fuzzer: a source without a size that could be halved for the check.
TEST(BareSource, LargeBuffersMayHaveNoSizesAtAll) {
  auto kernel = Parse(R"(
__global__ void copy(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }
int main() {
  float *x, *y;
  cudaMalloc(&x, 1 << 28);
  cudaMalloc(&y, 1 << 28);
  copy<<<1, 256>>>(x, y);
}
)");
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_TRUE(kernel->check_dims.empty());
}

/// A cooperative launch as in CUDA's samples, with extents assigned one by one.
TEST(BareSource, StatedArgumentsSayWhatATypeParameterIs) {
  auto kernel = Parse(R"(
// atunner: arg x in float16[4096]
template <class scalar_t> __global__ void twice(const scalar_t* x, int n) {}
void launch(torch::Tensor x) {
  AT_DISPATCH_FLOATING_TYPES(x.type(), "twice", [&] { twice<scalar_t><<<16, 256>>>(x.data_ptr<scalar_t>(), 4096); });
}
)");
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(kernel->plan.steps[0].entry, "twice<__half>");
}

TEST(BareSource, SeveralKernelsNeedAChoice) {
  const std::string two =
      std::string(kPlain) +
      "__global__ void other(float* x) { x[0] = 1; }\nvoid f(float* d) { other<<<1, 1>>>(d); }";
  EXPECT_THAT(ErrorOf(two), HasSubstr("request.kernel NAME"));
  EXPECT_TRUE(Parse(two, {.kernel = "scale", .extra_tunables = false, .multiprocessors = 1}));
  EXPECT_THAT(Parse(two, {.kernel = "nope", .extra_tunables = false, .multiprocessors = 1})
                  .error()
                  .ToString(),
              HasSubstr("the file has scale, other"));
}

TEST(BareSource, MistakesInAnnotationsNameTheirLine) {
  EXPECT_THAT(ErrorOf("\n// atunner: tune\n__global__ void k() {}"), HasSubstr("k.cu:2"));
  EXPECT_THAT(ErrorOf("// atunner: frobnicate 3\n__global__ void k() {}"),
              HasSubstr("unknown annotation"));
  EXPECT_THAT(ErrorOf("// atunner: arg x sideways float32[n]\n__global__ void k() {}"),
              HasSubstr("sideways"));
  EXPECT_THAT(ErrorOf("int main() {}"), HasSubstr("no __global__ kernel"));
  EXPECT_THAT(ErrorOf(std::string("// atunner: tune FOO = 1, 2\n") + kPlain), HasSubstr("'FOO'"));
  EXPECT_THAT(ErrorOf("// atunner: block = 32\n// atunner: grid = 1\n__global__ void k() {}"),
              HasSubstr("no output"));
}

constexpr const char* kAlone = R"(
struct Pair { float a; int b; };
__global__ void k(const float4* x, Pair* y, float by, bool twice, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i].a = x[i].x * by;
}
)";

TEST(BareSource, AKernelAloneNeedsItsSize) {
  EXPECT_THAT(ErrorOf(kAlone), HasSubstr("or give --dim n=1048576, which takes block = 256"));
  SourceOptions options;
  options.sizes = {{"n", 1000}};
  auto kernel = Parse(kAlone, options);
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(Launched(*kernel).grid.x, 4u);
  EXPECT_EQ(Space(*kernel), "block_x=256");
  const auto elements = [&](size_t i) {
    return ShapeOf(kernel->spec.args[i], kernel->spec, kernel->spec.dims)->elements;
  };
  EXPECT_EQ(elements(0), 4000);
  EXPECT_EQ(elements(1), 8000) << "bytes";
  EXPECT_THAT(kernel->notes, testing::Contains(HasSubstr("are assumed")));
}

TEST(BareSource, AKernelAloneOfSeveralSizesIsAskedFor) {
  SourceOptions options;
  options.sizes = {{"n", 1000}};
  const auto kernel = Parse("__global__ void k(float* x, int n, int m) { x[threadIdx.x * m] = n; }",
                            options);
  ASSERT_FALSE(kernel);
  EXPECT_THAT(kernel.error().ToString(), HasSubstr("arg x out float32[ELEMENTS]"));
  EXPECT_THAT(kernel.error().ToString(), HasSubstr("arg m = VALUE"));
}

/// The lines of a message are lines that a source may have.
TEST(BareSource, WhatIsAskedForCanBeStated) {
  auto kernel = Parse(
      "// atunner: block = 32\n// atunner: grid = 1\n// atunner: arg tex = texture:f32[64,48]\n"
      "// atunner: arg y out float32[32]\n"
      "__global__ void k(cudaTextureObject_t tex, float* y) { y[threadIdx.x] = tex2D<float>(tex, "
      "1, "
      "1); }\n");
  EXPECT_TRUE(kernel) << kernel.error().ToString();
}

}  // namespace
}  // namespace atunner
