#include "atunner/intake/bare/bare_source_support_test.h"

namespace atunner {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(BareSource, AnUnmodifiedProgramNeedsNothing) {
  auto kernel = Parse(kPlain);
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(Space(*kernel), "threads=256");
  EXPECT_EQ(kernel->spec.dims.at("n"), 1 << 20);
  ASSERT_EQ(kernel->spec.args.size(), 2u);
  EXPECT_EQ(kernel->spec.args[0].role, Role::kInput);
  EXPECT_EQ(kernel->spec.args[1].role, Role::kOutput);
  const ConcreteStep step = Launched(*kernel);
  EXPECT_EQ(step.grid.x, 4096u);
  EXPECT_EQ(step.block.x, 256u);
  EXPECT_EQ(step.args.size(), 4u);
  EXPECT_THAT(kernel->source.text, Not(HasSubstr("cudaMalloc")));
}

TEST(BareSource, HostSizesAreHalvedForTheCheck) {
  auto kernel = Parse(kPlain);
  ASSERT_TRUE(kernel);
  ASSERT_EQ(kernel->check_dims.size(), 2u);
  EXPECT_EQ(kernel->check_dims[0].at("n"), 1 << 13);
  EXPECT_EQ(kernel->check_dims[1].at("n"), 1 << 14);
  // The grid does not depend on the size: the kernel may rely on one thread per element.
  std::string fixed = kPlain;
  fixed.replace(fixed.find("<<<blocks, threads>>>"), 21, "<<<4096, 256>>>");
  auto left = Parse(fixed);
  ASSERT_TRUE(left);
  EXPECT_TRUE(left->check_dims.empty());
}

// A kernel whose grid rounds down relies on whole blocks, for every block size that is tried.
TEST(BareSource, CheckSizesLeaveNoPartOfABlock) {
  const auto check = [](const std::string& size) {
    std::string source = kPlain;
    source.replace(source.find("(n + threads - 1) / threads"), 27, "n / threads");
    source.replace(source.find("1 << 20"), 7, size);
    auto kernel = Parse(source);
    EXPECT_TRUE(kernel) << kernel.error().ToString();
    return kernel && !kernel->check_dims.empty() ? kernel->check_dims.back().at("n") : 0;
  };
  EXPECT_EQ(check("1 << 20"), 1 << 14);
  EXPECT_EQ(check("1024 * 999"), 0) << "no smaller size is a multiple of every block";
  EXPECT_EQ(check("8192 * 99"), 1024 * 99);
}

TEST(BareSource, LiteralLaunchesFollowTheBlock) {
  std::string source = kPlain;
  source.replace(source.find("<<<blocks, threads>>>"), 21, "<<<(n + 255) / 256, 256>>>");
  auto kernel = Parse(source);
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(Space(*kernel), "block_x=256");
  EXPECT_EQ(Launched(*kernel).grid.x, 4096u);
  auto made = MakeUserTemplate(*kernel);
  const auto rendered = (*made)->Render({{int64_t{64}}});
  EXPECT_EQ(Resolve(rendered->plan, kernel->spec.dims, {})->steps[0].grid.x, 16384u);
}

TEST(BareSource, MacrosShapeKernelAndLaunch) {
  auto kernel = Parse(R"(
#ifndef TILE
#define TILE 16
#endif
#define N 1024
__global__ void transpose(const float* in, float* out, int n) {
  __shared__ float tile[TILE][TILE + 1];
  int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = in[y * n + x];
  __syncthreads();
  out[(blockIdx.x * TILE + threadIdx.y) * n + blockIdx.y * TILE + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
void run() {
  float *a, *b;
  size_t bytes = sizeof(float) * N * N;
  cudaMalloc(&a, bytes); cudaMalloc(&b, bytes);
  dim3 block(TILE, TILE);
  dim3 grid(N / TILE, N / TILE);
  transpose<<<grid, block>>>(a, b, N);
})");
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(Space(*kernel), "TILE=16");
  EXPECT_EQ(kernel->spec.dims.at("N"), 1024);
  const ConcreteStep step = Launched(*kernel);
  EXPECT_EQ(step.grid, (Dim3{64, 64, 1}));
  EXPECT_EQ(step.block, (Dim3{16, 16, 1}));
  auto made = MakeUserTemplate(*kernel);
  const auto rendered = (*made)->Render({{int64_t{32}}});
  EXPECT_THAT(rendered->source.text, HasSubstr("#define TILE 32"));
}

TEST(BareSource, BuffersThatTheHostZeroes) {
  auto kernel = Parse(R"(
__global__ void sum(const float* in, float* total, unsigned* ticket, int* other) {
  atomicAdd(ticket, 1u);
  atomicAdd(total, in[blockIdx.x * blockDim.x + threadIdx.x]);
  atomicAdd(other, 1);
}
void go(const float* in, float* total, unsigned* ticket, int* other) {
  cudaMemsetAsync(total, 0, 4, 0);
  sum<<<4, 256>>>(in, total, ticket, other);
}
int main() {
  float *x, *s; unsigned* t; int* o;
  cudaMalloc(&x, 4096); cudaMalloc(&s, 4); cudaMalloc(&t, 4); cudaMalloc(&o, 4);
  cudaMemset(x, 0, 4096); cudaMemset(t, 0, 4); cudaMemset(o, 255, 4);
  go(x, s, t, o);
})");
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(kernel->spec.args[0].fill.kind, Fill::Kind::kFamilies)
      << "zeros as an input show nothing";
  EXPECT_EQ(kernel->spec.args[1].fill.kind, Fill::Kind::kZeros);
  EXPECT_EQ(kernel->spec.args[2].fill.kind, Fill::Kind::kZeros);
  EXPECT_NE(kernel->spec.args[3].fill.kind, Fill::Kind::kZeros) << "set to -1";
}

TEST(BareSource, TemplateArgumentsAreTunables) {
  auto kernel = Parse(R"(
template <int BLOCK, typename T> __global__ void sum(const T* in, T* out, int n) {
  __shared__ T s[BLOCK];
  s[threadIdx.x] = in[blockIdx.x * BLOCK + threadIdx.x];
  out[blockIdx.x] = s[0];
}
int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 65536;
  double *in, *out;
  cudaMalloc(&in, n * sizeof(double));
  cudaMalloc(&out, n / 256 * sizeof(double));
  sum<256, double><<<n / 256, 256>>>(in, out, n);
})");
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(Space(*kernel), "BLOCK=256");
  EXPECT_EQ(kernel->plan.steps[0].entry, "sum<{BLOCK}, double>");
  EXPECT_EQ(kernel->spec.args[0].dtype, DType::kFloat64);
  EXPECT_EQ(kernel->spec.dims.at("n"), 65536);
  EXPECT_EQ(Launched(*kernel).grid.x, 256u);
}

TEST(BareSource, WrapperFunctionsAreFollowed) {
  auto kernel = Parse(R"(
typedef float real;
#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
__global__ void add(const real* a, real* b, unsigned n) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) b[i] += a[i];
}
void launch(real* x, real* y, unsigned count, cudaStream_t s) {
  const dim3 threads = 128;
  add<<<CEIL_DIV(count, threads.x), threads, 0, s>>>(x, y, count);
}
int main() {
  real *p, *q;
  constexpr unsigned kCount = 5000;
  cudaMalloc(&p, kCount * sizeof(p[0]));
  cudaMalloc(&q, kCount * sizeof(*q));
  launch(p, q, kCount, 0);
})");
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(kernel->spec.args[1].role, Role::kInOut);
  EXPECT_EQ(Launched(*kernel).grid.x, 40u);
}

TEST(BareSource, FixedBlocksAreLeftAloneWithAReason) {
  std::string source = kPlain;
  source.replace(source.find("if (i < n)"), 10,
                 "__shared__ float s[256]; s[threadIdx.x] = 0; if (i < n)");
  auto fixed = Parse(source);
  ASSERT_TRUE(fixed);
  EXPECT_TRUE(fixed->space.parameters.empty());
  EXPECT_THAT(fixed->notes, testing::Contains(HasSubstr("shared array [256]")));
  source.replace(source.find("s[256]"), 6, "s[32][32]");
  EXPECT_THAT(Parse(source)->notes, testing::Contains(HasSubstr("shared array [32]")));
  source.replace(source.find("s[32][32]"), 9, "s[256]");
  source.replace(source.find("s[threadIdx.x] = 0;"), 19,
                 "for (int k = threadIdx.x; k < 256; k += blockDim.x) s[k] = 0;");
  EXPECT_EQ(Space(*Parse(source)), "threads=256") << "any number of threads can clear it";
  source = kPlain;
  source.replace(source.find("blockDim.x"), 10, "256");
  auto literal = Parse(source);
  ASSERT_TRUE(literal);
  EXPECT_THAT(literal->notes, testing::Contains(HasSubstr("blockDim.x")));
}

TEST(BareSource, GridStrideLoopsFreeTheGrid) {
  std::string source = kPlain;
  source.replace(source.find("if (i < n) y[i] = a * x[i];"), 27,
                 "for (; i < n; i += gridDim.x * blockDim.x) y[i] = a * x[i];");
  auto kernel = Parse(source, {.kernel = "", .extra_tunables = true, .multiprocessors = 132});
  ASSERT_TRUE(kernel);
  EXPECT_GE(kernel->space.Find("grid_x"), 0);
  EXPECT_GE(kernel->space.Find("max_registers"), 0);
  EXPECT_EQ(Launched(*kernel).grid.x, 4096u);
}

TEST(BareSource, BlockStrideLoopsFreeTheBlock) {
  std::string source = kPlain;
  source.replace(source.find("if (i < n) y[i] = a * x[i];"), 27,
                 "__shared__ float per_warp[32]; for (i = threadIdx.x; i < n; i += blockDim.x) "
                 "y[i] = a * x[i];");
  source.replace(source.find("scale<<<blocks, threads>>>"), 26, "scale<<<1, 128>>>");
  auto kernel = Parse(source);
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(Space(*kernel), "block_x=128");
  EXPECT_EQ(Launched(*kernel).grid.x, 1u);
}

TEST(BareSource, ContainersMadeOfContainersAndSeveralAtOnce) {
  const std::string source = R"(
template <class T> class Buffer {};
__global__ void add(const unsigned char* a, const float* b, float* c, int n) {}
int main() {
  const int n = 1 << 20;
  thrust::host_vector<unsigned char> h(n);
  thrust::device_vector<unsigned char> a = h;
  Buffer<float> b(2 * n), c(n);
  add<<<n / 256, 256>>>(thrust::raw_pointer_cast(a.data()), b.get(), c.get(), n);
}
)";
  auto kernel = Parse(source);
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  const auto elements = [&](size_t i) {
    return ShapeOf(kernel->spec.args[i], kernel->spec, kernel->spec.dims)->elements;
  };
  EXPECT_EQ(elements(0), 1 << 20);
  EXPECT_EQ(elements(1), 2 << 20);
  EXPECT_EQ(elements(2), 1 << 20);
}

TEST(BareSource, CallsOfTheRuntimeAreLaunches) {
  const std::string source = R"(
template <int kWidth>
__global__ void relax(const float* x, float* y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = x[i] * kWidth;
}
int main() {
  int n = 1000;
  float *x, *y;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  dim3 grid, block;
  grid.x = 4;
  block.x = 32;
  block.y = 2;
  void* args[] = {&x, (void*)&y, &n};
  cudaLaunchCooperativeKernel((void*)relax<8>, grid, block, args, 2 * n, 0);
}
)";
  auto kernel = Parse(source);
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_TRUE(kernel->plan.steps[0].cooperative);
  EXPECT_EQ(Launched(*kernel).grid, (Dim3{4, 1, 1}));
  EXPECT_EQ(Launched(*kernel).block.y, 2u);
  EXPECT_EQ(Launched(*kernel).shared_bytes, 2000u);
  ASSERT_EQ(kernel->plan.steps[0].args.size(), 3u);
  const size_t call = source.find("cudaLaunchCooperativeKernel");
  auto plain = Parse(std::string(source).replace(call, 27, "cudaLaunchKernel"));
  ASSERT_TRUE(plain) << plain.error().ToString();
  EXPECT_FALSE(plain->plan.steps[0].cooperative);
}

TEST(BareSource, BlocksThatFollowAProblemSizeAreTunedWhereThreadsStride) {
  std::string source = kPlain;
  source.replace(source.find("if (i < n) y[i] = a * x[i];"), 27,
                 "for (i = threadIdx.x; i < n; i += blockDim.x) y[i] = a * x[i];");
  source.replace(source.find("scale<<<blocks, threads>>>"), 26,
                 "scale<<<1, std::min(n, 1024), std::min(n, 1024) * 4>>>");
  auto kernel = Parse(source);
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(Space(*kernel), "block_x=1024");
  EXPECT_EQ(kernel->plan.steps[0].shared_bytes.text(), "block_x * 4");
  EXPECT_EQ(Launched(*kernel).grid.x, 1u);
}

TEST(BareSource, StructuresWithBasesAreRefused) {
  std::string source = kPlain;
  source.replace(source.find("float a, int n)"), 15, "Scale a, int n)");
  EXPECT_THAT(ErrorOf("struct Base {};\nstruct Scale : Base { float a; };\n" + source),
              HasSubstr("takes a structure by value (Scale a)"));
}

TEST(BareSource, DeviceVariablesAreFilledAsTheHostFillsThem) {
  const std::string source = R"(
#define R 2
__constant__ float weights[2 * R + 1], other[4];
__constant__ int width;
__device__ const float unused[2] = {1, 2};
__device__ unsigned int counter;
#define WEIGHT(i) weights[i]
__device__ float more[2], some[2];
__device__ float load(const float* x, int i) { return x[i % width] + other[0]; }
__global__ void filter(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = weights[0] * load(x, i) * unused[0] + counter;
}
void setup(int n) {
  float h[] = {0.25f, -1.5f, 3};
  int w = n / 2;
  cudaMemcpyToSymbol(weights, h, sizeof(h));
  cudaMemcpyToSymbol(width, &w, sizeof(int));
  float* random = load_weights();
  cudaMemcpyToSymbolAsync(other, random, 16, 0, cudaMemcpyHostToDevice, stream);
}
int main() {
  const int n = 1 << 16;
  float *x, *y;
  cudaMalloc(&x, n * 4); cudaMalloc(&y, n * 4);
  setup(n);
  filter<<<n / 256, 256>>>(x, y);
}
)";
  auto kernel = Parse(source);
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  ASSERT_EQ(kernel->plan.symbols.size(), 3u);
  EXPECT_EQ(kernel->plan.steps[0].args.size(), 2u);
  const ArgSpec* weights = kernel->spec.FindArg("weights");
  ASSERT_NE(weights, nullptr);
  EXPECT_EQ(ShapeOf(*weights, kernel->spec, kernel->spec.dims)->elements, 5);
  EXPECT_EQ(weights->fill.path, "0 if i >= 3 else 0.25 if i == 0 else -1.5 if i == 1 else 3");
  EXPECT_EQ(kernel->spec.FindArg("width")->fill.path, "32768");
  EXPECT_EQ(kernel->spec.FindArg("other")->fill.kind, Fill::Kind::kFamilies);
  EXPECT_TRUE(kernel->check_dims.empty()) << "width is what it is";

  std::string unknown = source;
  unknown.replace(unknown.find("n / 2"), 5, "ask()");
  EXPECT_THAT(ErrorOf(unknown), HasSubstr("// atunner: fill width = constant VALUE"));
  unknown = source;
  unknown.replace(unknown.find("cudaMemcpyToSymbol(weights"), 26, "copy_somehow(weights");
  EXPECT_THAT(ErrorOf(unknown), HasSubstr("// atunner: arg weights in float32[ELEMENTS]"));
}

TEST(BareSource, SeveralExtentsInOneDeclaration) {
  std::string source = kPlain;
  source.replace(source.find("scale<<<blocks, threads>>>"), 26,
                 "dim3 block(64), grid((n + 63) / 64); scale<<<grid, block>>>");
  auto kernel = Parse(source);
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(Launched(*kernel).grid.x, (1u << 20) / 64);
}

TEST(BareSource, AliasedBuffersAreOneTensor) {
  std::string source = kPlain;
  source.replace(source.find("(dx, dy, 2.0f, n)"), 17, "(dx, dx, 2.0f, n)");
  auto kernel = Parse(source);
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  ASSERT_EQ(kernel->spec.args.size(), 1u);
  EXPECT_EQ(kernel->spec.args[0].role, Role::kInOut);
}

TEST(BareSource, RolesFollowTheBody) {
  const auto role = [](const std::string& body) {
    auto kernel = Parse(
        "// atunner: block = 32\n// atunner: grid = 1\n// atunner: arg n = 4\n__global__ void "
        "k(float* p, float* q, "
        "int n) { " +
        body +
        " }\nvoid f() { float *a, *b; cudaMalloc(&a, 64); cudaMalloc(&b, 64); k<<<1, 32>>>(a, b, "
        "4); }");
    return kernel ? std::string(Name(kernel->spec.args[0].role)) : kernel.error().ToString();
  };
  EXPECT_EQ(role("p[0] = 1;"), Name(Role::kOutput));
  EXPECT_EQ(role("p[n * (n + p[1])] = 1;"), Name(Role::kInOut));
  EXPECT_EQ(role("p[0] += 1;"), Name(Role::kInOut));
  EXPECT_EQ(role("q[0] = p[0];"), Name(Role::kInput));
  EXPECT_EQ(role("*p = 1;"), Name(Role::kOutput));
  EXPECT_EQ(role("atomicAdd(&p[0], 1.f);"), Name(Role::kInOut));
  EXPECT_EQ(role("atomicAdd(&(p[n]), 1.f);"), Name(Role::kInOut));
  EXPECT_EQ(role("atomicAdd(p + n, 1.f);"), Name(Role::kInOut));
  EXPECT_EQ(role("if (p[0]) ++q[n];"), Name(Role::kInput));
  EXPECT_EQ(role("q[0] = n * p[0];"), Name(Role::kInput));
  EXPECT_EQ(role("q[0] = n == p[0];"), Name(Role::kInput));
  EXPECT_EQ(role("p[0]++;"), Name(Role::kInOut));
  EXPECT_EQ(role("reinterpret_cast<float4*>(p)[0] = make_float4(0, 0, 0, 0);"), Name(Role::kInOut));
}

TEST(BareSource, SizesThatAreRoundedUpEvenlyStayEven) {
  for (const char* grid : {"(n + 127) / 128", "CEIL_DIV(n, 128)"}) {
    const auto kernel = Parse(
        std::string("#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))\n") +
        "__global__ void twice(float* x) { x[blockIdx.x * 128 + threadIdx.x] *= 2; }\n"
        "int main() { int n = 384 * 256; float* x; cudaMalloc(&x, n * sizeof(float));\n"
        "twice<<<" +
        grid + ", 128>>>(x); }\n");
    ASSERT_TRUE(kernel) << kernel.error().ToString();
    ASSERT_EQ(kernel->check_dims.size(), 2u) << grid;
    for (const Dims& dims : kernel->check_dims) EXPECT_EQ(dims.at("n") % 128, 0) << grid;
  }
}

TEST(BareSource, ABlockOfOneThreadIsTuned) {
  const auto source = [](const char* index, const char* launch) {
    return std::string("__global__ void axpy(int n, float a, const float* x, float* y) {\n") +
           "  const int i = " + index + ";\n  if (i < n) y[i] = a * x[i] + y[i];\n}\n" +
           "int main() {\n  const int n = 1 << 18;\n  float *x, *y;\n"
           "  cudaMalloc(&x, n * sizeof(float));\n  cudaMalloc(&y, n * sizeof(float));\n  axpy" +
           launch + "(n, 2.0f, x, y);\n}\n";
  };
  constexpr const char* kIndex = "blockIdx.x * blockDim.x + threadIdx.x";
  auto kernel = Parse(source(kIndex, "<<<n, 1>>>"));
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(Space(*kernel), "block_x=1");
  EXPECT_EQ(Launched(*kernel).grid.x, 1u << 18);
  EXPECT_EQ(Launched(*kernel).block.x, 1u) << "as given";
  auto made = MakeUserTemplate(*kernel);
  ASSERT_TRUE(made) << made.error().ToString();
  const auto rendered = (*made)->Render({{int64_t{256}}});
  const auto step = Resolve(rendered->plan, kernel->spec.dims, {})->steps[0];
  EXPECT_EQ(step.grid.x, 1u << 10);
  EXPECT_EQ(step.block.x, 256u);
  // Where it cannot be tuned, a note says why.
  for (const auto& [index, launch, why] :
       {std::tuple("blockIdx.x", "<<<n, 1>>>", "does not use blockDim.x"),
        std::tuple(kIndex, "<<<1, 1>>>", "a single thread does all the work")}) {
    const auto left = Parse(source(index, launch));
    ASSERT_TRUE(left) << left.error().ToString();
    EXPECT_THAT(left->notes, testing::Contains(HasSubstr(why)));
  }
}

TEST(BareSource, AsGivenIsWhatTheSourceGives) {
  auto kernel = Parse(R"(
#define TPB 1
__global__ void axpy(int n, float a, const float* x, float* y) {
  const int i = blockIdx.x * TPB + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
int main() {
  const int n = 1 << 18;
  float *x, *y;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  axpy<<<n / TPB, TPB>>>(n, 2.0f, x, y);
}
)");
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  ASSERT_TRUE(MakeUserTemplate(*kernel));
  EXPECT_EQ(Space(*kernel), "TPB=1") << "no block of a warp in its place";
  EXPECT_EQ(Launched(*kernel).block.x, 1u);
  EXPECT_TRUE(*kernel->space.Allows({{int64_t{1}}}, kernel->spec.dims));
  EXPECT_TRUE(*kernel->space.Allows({{int64_t{32}}}, kernel->spec.dims));
}

}  // namespace
}  // namespace atunner
