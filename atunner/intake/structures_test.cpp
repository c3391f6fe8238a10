// Structures by value: what becomes of kernels that take them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "atunner/intake/bare_source.h"
#include "atunner/intake/structure_members.h"

namespace atunner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

UserKernel Parse(const std::string& source, const std::string& kernel = "") {
  SourceOptions options;
  options.kernel = kernel;
  auto parsed = ParseBareSource(source, "k.cu", options);
  EXPECT_TRUE(parsed) << parsed.error().ToString();
  return parsed ? *std::move(parsed) : UserKernel();
}

/// The number that argument `index` of the launch is.
std::string NumberAt(const UserKernel& kernel, size_t index) {
  if (kernel.plan.steps.empty() || index >= kernel.plan.steps[0].args.size()) return "missing";
  const ArgBinding& binding = kernel.plan.steps[0].args[index];
  if (binding.kind != ArgBinding::Kind::kScalar) return "no scalar";
  const auto value = binding.value.Evaluate(Bindings(kernel.spec.dims));
  return value ? ToString(*value) : value.error().ToString();
}

int64_t ElementsOf(const UserKernel& kernel, const std::string& name) {
  const ArgSpec* arg = kernel.spec.FindArg(name);
  return arg == nullptr ? -1 : ShapeOf(*arg, kernel.spec, kernel.spec.dims).value().elements;
}

constexpr const char* kAxpby = R"(
struct Params { float alpha; float beta; int n; };
__global__ void axpby(Params p, const float* x, float* y);
__global__ void axpby(Params p, const float* x,
                      float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < p.n) y[i] = p.alpha * x[i] + p.beta * y[i];
}
)";

TEST(Structures, BecomeNumbers) {
  const UserKernel kernel = Parse(std::string(kAxpby) + R"(int main() {
  Params p{2.f, 0.5f, 1 << 10};
  float *x, *y;
  cudaMalloc(&x, p.n * sizeof(float));
  cudaMalloc(&y, p.n * sizeof(float));
  axpby<<<(p.n + 255) / 256, 256>>>(p, x, y);
})");
  EXPECT_EQ(NumberAt(kernel, 0), "2");
  EXPECT_EQ(NumberAt(kernel, 1), "0.5");
  EXPECT_EQ(NumberAt(kernel, 2), "1024");
  EXPECT_EQ(ElementsOf(kernel, "y"), 1024);
  EXPECT_EQ(kernel.spec.FindArg("x")->role, Role::kInput);
  EXPECT_THAT(kernel.source.text, HasSubstr("y[i] = p_alpha * x[i] + p_beta * y[i];"));
  EXPECT_EQ(kernel.source.text.find("__global__"), kernel.source.text.rfind("__global__")) << "one of that name";
  EXPECT_EQ(std::ranges::count(kernel.source.text.substr(0, kernel.source.text.find("int i")), '\n'), 5)
      << "lines keep their numbers";
  EXPECT_THAT(kernel.notes, testing::Contains(HasSubstr("'p' is passed member by member: p_alpha, p_beta, p_n")));
}

TEST(Structures, AreFilledAsPeopleFillThem) {
  for (const char* filled : {
           "Params p = {2.f, 0.5f, 1024};",
           "Params p{.alpha = 2.f, .beta = 0.5f, .n = 1024};",
           "Params p = Params{2.f, 0.5f, 1024};",
           "auto p = Params{2.f, 0.5f, 1024};",
           "const int n = 1024; Params p; p.alpha = 2.f; p.n = n; p.beta = 0.5f;",
           "struct Params q = {2.f, 0.5f, 1024}; Params p = q;",
       }) {
    const UserKernel kernel = Parse(std::string(kAxpby) + "int main() { float *x, *y; cudaMalloc(&x, 4096); " +
                                    "cudaMalloc(&y, 4096); " + filled + " axpby<<<4, 256>>>(p, x, y); }");
    EXPECT_EQ(NumberAt(kernel, 0), "2") << filled;
    EXPECT_EQ(NumberAt(kernel, 1), "0.5") << filled;
    EXPECT_EQ(NumberAt(kernel, 2), "1024") << filled;
  }
  const UserKernel in_place = Parse(std::string(kAxpby) + "int main() { float *x, *y; cudaMalloc(&x, 4096); " +
                                    "cudaMalloc(&y, 4096); axpby<<<4, 256>>>({2.f, 0.5f, 1024}, x, y); }");
  EXPECT_EQ(NumberAt(in_place, 2), "1024");
}

TEST(Structures, AreHandedOnByFunctions) {
  const UserKernel kernel = Parse(std::string(kAxpby) + R"(
void launch(const Params& params, float* x, float* y) {
  axpby<<<(params.n + 127) / 128, 128>>>(params, x, y);
}
int main() {
  Params mine = {3.f, 1.f, 4096};
  float *x, *y;
  cudaMalloc(&x, 4 * mine.n);
  cudaMalloc(&y, 4 * mine.n);
  launch(mine, x, y);
})");
  EXPECT_EQ(NumberAt(kernel, 0), "3");
  EXPECT_EQ(NumberAt(kernel, 2), "4096");
}

TEST(Structures, OfPointersAreBuffers) {
  const UserKernel kernel = Parse(R"(
typedef struct { int width, height, stride; float* elements; } Matrix;
__device__ float At(const Matrix m, int row, int column) { return m.elements[row * m.stride + column]; }
__global__ void product(Matrix a, Matrix b, Matrix c) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int e = 0; e < a.width; ++e) sum += At(a, row, e) * At(b, e, column);
  c.elements[row * c.stride + column] = sum;
}
int main() {
  Matrix A, B, C;
  A.width = A.stride = 128; A.height = 64;
  B.width = B.stride = 96; B.height = 128;
  C.width = C.stride = 96; C.height = 64;
  cudaMalloc(&A.elements, A.width * A.height * sizeof(float));
  cudaMalloc(&B.elements, B.width * B.height * sizeof(float));
  cudaMalloc(&C.elements, C.width * C.height * sizeof(float));
  dim3 block(16, 16), grid(B.width / block.x, A.height / block.y);
  product<<<grid, block>>>(A, B, C);
})");
  EXPECT_EQ(ElementsOf(kernel, "a_elements"), 128 * 64);
  EXPECT_EQ(ElementsOf(kernel, "c_elements"), 96 * 64);
  EXPECT_EQ(kernel.spec.FindArg("c_elements")->role, Role::kOutput);
  EXPECT_EQ(NumberAt(kernel, 6), "96") << "b.stride";
  EXPECT_THAT(kernel.source.text, HasSubstr("Matrix a = {a_width, a_height, a_stride, a_elements};"));
  EXPECT_THAT(kernel.source.text, Not(HasSubstr("Matrix c =")));
}

TEST(Structures, InsideOfOthersAndVectors) {
  const UserKernel kernel = Parse(R"(
struct Grid { int3 size; float origin[2]; const float* __restrict__ data = nullptr; };
__global__ void sample(const __grid_constant__ Grid g, float3 at, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < g.size.x) out[i] = g.data[i] * at.y + g.origin[1] + g.size.z;
}
int main() {
  const int n = 2048;
  float *data, *out;
  cudaMalloc(&data, n * sizeof(float));
  cudaMalloc(&out, n * sizeof(float));
  Grid g;
  g.size = make_int3(n, 1, 1);
  g.size.x = n; g.size.y = 2; g.size.z = 3;
  g.origin[0] = -1; g.origin[1] = 0.25f;
  g.data = data;
  sample<<<n / 256, 256>>>(g, make_float3(1.f, 2.f, 3.f), out);
})");
  EXPECT_EQ(NumberAt(kernel, 0), "2048");
  EXPECT_EQ(NumberAt(kernel, 2), "3");
  EXPECT_EQ(NumberAt(kernel, 3), "-1");
  EXPECT_FALSE(kernel.spec.dims.contains("g_origin_0")) << "no size";
  EXPECT_EQ(NumberAt(kernel, 4), "0.25");
  EXPECT_EQ(ElementsOf(kernel, "g_data"), 2048);
  EXPECT_EQ(NumberAt(kernel, 7), "2.0") << "at.y";
}

TEST(Structures, AreAssignedInParts) {
  const UserKernel kernel = Parse(R"(
struct Strides { long long row, column; };
struct Job { float* out; Strides strides; float2 range; bool wrap = true; };
__global__ void fill(Job job) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  job.out[i * job.strides.column] = job.wrap ? job.range.x : job.range.y + job.strides.row;
}
int main() {
  const int n = 512;
  float* out;
  cudaMalloc(&out, n * sizeof(float));
  Job job;
  job.out = out;
  job.strides = {n, 1};
  job.range = make_float2(0.5f, 2.5f);
  fill<<<n / 128, 128>>>(job);
})");
  EXPECT_EQ(ElementsOf(kernel, "job_out"), 512);
  EXPECT_EQ(NumberAt(kernel, 1), "512");
  EXPECT_EQ(NumberAt(kernel, 4), "2.5");
  EXPECT_EQ(NumberAt(kernel, 5), "1") << "wrap";
}

TEST(Structures, AreFunctionObjects) {
  const std::string source = R"(
struct Scale { float by; __device__ float operator()(float v) const { return v * by; } };
struct Negate { __device__ float operator()(float v) const { return -v; } };
template <typename F> __global__ void map(float* x, F f, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = f(x[i]);
}
int main() {
  const int n = 1024;
  float* x;
  cudaMalloc(&x, n * sizeof(float));
  Scale twice{2.5f};
  )";
  for (const char* launch : {"map<<<n / 256, 256>>>(x, twice, n); }", "map<Scale><<<n / 256, 256>>>(x, twice, n); }",
                             "map<<<n / 256, 256>>>(x, Scale{2.5f}, n); }"}) {
    const UserKernel kernel = Parse(source + launch);
    ASSERT_EQ(kernel.plan.steps.size(), 1u) << launch;
    EXPECT_EQ(kernel.plan.steps[0].entry, "map<Scale>") << launch;
    EXPECT_EQ(NumberAt(kernel, 1), "2.5") << launch;
    EXPECT_THAT(kernel.source.text, HasSubstr("F f = {f_by};"));
  }
  const UserKernel kernel = Parse(source + "map<<<n / 256, 256>>>(x, Negate(), n); }");
  EXPECT_EQ(kernel.plan.steps[0].entry, "map<Negate>");
  EXPECT_THAT(kernel.source.text, HasSubstr("F f = {};"));
}

TEST(Structures, OfFloatsMakeArrays) {
  const UserKernel kernel = Parse(R"(
struct Particle { float4 position; float velocity[3], mass; };
__global__ void drift(Particle* p, float seconds, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) p[i].position.x += p[i].velocity[0] * seconds;
}
int main() {
  int count = 1 << 15;
  float seconds = 1000;
  Particle* p;
  cudaMalloc(&p, count * sizeof *p);
  drift<<<count / 256, 256>>>(p, seconds, count);
})");
  EXPECT_EQ(ElementsOf(kernel, "p"), 8 << 15);
  ASSERT_EQ(kernel.check_dims.size(), 1u);
  EXPECT_EQ(kernel.check_dims[0].at("seconds"), 1000) << "no size";
  EXPECT_EQ(kernel.check_dims[0].at("count"), 4096);
}

TEST(Structures, ThatAreMoreThanDataStay) {
  const char* sources[] = {
      "struct S { S(int n) : n(n) {} int n; };\n__global__ void k(S s, float* x) { x[s.n] = 1; }\n",
      "struct S { union { int n; float f; }; };\n__global__ void k(S s, float* x) { x[s.n] = 1; }\n",
      "struct B { int m; };\nstruct S : B { int n; };\n__global__ void k(S s, float* x) { x[s.n] = 1; }\n",
      "class S { int n; };\n__global__ void k(S s, float* x) { x[0] = 1; }\n",
  };
  for (const std::string source : sources) EXPECT_EQ(WithMembersApart(source).text, source);
}

TEST(Structures, UnknownMembersAreAskedForByName) {
  const auto kernel = ParseBareSource(std::string(kAxpby) +
                                          "int main() { float *x, *y; cudaMalloc(&x, 4096); "
                                          "cudaMalloc(&y, 4096); axpby<<<4, 256>>>(Load(\"p.json\"), x, y); }",
                                      "k.cu", {});
  ASSERT_FALSE(kernel);
  EXPECT_THAT(kernel.error().ToString(), HasSubstr("// atunner: size p_n = VALUE"));
}

}  // namespace
}  // namespace atunner
