// Programs whose host code says how a kernel is launched, and programs whose code does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "atunner/intake/bare/bare_source.h"

namespace atunner {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

Result<UserKernel> Parse(const std::string& source, const std::string& kernel = "") {
  SourceOptions options;
  options.kernel = kernel;
  return ParseBareSource(source, "k.cu", options);
}

std::string ErrorOf(const std::string& source) {
  auto kernel = Parse(source);
  return kernel ? "" : kernel.error().ToString();
}

int64_t ElementsOf(const UserKernel& kernel, const std::string& name) {
  const ArgSpec* arg = kernel.spec.FindArg(name);
  return arg == nullptr ? -1 : ShapeOf(*arg, kernel.spec, kernel.spec.dims).value().elements;
}

/// The description of the texture that is bound to argument `index`.
std::string TextureOf(const UserKernel& kernel, size_t index) {
  const ArgBinding& binding = kernel.plan.steps[0].args[index];
  return (binding.kind == ArgBinding::Kind::kTexture   ? "texture "
          : binding.kind == ArgBinding::Kind::kSurface ? "surface "
                                                       : "") +
         binding.name;
}

TEST(HostReading, RowsOfPitchedMemory) {
  const auto kernel = Parse(R"(
__global__ void copy(const float* in, size_t pitch, float* out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  for (int y = 0; x < w && y < h; ++y) out[y * w + x] = ((const float*)((const char*)in + y * pitch))[x];
}
int main() {
  const int w = 300, h = 40;
  float *in, *out;
  size_t pitch;
  cudaMallocPitch((void**)&in, &pitch, w * sizeof(float), h);
  cudaMalloc(&out, w * h * sizeof(float));
  copy<<<(w + 127) / 128, 128>>>(in, pitch, out, w, h);
})");
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(ElementsOf(*kernel, "in"), 1536 / 4 * 40);
  const ArgBinding& pitch = kernel->plan.steps[0].args[1];
  EXPECT_EQ(pitch.value.EvaluateInt(Bindings(kernel->spec.dims)).value(), 1536);
}

constexpr const char* kScale =
    "__global__ void scale(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i "
    "< n) x[i] *= 2; }\n";

TEST(HostReading, TheCommandLineDoesNotHideADefault) {
  const auto kernel = Parse(
      std::string(kScale) +
      "int main(int argc, char** argv) {\nint n = 4096;\nif (argc > 1) n = atoi(argv[1]);\n"
      "float* x; cudaMalloc(&x, n * 4);\nscale<<<(n + 255) / 256, 256>>>(x, n);\n}\n");
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(kernel->spec.dims.at("n"), 4096);
}

TEST(HostReading, PartsOfABufferBeginAtItsStart) {
  const std::string host =
      "int main() {\nconst int n = 4096, parts = 4, part = n / parts;\nfloat* x; cudaMalloc(&x, n "
      "* 4);\n"
      "for (int i = 0; i < parts; i++) {\nint first = i * part;\n"
      "scale<<<part / 256, 256>>>(x + first, part);\n}\n}\n";
  const auto kernel = Parse(kScale + host);
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(ElementsOf(*kernel, "x"), 4096);
  EXPECT_FALSE(kernel->spec.dims.contains("i"));
  std::string inside = host;
  inside.replace(inside.find("int i = 0"), 9, "int i = 1");
  EXPECT_THAT(ErrorOf(kScale + inside), HasSubstr("arg x inout float32[ELEMENTS]"));
}

TEST(HostReading, FractionsAreDividedAsFractions) {
  const auto kernel = Parse(
      "__global__ void k(float* x, float a, float b, float c, int n) { x[threadIdx.x] = a + b + c "
      "+ n; }\n"
      "const double kThird = 1.0;\n"
      "void run(float* x, float a, int n) { float half = 3; k<<<1, 32>>>(x, a / 2, half / 2, "
      "kThird / 4, n / 2); }\n"
      "int main() { float* x; cudaMalloc(&x, 128); run(x, 1, 5); }\n");
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  const auto value = [&](size_t i) {
    return ToDouble(
        kernel->plan.steps[0].args[i].value.Evaluate(Bindings(kernel->spec.dims)).value());
  };
  EXPECT_EQ(value(1), 0.5);
  EXPECT_EQ(value(2), 1.5);
  EXPECT_EQ(value(3), 0.25);
  EXPECT_EQ(value(4), 2);
}

TEST(HostReading, StructuresAreNamed) {
  EXPECT_THAT(ErrorOf("struct Matrix { virtual int area() { return 1; } int width; float* p; "
                      "};\n__global__ void "
                      "k(Matrix a) { a.p[0] = 1; }\n"
                      "int main() { Matrix m; k<<<1, 32>>>(m); }\n"),
              HasSubstr("takes a structure by value (Matrix a)"));
  EXPECT_THAT(ErrorOf("__global__ void k(cudaPitchedPtr a) { *(int*)a.ptr = 1; }\n"
                      "int main() { cudaPitchedPtr m; k<<<1, 32>>>(m); }\n"),
              HasSubstr("takes a structure by value (cudaPitchedPtr a)"));
  EXPECT_THAT(ErrorOf("template <class F> __global__ void k(int n, F f) { if (threadIdx.x < n) "
                      "f(threadIdx.x); }\n"
                      "int main() { auto y = Make(); k<<<1, 32>>>(32, [=] __device__(int i) { y[i] "
                      "= 1; }); }\n"),
              HasSubstr("takes a structure by value (F f)"));
}

constexpr const char* kRotate =
    "__global__ void rotate(float* out, int w, int h, cudaTextureObject_t tex) {\n"
    "  int x = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  for (int y = 0; x < w && y < h; ++y) out[y * w + x] = tex2D<float>(tex, x / (float)w, y / "
    "(float)h);\n}\n";

TEST(HostReading, TexturesCanBeStatedAndAreAskedFor) {
  const std::string host =
      "int main() { float* out; cudaMalloc(&out, 64 * 48 * 4); rotate<<<1, 64>>>(out, 64, 48, t); "
      "}\n";
  EXPECT_THAT(ErrorOf(kRotate + host), HasSubstr("arg tex = texture:f32[WIDTH,HEIGHT]"));
  const auto kernel = Parse("// atunner: arg tex = texture:u8x4[64,48] fractions\n" +
                            std::string(kRotate) + host);
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(TextureOf(*kernel, 3), "texture u8x4[64,48] fractions");
}

TEST(HostReading, WhatSurfacesReceiveIsRunButNotVerified) {
  auto kernel = Parse(R"(
// atunner: arg s = surface:u8x4[32,20]
__global__ void invert(cudaSurfaceObject_t s) { uchar4 v; surf2Dread(&v, s, threadIdx.x * 4, 0); surf2Dwrite(v, s, threadIdx.x * 4, 0); }
int main() { invert<<<1, 32>>>(s); })");
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(TextureOf(*kernel, 0), "surface u8x4[32,20]");
  const auto verified = MakeUserTemplate(*kernel);
  ASSERT_FALSE(verified);
  EXPECT_THAT(verified.error().ToString(), HasSubstr("what it writes there cannot be verified"));
  EXPECT_TRUE(MakeUserTemplate(*kernel, false));
}

TEST(HostReading, KernelsThatAreLaunched) {
  const std::string two =
      "__global__ void a(float* x) { *x = 1; }\n__global__ void unused(float* x) {}\n"
      "__global__ void b(float* x) { *x = 2; }\nint main() { float* x; cudaMalloc(&x, 4); b<<<1, "
      "1>>>(x); a<<<1, "
      "1>>>(x); }\n";
  EXPECT_THAT(LaunchedKernels(two), ElementsAre("a", "b"));
  EXPECT_THAT(LaunchedKernels("// atunner: kernel = b\n" + two), ElementsAre());
  EXPECT_TRUE(Parse(two, "b"));
}

TEST(HostReading, LaunchesByAConfiguration) {
  const std::string source = R"(
__global__ void hist(int* bins, const int* in, size_t n) { extern __shared__ int s[]; if (threadIdx.x < n) atomicAdd(&bins[in[threadIdx.x] & 63], 1); }
int main() {
  const int threads = 128; const size_t n = 4096;
  int *bins, *in; cudaMalloc(&bins, 64 * sizeof(int)); cudaMalloc(&in, n * sizeof(int));
  cudaLaunchConfig_t config = {0};
  config.gridDim = n / threads;
  config.blockDim = threads;
  int size = 2;
  config.dynamicSmemBytes = 64 / size * sizeof(int);
  cudaLaunchAttribute attribute[1];
  attribute[0].val.clusterDim.x = size; attribute[0].val.clusterDim.y = 1; attribute[0].val.clusterDim.z = 1;
  cudaLaunchKernelEx(&config, hist, bins, (const int*)in, n);
})";
  auto kernel = Parse(source);
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  const auto made = MakeUserTemplate(*kernel);
  ASSERT_TRUE(made) << made.error().ToString();
  const auto rendered = (*made)->Render((*made)->Default());
  const auto plan = Resolve(rendered->plan, kernel->spec.dims, {});
  ASSERT_TRUE(plan) << plan.error().ToString();
  EXPECT_EQ(plan->steps[0].grid.x, 32u);
  EXPECT_EQ(plan->steps[0].block.x, 128u);
  EXPECT_EQ(plan->steps[0].cluster.x, 2u);
  EXPECT_EQ(plan->steps[0].shared_bytes, 128u);
}

TEST(HostReading, ExpressionsOfFunctionsAndMacros) {
  const auto kernel = Parse(R"(
#define WORDS(count, size) \
  ((count) * (size) / 4)
constexpr int kThreads = 128;
inline int Blocks(const int n) { return (n + kThreads - 1) / kThreads; }
__global__ void step(float* x, float rate, float root, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * rate + root;
}
int main() {
  const int n = 3000, steps = 3;
  float* x;
  cudaMalloc(&x, WORDS(n, 4) * sizeof(float));
  step<<<Blocks(n), kThreads>>>(x, 1 - powf(0.5f, steps), 1 / std::sqrt(16.0), n);
})");
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(ElementsOf(*kernel, "x"), 3000);
  const auto value = [&](size_t i) {
    return ToDouble(
        kernel->plan.steps[0].args[i].value.Evaluate(Bindings(kernel->spec.dims)).value());
  };
  EXPECT_EQ(value(1), 0.875);
  EXPECT_EQ(value(2), 0.25);
  Dims dims = kernel->spec.dims;
  const auto names = kernel->space.Names();
  Bindings bindings(dims);
  bindings.Add(names, kernel->initial.values);
  EXPECT_EQ(kernel->plan.steps[0].grid[0].EvaluateInt(bindings).value(), 24);
}

TEST(HostReading, TemplateArgumentsThatOnlyTheHostNames) {
  const auto kernel = Parse(R"(
template <int THREADS, int ITEMS, int WARPS> __global__ void copy(const float* in, float* out) {
  for (int i = 0; i < ITEMS; ++i) {
    const int at = (blockIdx.x * THREADS + threadIdx.x) * ITEMS + i;
    out[at] = in[at] + WARPS;
  }
}
int main() {
  constexpr int T = 128, I = 4, blocks = 1024, n = T * I * blocks;
  float *in, *out;
  cudaMalloc(&in, n * sizeof(float));
  cudaMalloc(&out, n * sizeof(float));
  copy<T, I, T / 32><<<blocks, T>>>(in, out);
})");
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(kernel->plan.steps[0].entry, "copy<128, 4, 4>");
  EXPECT_TRUE(kernel->check_dims.empty()) << "T and I are part of the binary";
}

TEST(HostReading, BlocksThatAConstantOfTheHostSays) {
  for (const char* constant : {"#define BLOCK_SIZE 256", "constexpr int BLOCK_SIZE = 256;"}) {
    const auto kernel = Parse(std::string(constant) + "\n" + kScale + R"(
int main() {
  int n = 1 << 20;
  float* x;
  cudaMalloc(&x, n * sizeof(float));
  scale<<<(n + BLOCK_SIZE - 1) / BLOCK_SIZE, BLOCK_SIZE>>>(x, n);
})");
    ASSERT_TRUE(kernel) << kernel.error().ToString();
    EXPECT_THAT(kernel->space.Names(), ElementsAre("BLOCK_SIZE")) << constant;
    EXPECT_EQ(kernel->space.parameters[0].values.size(), 6u);
  }
}

TEST(HostReading, LoopsThatAMacroWrites) {
  const auto kernel = Parse(R"(
#define CUDA_1D_KERNEL_LOOP(i, n) \
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += blockDim.x * gridDim.x)
const int kThreads = 512;
inline int Blocks(const int n) { return (n + kThreads - 1) / kThreads; }
__global__ void scale(float* x, int n) {
  CUDA_1D_KERNEL_LOOP(i, n) { x[i] *= 2; }
}
int main() {
  const int n = 5000;
  float* x;
  cudaMalloc(&x, n * sizeof(float));
  scale<<<Blocks(n), kThreads>>>(x, n);
})");
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_THAT(kernel->space.Names(), ElementsAre("kThreads"));
}

/// kScale with a host program, whose launch it makes.
std::string Scaled(const std::string& host) { return kScale + host; }

constexpr const char* kLaunch =
    "float* x; cudaMalloc(&x, n * sizeof(float)); scale<<<(n + 255) / 256, 256>>>(x, n);\n";

TEST(HostReading, OnlyRootsAreAskedFor) {
  const std::string error = ErrorOf(
      Scaled("int main(int argc, char** argv) {\n  int n = atoi(argv[1]);\n"
             "  size_t bytes = n * sizeof(float);\n  int blocks = (n + 255) / 256;\n"
             "  float* x; cudaMalloc(&x, bytes);\n  scale<<<blocks, 256>>>(x, n);\n}\n"));
  EXPECT_THAT(error, testing::EndsWith("with your values:\n  // atunner: size n = VALUE"));
}

TEST(HostReading, AStatedRootMakesTheRestKnown) {
  const auto kernel = Parse(
      "// atunner: size n = 1 << 18\n" +
      Scaled("int main(int argc, char** argv) {\n  int n = atoi(argv[1]);\n"
             "  const int block = 256, blocks = (n + 255) / 256;\n"
             "  float* x; cudaMalloc(&x, n * 4);\n  scale<<<blocks, block>>>(x, n);\n}\n"));
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_THAT(kernel->space.Names(), ElementsAre("block")) << "the grid's literals are the block's";
}

TEST(HostReading, VariablesThatFilesFillAreAskedFor) {
  const std::string error = ErrorOf(
      Scaled("int main() {\n  int n = 0;\n  std::ifstream f(\"in\");\n"
             "  fscanf(file, \"%d\", &n);\n" +
             std::string(kLaunch) + "}\n"));
  EXPECT_THAT(error, HasSubstr("size n = VALUE"));
}

TEST(HostReading, TheProgramRunsWithoutArguments) {
  // One that wants some ends before the launch: the arguments are then unknown.
  for (const char* check :
       {"if (argc != 2) { printf(\"usage\"); exit(1); }", "if (argc < 2) return 1;"}) {
    const std::string error = ErrorOf(Scaled("int main(int argc, char** argv) {\n" +
                                             std::string(check) + "int n = atoi(argv[1]);\n" +
                                             kLaunch + "}\n"));
    EXPECT_THAT(error, HasSubstr("size n = VALUE")) << check;
  }
}

TEST(HostReading, ChecksOfErrorsPass) {
  const auto kernel = Parse(Scaled(R"(
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) exit(1); } while (0)
static void Check(cudaError_t e, int line) { if (e) { fprintf(stderr, "%d", line); exit(1); } }
int main() {
  const int n = 3000;
  float *x, *h = (float*)malloc(n * sizeof(float));
  if (h == NULL) return 1;
  CHECK(cudaMalloc(&x, n * sizeof(float)));
  Check(cudaMemcpy(x, h, n * sizeof(float), cudaMemcpyHostToDevice), __LINE__);
  if (cudaSetDevice(0) != cudaSuccess) return 1;
  if (unknown()) return 2;
  scale<<<(n + 255) / 256, 256>>>(x, n);
})"));
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(ElementsOf(*kernel, "x"), 3000);
}

TEST(HostReading, BranchesOfUnknownConditionsAreBothWalked) {
  const std::string source = Scaled(R"(
int main(int argc, char** argv) {
  const int impl = atoi(argv[1]), n = 4096;
  dim3 grid, block;
  if (impl == 0) { grid.x = n / 32; block.x = 32; }
  else { grid.x = n / 128; block.x = 128; }
  float* x; cudaMalloc(&x, n * 4);
  if (impl == 0) scale<<<grid, block>>>(x, n);
})");
  EXPECT_THAT(ErrorOf(source), testing::EndsWith("values:\n  // atunner: size impl = VALUE"));
  const auto kernel = Parse("// atunner: size impl = 0\n" + source);
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(kernel->plan.steps[0].block[0].EvaluateInt(
                Bindings(kernel->spec.dims).Add(kernel->space.Names(), kernel->initial.values)),
            32);
}

TEST(HostReading, LoopsOverConstantsAreRun) {
  const auto kernel = Parse(Scaled(R"(
int Power(int n) { int p = 1; while (p < n) p *= 2; return p; }
int main() {
  const int sizes[] = {100, 300};
  float* parts[2];
  int total = 0;
  for (int i = 0; i < 2; ++i) {
    cudaMalloc(&parts[i], sizes[i] * sizeof(float));
    total += sizes[i];
  }
  double sum = 0;
  for (int i = 0; i < total; ++i) for (int j = 0; j < total; ++j) sum += i * j;
  std::swap(parts[0], parts[1]);
  scale<<<Power(total) / 128, 128>>>(parts[0], total);
})"));
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(ElementsOf(*kernel, "x"), 300);
  const LaunchStep& step = kernel->plan.steps[0];
  EXPECT_EQ(step.args[1].value.EvaluateInt(Bindings(kernel->spec.dims)), 400);
}

TEST(HostReading, LongLoopsMakeUnknownWhatTheyChange) {
  const std::string error = ErrorOf(
      Scaled("int main() {\n  int n = 1000, m = 7;\n"
             "  for (int i = 0; i < 100000; ++i) { if (i % 3) m += i; h[i] = 0; }\n"
             "  float* x; cudaMalloc(&x, n * 4); scale<<<4, 256>>>(x, m);\n}\n"));
  EXPECT_THAT(error, testing::EndsWith("values:\n  // atunner: size m = VALUE"));
}

TEST(HostReading, PhasesAreNotTakenForTheirFirst) {
  const std::string error = ErrorOf(
      "__global__ void step(float* x, int k) { x[threadIdx.x ^ k] = k; }\n"
      "int main() {\n  float* x; cudaMalloc(&x, 4096);\n"
      "  for (int k = 2; k <= 1024; k <<= 1) step<<<1, 1024>>>(x, k);\n}\n");
  EXPECT_THAT(error, HasSubstr("size k = VALUE"));
}

TEST(HostReading, PointersToPointersAreRefused) {
  EXPECT_THAT(ErrorOf("__global__ void k(const float* const* rows, float* y) { *y = **rows; }\n"
                      "int main() { float **r, *y; cudaMalloc(&r, 64); cudaMalloc(&y, 4);\n"
                      "k<<<1, 1>>>(r, y); }\n"),
              HasSubstr("takes pointers to pointers (float** rows)"));
}

TEST(HostReading, FunctionsChangeWhatTheyReceiveByReference) {
  const auto kernel = Parse(Scaled(R"(
template <typename T> void Allocate(T*& p, int& count) { count *= 2; cudaMalloc(&p, count * sizeof(T)); }
static float* d_x = nullptr;
int main() {
  int n = 500;
  auto blocks = [](int size, int tile) { return (size + tile - 1) / tile; };
  Allocate(d_x, n);
  scale<<<blocks(n, 128), 128>>>(d_x, n);
})"));
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(ElementsOf(*kernel, "x"), 1000);
}

TEST(HostReading, NamesOfTwoValuesStayApart) {
  const auto kernel = Parse(Scaled(R"(
void Run(float* x, int n) { scale<<<n / 128, 128>>>(x, n); }
int main() { const int n = 4096; float* x; cudaMalloc(&x, n * 4); Run(x, 1024); }
)"));
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(ElementsOf(*kernel, "x"), 4096);
  EXPECT_EQ(kernel->plan.steps[0].args[1].value.EvaluateInt(Bindings(kernel->spec.dims)), 1024);
}

TEST(HostReading, FunctionsThatCallThemselvesEnd) {
  const std::string source = Scaled(
      "int f(int n) { return n > 0 ? f(n) + f(n + 1) : 1; }\n"
      "void a(int n); void b(int n) { a(n); a(n); } void a(int n) { b(n); b(n); }\n"
      "int main() { int n = f(3); a(n); " +
      std::string(kLaunch) + "}\n");
  EXPECT_NE(ErrorOf(source), "");
}

/// Deeper than any stack, if each bracket took a few calls.
TEST(HostReading, BracketsInEachOtherEnd) {
  const std::string many(5'000, '('), blocks(5'000, '{');
  std::string ifs;
  for (int i = 0; i < 5'000; ++i) ifs += "if (a) ";
  for (const std::string& start :
       {"int n = " + many, blocks, ifs, "n = " + std::string(5'000, '-')})
    EXPECT_NE(ErrorOf(Scaled("int main() { " + start + " " + kLaunch + "}")), "") << start[0];
}

}  // namespace
}  // namespace atunner
