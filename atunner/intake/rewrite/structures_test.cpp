// Kernels that take structures by value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "atunner/intake/bare/bare_source.h"
#include "atunner/intake/rewrite/structure_members.h"

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

/// The value of argument `index` of the launch.
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
  EXPECT_EQ(kernel.source.text.find("__global__"), kernel.source.text.rfind("__global__"))
      << "one of that name";
  EXPECT_EQ(
      std::ranges::count(kernel.source.text.substr(0, kernel.source.text.find("int i")), '\n'), 5)
      << "lines keep their numbers";
  EXPECT_THAT(kernel.notes,
              testing::Contains(HasSubstr("'p' is passed member by member: p_alpha, p_beta, p_n")));
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
    const UserKernel kernel = Parse(
        std::string(kAxpby) + "int main() { float *x, *y; cudaMalloc(&x, 4096); " +
        "cudaMalloc(&y, 4096); " + filled + " axpby<<<4, 256>>>(p, x, y); }");
    EXPECT_EQ(NumberAt(kernel, 0), "2") << filled;
    EXPECT_EQ(NumberAt(kernel, 1), "0.5") << filled;
    EXPECT_EQ(NumberAt(kernel, 2), "1024") << filled;
  }
  const UserKernel in_place = Parse(
      std::string(kAxpby) + "int main() { float *x, *y; cudaMalloc(&x, 4096); " +
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
  EXPECT_THAT(kernel.source.text,
              HasSubstr("Matrix a = {a_width, a_height, a_stride, a_elements};"));
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
  for (const char* launch :
       {"map<<<n / 256, 256>>>(x, twice, n); }", "map<Scale><<<n / 256, 256>>>(x, twice, n); }",
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
  ASSERT_EQ(kernel.check_dims.size(), 2u);
  EXPECT_EQ(kernel.check_dims.back().at("seconds"), 1000) << "no size";
  EXPECT_EQ(kernel.check_dims.back().at("count"), 4096);
}

TEST(Structures, OfTemplates) {
  const UserKernel kernel = Parse(R"(
namespace lib {
template <typename T, int DIM = 2> struct View {
  T* data;
  int shape[DIM];
  __host__ __device__ T& at(int r, int c) const { return data[r * shape[1] + c]; }
};
}
template <typename T> struct Pair { lib::View<T> first; T scale; };
template <typename T> __global__ void transpose(const lib::View<const T, 2> in, Pair<T> out) {
  int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
  if (r < in.shape[0] && c < in.shape[1]) out.first.at(c, r) = in.data[r * in.shape[1] + c] * out.scale;
}
template <typename T> void Transpose(lib::View<const T, 2> in, const Pair<T>& out) {
  transpose<<<dim3((in.shape[1] + 15) / 16, (in.shape[0] + 15) / 16), dim3(16, 16)>>>(in, out);
}
int main() {
  const int m = 100, n = 200;
  double *a, *b;
  cudaMalloc(&a, m * n * sizeof(double));
  cudaMalloc(&b, m * n * sizeof(double));
  lib::View<const double, 2> in{a, {m, n}};
  Pair<double> out;
  out.first = {b, {n, m}};
  out.scale = 0.5;
  Transpose<double>(in, out);
})");
  ASSERT_EQ(kernel.plan.steps.size(), 1u);
  EXPECT_EQ(kernel.plan.steps[0].entry, "transpose<double>");
  EXPECT_EQ(ElementsOf(kernel, "in_data"), 20'000);
  EXPECT_EQ(ElementsOf(kernel, "out_first_data"), 20'000);
  EXPECT_EQ(NumberAt(kernel, 2), "200") << "in.shape[1]";
  EXPECT_EQ(NumberAt(kernel, 4), "200") << "out.first.shape[0]";
  EXPECT_EQ(NumberAt(kernel, 6), "0.5");
  EXPECT_THAT(kernel.source.text,
              HasSubstr("Pair<T> out = {{out_first_data, {out_first_shape_0, out_first_shape_1}}"));
}

TEST(Structures, OfTemplatesThatHoldThemselvesEnd) {
  const std::string source =
      "template <int N> struct S { S<N> again; S<N + 1> next; int n; };\n"
      "__global__ void k(S<1> s, float* x) { x[s.n] = 1; }\n";
  EXPECT_TRUE(WithMembersApart(source).text == source);
}

TEST(Structures, AreWhatLambdasBecome) {
  const std::string head = R"(
template <typename T, typename F> __global__ void map(T* x, int n, F f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = f(i);
}
template <typename F> void ForAll(float* x, int n, F f) { map<<<(n + 63) / 64, 64>>>(x, n, f); }
int main() {
  const int n = 512;
  float *x, *y, by = 2.5f;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
)";
  for (const char* launch :
       {"map<<<8, 64>>>(x, n, [=] __device__(int i) { return y[i] * by; });\n}",
        "auto f = [y, by] DEVICE (int i) -> float {\n float v = y[i]; return v * by; "
        "};\nmap<float><<<8, 64>>>(x, n, "
        "f);\n}",
        "ForAll(x, n, [=] __host__ __device__ (int i) { return y[i] * by; });\n}"}) {
    const UserKernel kernel = Parse(head + launch);
    ASSERT_EQ(kernel.plan.steps.size(), 1u) << launch;
    EXPECT_THAT(kernel.plan.steps[0].entry, testing::StartsWith("map<float, Lambda_")) << launch;
    EXPECT_EQ(ElementsOf(kernel, "f_y"), 512) << launch;
    EXPECT_EQ(NumberAt(kernel, 3), "2.5") << launch;
    EXPECT_THAT(kernel.source.text, HasSubstr(" { float *y; float by; __device__ "));
  }
}

TEST(Structures, OfSeveralTypesAreBytesInArrays) {
  const std::string source = R"(
#define QK 32
typedef struct { half d; int8_t qs[QK / 2]; bool odd; } block_q;
__device__ float Value(const void* vx, int i) { const block_q* x = (const block_q*)vx; return x[i / QK].qs[i % 16]; }
__global__ void dequantize(const PARAMETER* __restrict__ vx, float* y, int k) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < k) y[i] = Value(vx, i);
}
void Run(const PARAMETER* blocks, float* y, int k) { dequantize<<<(k + 127) / 128, 128>>>(blocks, y, k); }
int main() {
  const int k = 4096;
  PARAMETER* x; float* y;
  cudaMalloc((void**)&x, k / QK * sizeof(block_q));
  cudaMalloc(&y, k * sizeof(float));
  Run(x, y, k);
})";
  for (const std::string parameter : {"void", "block_q"}) {
    std::string text = source;
    for (size_t at; (at = text.find("PARAMETER")) != std::string::npos;)
      text.replace(at, 9, parameter);
    const UserKernel kernel = Parse(text);
    const ArgSpec* vx = kernel.spec.FindArg("vx");
    ASSERT_NE(vx, nullptr);
    EXPECT_EQ(vx->dtype, DType::kUInt8);
    EXPECT_EQ(ElementsOf(kernel, "vx"), 128 * 20) << "19 bytes, and one for the alignment of half";
    EXPECT_EQ(vx->fill.path,
              "1 if i % 20 == 18 else 48 if i % 20 == 1 else i * 2654435761 // 65536 % 256");
    EXPECT_THAT(kernel.notes, testing::Contains(HasSubstr("'vx' is bytes of 'block_q'")));
  }
}

TEST(Structures, ThatAreMoreThanDataStay) {
  const char* sources[] = {
      "struct S { virtual int f() { return n; } int n; };\n__global__ void k(S s, float* x) { "
      "x[s.n] = 1; }\n",
      "struct S { union { int n; float f; }; };\n__global__ void k(S s, float* x) { x[s.n] = 1; "
      "}\n",
      "struct B { int m; };\nstruct S : B { int n; };\n__global__ void k(S s, float* x) { x[s.n] = "
      "1; }\n",
      "struct S { S(float4 a) : a(a) {} float4 a; };\n__global__ void k(S s, float* x) { x[0] = "
      "s.a.x; }\n",
  };
  for (const std::string source : sources) EXPECT_EQ(WithMembersApart(source).text, source);
}

constexpr const char* kCamera = R"(
struct Vec3 {
  float x, y, z;
  __host__ __device__ Vec3() : x(0), y(0), z(0) {}
  __host__ __device__ Vec3(float a, float b, float c) : x(a), y(b), z{c} {}
  __host__ __device__ ~Vec3() = default;
  __device__ Vec3 operator+(const Vec3& o) const { return Vec3(x + o.x, y + o.y, z + o.z); }
  __device__ float length() const;
};
class Camera {
 public:
  __host__ __device__ Camera(Vec3 origin, float fov, int steps = 9) : origin_(origin), fov_(fov / 2), steps_(steps) {}
  __device__ float reach() const { return origin_.x + origin_.z + fov_; }
 private:
  Vec3 origin_;
  float fov_;
  int steps_;
};
__global__ void render(const Camera cam, float* image, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) image[i] = cam.reach();
}
)";

TEST(Structures, WithConstructorsAreMadeWithoutThem) {
  for (const char* launch :
       {"Camera cam(Vec3(0, 2, 1), 0.5f); render<<<4, 256>>>(cam, image, 1024);",
        "render<<<4, 256>>>(Camera(Vec3(0, 2, 1), 0.5f), image, 1024);"}) {
    const UserKernel kernel = Parse(std::string(kCamera) +
                                    "int main() { float* image; cudaMalloc(&image, 4096); " +
                                    launch + " }");
    EXPECT_EQ(NumberAt(kernel, 0), "0") << launch;
    EXPECT_EQ(NumberAt(kernel, 1), "2") << launch;
    EXPECT_EQ(NumberAt(kernel, 3), "0.25") << launch;
    EXPECT_EQ(NumberAt(kernel, 4), "9") << launch;
    EXPECT_FALSE(kernel.spec.dims.contains("b")) << "a fraction, to the constructor";
    EXPECT_THAT(
        kernel.source.text,
        HasSubstr("struct { struct { float m0; float m1; float m2; } s0; float m3; int m4; } "
                  "members_of_cam = "
                  "{{cam_origin__x, cam_origin__y, cam_origin__z}, cam_fov_, cam_steps_}; "));
    EXPECT_THAT(kernel.source.text,
                HasSubstr("Camera& cam = reinterpret_cast<Camera&>(members_of_cam); "));
  }
}

TEST(Structures, UnknownMembersAreAskedForByName) {
  const auto kernel = ParseBareSource(
      std::string(kAxpby) +
          "int main() { float *x, *y; cudaMalloc(&x, 4096); "
          "cudaMalloc(&y, 4096); axpby<<<4, 256>>>(Load(\"p.json\"), x, y); }",
      "k.cu", {});
  ASSERT_FALSE(kernel);
  EXPECT_THAT(kernel.error().ToString(), HasSubstr("// atunner: size p_n = VALUE"));
}

}  // namespace
}  // namespace atunner
