// Programs as in repositories: headers beside the source, macros with launches, template functions
// that launch, launches under conditions.
#include <map>

#include "atunner/intake/bare/bare_source_support_test.h"
#include "atunner/intake/cuda/cuda_syntax.h"
#include "atunner/intake/rewrite/source_headers.h"

namespace atunner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

FileReader Files(std::map<std::string, std::string> files) {
  return [files = std::move(files)](const std::string& name) -> Result<std::string> {
    const auto found = files.find(name);
    if (found == files.end()) return Invalid("no such file", name);
    return found->second;
  };
}

ConcreteStep LaunchedBy(const std::string& source) {
  auto kernel = Parse(source);
  EXPECT_TRUE(kernel) << kernel.error().ToString();
  return kernel ? Launched(*kernel) : ConcreteStep{};
}

constexpr const char* kCopy = R"(
__global__ void copy(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
)";
constexpr const char* kBuffers =
    "  const int n = 1000;\n  float *x, *y;\n  cudaMalloc(&x, n * sizeof(float));\n  "
    "cudaMalloc(&y, n * 4);\n";

TEST(Headers, ArePutInWhereTheyAreIncluded) {
  const FileReader files = Files({{"inc/grid.h", "#pragma once\n#include \"types.h\"\nint a;"},
                                  {"inc/types.h", "#pragma once\nint t;\n"},
                                  {"sub/deep.h", "int deep;\n"}});
  EXPECT_EQ(WithHeaders(
                "#include <vector>\n  #include \"inc/grid.h\"  // ours\n#include \"inc/types.h\"\n"
                "#include \"none.h\"\nint last;\n",
                "k.cu", files),
            "#include <vector>\n  #line 1 \"inc/grid.h\"\n\n#line 1 \"inc/types.h\"\n\nint t;\n\n"
            "#line 3 \"inc/grid.h\"\nint a;\n#line 3 \"k.cu\"// ours\n\n#include \"none.h\"\nint "
            "last;\n");
  EXPECT_THAT(WithHeaders("// atunner: option = -Isub\n#include \"deep.h\"\n", "k.cu", files),
              HasSubstr("int deep;"));
}

TEST(Headers, MayIncludeThemselves) {
  const std::string text = WithHeaders("#include \"a.h\"\n", "k.cu",
                                       Files({{"a.h", "#include \"a.h\"\nint a;\n"}}));
  EXPECT_LT(text.size(), 2000u);
  EXPECT_THAT(text, HasSubstr("int a;"));
}

TEST(Headers, HoldStructuresKernelsAndLaunchers) {
  const FileReader files = Files({{"scale.cuh", R"(#ifndef SCALE_CUH
#define SCALE_CUH
#include <iostream>
#define HD __host__ __device__
struct Pair { float a, b; };
HD inline float Twice(float v) { return 2 * v; }
inline void Check(int error) { std::cout << error; }
__global__ void scale(int n, Pair* x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i].a = Twice(x[i].b);
}
void Scale(const int n, Pair* x) { scale<<<(n + 127) / 128, 128>>>(n, x); }
#endif
)"}});
  const std::string source = R"(#include "scale.cuh"
int main() {
  const int count = 1000;
  Pair* x;
  cudaMalloc(&x, count * sizeof(Pair));
  Scale(count, x);
}
)";
  auto kernel = Parse(WithHeaders(source, "k.cu", files));
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(kernel->spec.FindArg("x")->role, Role::kInOut);
  EXPECT_EQ(Launched(*kernel).grid.x, 8);
  EXPECT_THAT(kernel->source.text, HasSubstr("HD inline float Twice(float v)"));
  EXPECT_THAT(kernel->source.text, Not(HasSubstr("Check")));
  EXPECT_THAT(ErrorOf(WithHeaders("#include \"scale.cuh\"\nint main() { Scale(Load(), 0); }\n",
                                  "k.cu", files)),
              HasSubstr("scale.cuh:8: the source does not say everything"));
}

TEST(MacroLaunches, AreExpanded) {
  const std::string macros = R"(
#define CHECK(x) do { if ((x) != 0) return 1; } while (0)
#define LAUNCH(k, g, b, ...) \
  do { \
    k<<<g, b>>>(__VA_ARGS__); \
    CHECK(cudaGetLastError()); \
  } while (0)
#define TIMED(label, kernel, grid, block, args...) Start(#label); LAUNCH(kernel, grid, block, ##args); Stop()
#define LAUNCH_NAMED(name, ...) name##py<<<8, 128>>>(__VA_ARGS__)
)";
  for (const char* launch :
       {"LAUNCH(copy, (n + 127) / 128, 128, x, y, n);", "CHECK((copy<<<8, 128>>>(x, y, n), 0));",
        "LAUNCH_NAMED(co, x, /* to */ y,\n  // this many\n  n);", "(copy)<<<8, 128>>>(x, y, n);"}) {
    const ConcreteStep step = LaunchedBy(macros + kCopy + "int main() {\n" + kBuffers + launch +
                                         "\n}\n");
    EXPECT_EQ(step.grid.x, 8) << launch;
    EXPECT_EQ(step.block.x, 128) << launch;
    EXPECT_EQ(step.args.size(), 3u) << launch;
  }
}

TEST(MacroLaunches, DefineKernels) {
  const auto kernel = Parse(std::string(R"(
#define BINARY(name, op)                                                      \
  __global__ void name##_kernel(const float* x, float* y, int n) {            \
    int i = blockIdx.x * blockDim.x + threadIdx.x;                            \
    if (i < n) y[i] = y[i] op x[i];                                           \
  }
BINARY(add, +)
int main() {
)") + kBuffers + "add_kernel<<<(n + 255) / 256, 256>>>(x, y, n);\n}\n");
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(kernel->spec.name, "add_kernel");
  EXPECT_THAT(kernel->source.text, HasSubstr("y[i] = y[i] + x[i]"));
}

TEST(MacroLaunches, ThatNameThemselvesEnd) {
  const std::string macro = "#define RUN(x) RUN(x), RUN(x), k<<<1, 32>>>(x)\n";
  EXPECT_NE(ErrorOf(macro + "__global__ void k(int x) {}\nint main() { RUN(1); }\n"), "");
}

constexpr const char* kSum = R"(
template <int THREADS, typename T> __global__ void rowsum(const T* x, T* out, int cols) {
  __shared__ T s[THREADS];
  s[threadIdx.x] = x[blockIdx.x * cols + threadIdx.x];
  out[blockIdx.x] = s[0];
}
template <int THREADS, typename T = float> void Sum(const T* x, T* out, int rows, int cols, cudaStream_t s = 0) {
  const size_t bytes = cols * sizeof(T);
  rowsum<THREADS, T><<<rows, THREADS, bytes, s>>>(x, out, cols);
}
)";

TEST(LauncherTemplates, TakeTheirArgumentsFromTheCall) {
  for (const char* call : {"Sum<64>(x, out, rows, cols)", "Sum<64, double>(x, out, rows, cols)"}) {
    auto kernel = Parse(
        std::string(kSum) + "int main() { const int rows = 12, cols = 64; double *x, *out;\n" +
        "cudaMalloc(&x, rows * cols * sizeof(double)); cudaMalloc(&out, rows * sizeof(double));\n" +
        call + "; }\n");
    ASSERT_TRUE(kernel) << kernel.error().ToString();
    EXPECT_THAT(kernel->space.Names(), ElementsAre("THREADS"));
    EXPECT_EQ(kernel->spec.FindArg("x")->dtype, DType::kFloat64);
    const ConcreteStep step = Launched(*kernel);
    EXPECT_EQ(step.entry, "rowsum<64, double>");
    EXPECT_EQ(step.shared_bytes, 512);
  }
}

TEST(LauncherTemplates, TakeTypesOfNumbers) {
  const ConcreteStep step = LaunchedBy(R"(
template <typename Index> __global__ void fill(float* y, Index n) {
  Index i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 1;
}
template <typename Index> void Fill(float* y, Index n) {
  fill<Index><<<std::min<Index>((n + 255) / 256, 1024), 256>>>(y, n);
}
int main() { const int64_t n = 3000; float* y; cudaMalloc(&y, n * sizeof(float)); Fill(y, n); }
)");
  EXPECT_EQ(step.entry, "fill<int64_t>");
  EXPECT_EQ(step.grid.x, 12);
}

TEST(Conditions, ChooseTheLaunch) {
  const std::string source = std::string(kSum) + R"(
void Dispatch(const float* x, float* out, int rows, int cols, int threads) {
  if (cols > 4096) { rowsum<1024, float><<<rows, 1024>>>(x, out, cols); }
  else switch (threads) {
    case 512: rowsum<512, float><<<rows, 512>>>(x, out, cols); break;
    case 128:
    case 256: { rowsum<256, float><<<rows, 256>>>(x, out, cols); break; }
    default: rowsum<32, float><<<rows, 32>>>(x, out, cols);
  }
}
int main() {
  const int rows = 12, cols = COLS;
  float *x, *out;
  int tried[] = {THREADS_, 512};
  cudaMalloc(&x, rows * cols * 4); cudaMalloc(&out, rows * 4);
  for (int j = 0; j < 2; ++j) Dispatch(x, out, rows, cols, tried[j] < 0 ? 32 : tried[j]);
}
)";
  const auto entry = [&](const std::string& cols, const std::string& threads) {
    std::string text = source;
    text.replace(text.find("COLS"), 4, cols);
    text.replace(text.find("THREADS_"), 8, threads);
    return LaunchedBy(text).entry;
  };
  EXPECT_EQ(entry("8192", "512"), "rowsum<1024, float>");
  EXPECT_EQ(entry("1024", "512"), "rowsum<512, float>");
  EXPECT_EQ(entry("1024", "128"), "rowsum<256, float>");
  EXPECT_EQ(entry("1024", "256"), "rowsum<256, float>");
  EXPECT_EQ(entry("1024", "64"), "rowsum<32, float>");
}

TEST(Conditions, ChooseTheCallOfALauncher) {
  const ConcreteStep step = LaunchedBy(std::string(kSum) + R"(
int main() {
  const int rows = 12, cols = 128; float *x, *out;
  cudaMalloc(&x, rows * cols * 4); cudaMalloc(&out, rows * 4);
  if (cols <= 64) Sum<64>(x, out, rows, cols);
  else if (cols <= 128) Sum<128>(x, out, rows, cols);
  else Sum<256>(x, out, rows, cols);
}
)");
  EXPECT_EQ(step.entry, "rowsum<128, float>");
}

TEST(Conditions, ChooseValues) {
  const ConcreteStep step = LaunchedBy(std::string(kCopy) + "int main() {\n" + kBuffers + R"(
  int threads = n > 4096 ? 512 : (n > 512 && n != 7) ? 128 : 64;
  copy<<<8, threads, 16 + ((threads <= 64) ? 2 * threads : threads)>>>(x, y, n);
})");
  EXPECT_EQ(step.block.x, 128);
  EXPECT_EQ(step.shared_bytes, 144);
}

TEST(Launches, OfAKernelInAVariable) {
  const std::string source =
      std::string(kSum) +
      "int main() { float *x, *out; cudaMalloc(&x, 4096); cudaMalloc(&out, 64);\n"
      "auto kernel = rowsum<64, float>;\nkernel<<<16, 64>>>(x, out, 64); }\n";
  EXPECT_EQ(LaunchedBy(source).entry, "rowsum<64, float>");
}

TEST(Buffers, ThatFunctionsAllocate) {
  auto kernel = Parse(std::string(kCopy) + R"(
template <typename T> T* Make(size_t count) {
  T* p = nullptr;
  Check(cudaMalloc(&p, count * sizeof(T)));
  return p;
}
void Allocate(float** p, int count) { cudaMalloc((void**)p, count * sizeof(float)); }
int main() {
  const int n = 1000;
  float* x = Make<float>(2 * n);
  float *y, *other;
  Allocate(&other, 7);
  Allocate(&y, n);
  copy<<<8, 128>>>(x, y, n);
}
)");
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  const auto elements = [&](const char* name) {
    return ShapeOf(*kernel->spec.FindArg(name), kernel->spec, kernel->spec.dims).value().elements;
  };
  EXPECT_EQ(elements("x"), 2000);
  EXPECT_EQ(elements("y"), 1000);
}

TEST(Values, OfEnumerations) {
  auto kernel = Parse(R"(
enum class Mode { kNone, kTwice, kThrice = 7, kLast };
__global__ void fill(float* y, Mode mode) { y[blockIdx.x * 64 + threadIdx.x] = (int)mode; }
void Fill(float* y, Mode mode) { fill<<<4, 64>>>(y, mode); }
int main() { float* y; cudaMalloc(&y, 4096); Fill(y, Mode::kLast); }
)");
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  const auto mode = kernel->plan.steps[0].args[1].value.Evaluate(Bindings(kernel->spec.dims));
  EXPECT_EQ(ToDouble(mode.value()), 8);
}

}  // namespace
}  // namespace atunner
