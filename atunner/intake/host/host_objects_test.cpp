// Host classes: kernels launched by member functions, and launch configurations that are members or
// results of functions.
#include "atunner/intake/bare/bare_source_support_test.h"
#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

int64_t ElementsOf(const UserKernel& kernel, const std::string& name) {
  const ArgSpec* arg = kernel.spec.FindArg(name);
  return arg == nullptr ? -1 : ShapeOf(*arg, kernel.spec, kernel.spec.dims).value().elements;
}

constexpr const char* kStep = R"(
__global__ void step(const float* u, float* v, int nx, int ny, float c) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i < nx && j < ny) v[j * nx + i] = c * u[j * nx + i];
}
)";

constexpr const char* kSolver = R"(
namespace heat {
using real = float;
class Solver {
 public:
  Solver(int nx, int ny, real alpha) : nx_(nx), ny_{ny}, c_(alpha / 4), block_(32, 8), grid_((nx + 31) / 32, (ny + 7) / 8) {
    check(cudaMalloc(&u_, size() * sizeof(real)));
    allocate();
    cudaMemset(v_, 0, size());
  }
  ~Solver() { cudaFree(u_); }
  void advance(int steps);
  size_t size() const { return static_cast<size_t>(nx_) * ny_; }

 private:
  void allocate() { cudaMalloc((void**)&this->v_, size() * sizeof(real)); }
  int nx_, ny_;
  real c_;
  dim3 block_, grid_;
  real *u_ = nullptr, *v_{};
};
void Solver::advance(int steps) {
  for (int s = 0; s < steps; ++s) step<<<grid_, block_>>>(u_, v_, nx_, ny_, c_);
}
}  // namespace heat
)";

TEST(Objects, LaunchWithTheirMembers) {
  for (const char* made :
       {"heat::Solver solver(nx, 100, 0.5f); solver.advance(3);",
        "auto solver = std::make_unique<heat::Solver>(nx, 100, 0.5f); solver->advance(3);",
        "heat::Solver* solver = new heat::Solver{nx, 100, 0.5f}; solver->advance(3);"}) {
    auto kernel = Parse(std::string(kStep) + kSolver + "int main() { int nx = 1000; " + made +
                        " }\n");
    ASSERT_TRUE(kernel) << made << kernel.error().ToString();
    EXPECT_EQ(ElementsOf(*kernel, "u"), 100000) << made;
    EXPECT_EQ(ElementsOf(*kernel, "v"), 100000) << made;
    const ConcreteStep step = Launched(*kernel);
    EXPECT_EQ(step.grid.x, 32);
    EXPECT_EQ(step.grid.y, 13);
    EXPECT_EQ(step.block.y, 8);
    EXPECT_THAT(kernel->space.Names(), ElementsAre("block_x", "block_y"));
    EXPECT_THAT(kernel->source.text, Not(HasSubstr("Solver")));
    const auto c = kernel->plan.steps[0].args[4].value.Evaluate(Bindings(kernel->spec.dims));
    EXPECT_EQ(ToDouble(c.value()), 0.125);
  }
}

TEST(Objects, OfOneClassAreToldApart) {
  auto kernel = Parse(std::string(kStep) + R"(
struct Shape { int w, h; Shape(int w = 1, int h = 1) : w(w), h(h) {} int area() const { return w * h; } };
class Image {
 public:
  explicit Image(Shape shape) : shape_(shape) { cudaMalloc(&data_, shape_.area() * sizeof(float)); }
  float* data() { return data_; }
  const float* data() const { return data_; }
  int width() const { return shape_.w; }
  Shape shape_;
 private:
  float* data_;
};
inline unsigned blocks(int n, int per_block) { return (n + per_block - 1) / per_block; }
void run(const Image& in, Image& out) {
  dim3 grid(blocks(out.width(), 16), blocks(out.shape_.h, 16));
  step<<<grid, dim3(16, 16)>>>(in.data(), out.data(), out.width(), out.shape_.h, 1.f);
}
int main() {
  constexpr Shape shape{640, 480};
  Image large(shape), small(Shape(320, 200));
  run(large, small);
}
)");
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(ElementsOf(*kernel, "u"), 640 * 480);
  EXPECT_EQ(ElementsOf(*kernel, "v"), 320 * 200);
  EXPECT_EQ(Launched(*kernel).grid.x, 20);
}

TEST(Objects, AreAssignedAndFilledByFunctions) {
  auto kernel = Parse(std::string(kStep) + R"(
struct Matrix { int width, height; float* elements; };
Matrix make(int height, int width) {
  Matrix m;
  m.height = height;
  m.width = width;
  cudaMallocManaged(&m.elements, height * width * sizeof(float));
  return m;
}
struct Layer {
  Matrix out;
  void setup(const Matrix& in) { this->out = make(in.height, 2 * in.width); }
  void forward(Matrix& in) {
    setup(in);
    step<<<dim3(4, in.height), 256>>>(in.elements, out.elements, out.width, out.height, 1.f);
  }
};
int main() { Matrix a = make(48, 500); Layer layer; layer.forward(a); }
)");
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(ElementsOf(*kernel, "u"), 48 * 500);
  EXPECT_EQ(ElementsOf(*kernel, "v"), 48 * 1000);
  EXPECT_EQ(Launched(*kernel).grid.y, 48);
}

TEST(Objects, HoldConfigurations) {
  const std::string host = R"(
struct Launch { dim3 grid; dim3 block; size_t shared = 0; };
struct Sizes { int nx = 300; int ny = 40; };
struct Atoms { float *u, *v; };
static int up(int n, int by) { int more = n + by - 1; return more / by; }
Launch by_name(const Sizes& s) { Launch l; l.block = dim3(64, 2); l.grid = dim3(up(s.nx, 64), up(s.ny, 2)); l.shared = 128; return l; }
Launch listed(const Sizes& s) { dim3 grid(up(s.nx, 64), up(s.ny, 2)); return {grid, dim3(64, 2), 128}; }
std::tuple<dim3, dim3> bound(const Sizes& s) { const dim3 block{64, 2}; return {dim3(up(s.nx, 64), up(s.ny, 2)), block}; }
dim3 grid_of(Sizes s) { if (s.nx < 2) return dim3(1); return dim3(up(s.nx, 64), up(s.ny, 2)); }
void allocate(Atoms* a, const Sizes& s) { cudaMalloc(&a->u, s.nx * s.ny * 4); cudaMalloc(&a->v, s.nx * s.ny * 4); }
int main(int argc, char** argv) {
  Sizes s;
  if (argc > 1) s.nx = atoi(argv[1]);
  Atoms a;
  allocate(&a, s);
)";
  for (const char* launch :
       {"auto l = by_name(s); step<<<l.grid, l.block, l.shared>>>(a.u, a.v, s.nx, s.ny, 1);",
        "const Launch l = listed(s); step<<<l.grid, l.block, l.shared>>>(a.u, a.v, s.nx, s.ny, 1);",
        "const auto [g, b] = bound(s); step<<<g, b, 128>>>(a.u, a.v, s.nx, s.ny, 1);",
        "dim3 g = grid_of(s); step<<<g, dim3(64, 2), 128>>>(a.u, a.v, s.nx, s.ny, 1);",
        "auto up2 = [](int n, int by) { return (n + by - 1) / by; };\n"
        "dim3 g(up2(s.nx, 64), up2(s.ny, 2)); step<<<g, dim3(64, 2), 128>>>(a.u, a.v, s.nx, s.ny, "
        "1);"}) {
    auto kernel = Parse(kStep + host + launch + "\n}\n");
    ASSERT_TRUE(kernel) << launch << kernel.error().ToString();
    const ConcreteStep step = Launched(*kernel);
    EXPECT_EQ(step.grid.x, 5) << launch;
    EXPECT_EQ(step.grid.y, 20) << launch;
    EXPECT_EQ(step.block.x, 64) << launch;
    EXPECT_EQ(step.shared_bytes, 128) << launch;
    EXPECT_EQ(kernel->spec.dims.at("nx"), 300) << launch;
    EXPECT_EQ(ElementsOf(*kernel, "v"), 12000) << launch;
  }
}

TEST(Objects, HaveConstantsThatAreNoSizes) {
  auto kernel = Parse(R"(
template <int BM, int HEAD> struct Policy {
  static constexpr int kRows = BM, kThreads = 2 * BM;
  static constexpr size_t bytes() { return BM * HEAD * sizeof(float); }
};
template <class P> __global__ void scores(const float* q, float* s, int len) { s[threadIdx.x] = q[len % P::kRows]; }
class Layer {
 public:
  Layer(int len) : len_(len) { cudaMalloc(&q_, len * kHead * 4); cudaMalloc(&s_, len * 4); }
  void run() { scores<P><<<len_ / P::kRows, P::kThreads, P::bytes()>>>(q_, s_, len_); }
 private:
  static constexpr int kHead = 64;
  using P = Policy<16, kHead>;
  const int len_;
  float *q_, *s_;
};
int main() { Layer layer(1024); layer.run(); }
)");
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(kernel->spec.dims, (Dims{{"len", 1024}}));
  const ConcreteStep step = Launched(*kernel);
  EXPECT_EQ(step.entry, "scores<Policy<16, 64>>");
  EXPECT_EQ(step.shared_bytes, 4096);
  EXPECT_EQ(step.block.x, 32);
}

TEST(Objects, ThatOwnMemoryAreTemplates) {
  auto kernel = Parse(std::string(kStep) + R"(
template <typename T> class Array {
 public:
  Array(size_t rows, size_t cols) : count_(rows * cols) { cudaMalloc(reinterpret_cast<void**>(&ptr_), count_ * sizeof(T)); }
  T* data() noexcept { return ptr_; }
 private:
  T* ptr_ = nullptr;
  size_t count_ = 0;
};
template <typename T> using owned = std::unique_ptr<T[], void (*)(void*)>;
template <typename T> owned<T> make(size_t n) {
  T* raw = nullptr;
  if (cudaMalloc(&raw, n * sizeof(T)) != cudaSuccess) throw 1;
  return owned<T>(raw, nullptr);
}
int main() {
  Array<float> u(30, 50);
  auto v = make<float>(1600);
  step<<<6, 256>>>(u.data(), v.get(), 50, 30, 1);
}
)");
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(ElementsOf(*kernel, "u"), 1500);
  EXPECT_EQ(ElementsOf(*kernel, "v"), 1600);
}

TEST(Objects, SwapAndAssignThemselvesWithoutEnd) {
  EXPECT_THAT(ErrorOf(std::string(kStep) + R"(
struct Pair : Other { Pair other(); Pair() : Other(1) { go(); } void go() { n = last; } Pair* next; float* u; int n; };
struct Other : Pair { Other(int n) : Pair(), last(n) {} int last; };
int depth(int n) { return depth(n); }
int main() {
  Pair p = p.other();
  p.n = p.n;
  p.u = p.next->u;
  step<<<depth(p.n), 256>>>(p.u, p.next->next->u, p.n, p.next->n, 1);
}
)"),
              HasSubstr("does not say everything"));
}

TEST(Objects, AreAskedForByPath) {
  const std::string error = ErrorOf(
      std::string(kStep) +
      "void op(context& ctx, tensor* dst) {\n"
      "step<<<dst->ne[1], 256>>>(ctx.u, ctx.v, dst->rows, ctx.shape.cols, 1); }\n");
  EXPECT_THAT(error, HasSubstr("// atunner: size dst_rows = VALUE"));
  EXPECT_THAT(error, HasSubstr("// atunner: size ctx_shape_cols = VALUE"));
}

TEST(Objects, ParametersAreAskedForRatherThanWhatFollows) {
  const std::string error = ErrorOf(std::string(kStep) + R"(
static inline dim3 grid2d(int cols, int rows) { return dim3((cols + 15) / 16, (rows + 15) / 16, 1); }
extern "C" int run(const float* h, int nx, int ny) {
  float *u, *v;
  size_t bytes = (size_t)nx * ny * sizeof(float);
  cudaMalloc(&u, bytes); cudaMalloc(&v, bytes);
  dim3 blocks = grid2d(nx, ny);
  step<<<blocks, dim3(16, 16)>>>(u, v, nx, ny, 1);
  return 0;
}
)");
  EXPECT_THAT(error, HasSubstr("// atunner: size nx = VALUE"));
  EXPECT_THAT(error, HasSubstr("// atunner: size ny = VALUE"));
  for (const char* no : {"bytes", "cols", "grid2d", "ELEMENTS"})
    EXPECT_THAT(error, Not(HasSubstr(no)));
}

TEST(Objects, BuffersInArraysAreSeveral) {
  auto kernel = Parse(std::string(kStep) + R"(
int main() {
  const int n = 4096, parts = 4, part = n / parts;
  float *u[4], *v;
  for (int s = 0; s < parts; ++s) cudaMalloc(&u[s], part * sizeof(float));
  cudaMalloc(&v, n * sizeof(float));
  for (int s = 0; s < parts; ++s) {
    const int offset = s * part;
    step<<<part / 256, 256>>>(u[s], &v[offset], part, 1, 1);
  }
}
)");
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(ElementsOf(*kernel, "u"), 1024);
  EXPECT_EQ(ElementsOf(*kernel, "v"), 4096);
}

TEST(Objects, ConfigureLaunchesElsewhere) {
  auto kernel = Parse(std::string(kStep) + R"(
static cudaLaunchConfig_t config_of(int blocks, int threads) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim.x = threads;
  config.blockDim.y = 2;
  config.dynamicSmemBytes = 4 * threads;
  return config;
}
int main() {
  const int n = 4096;
  float *u, *v;
  cudaMalloc(&u, 4 * n); cudaMalloc(&v, 4 * n);
  cudaLaunchConfig_t config = config_of(16, 128);
  cudaLaunchKernelEx(&config, step, (const float*)u, v, n, 1, 1.f);
}
)");
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  const ConcreteStep step = Launched(*kernel);
  EXPECT_EQ(step.grid.x, 16);
  EXPECT_EQ(step.block.x, 128);
  EXPECT_EQ(step.block.y, 2);
  EXPECT_EQ(step.shared_bytes, 512);
}

TEST(Objects, ArgumentsOfLaunchesMayBeWrittenOneByOne) {
  auto kernel = Parse(std::string(kStep) + R"(
cudaError_t launch(float* u, float* v, int n) {
  void* args[5];
  int one = 1;
  float c = 2;
  args[0] = &u;
  args[1] = (void*)&v;
  args[2] = &n; args[3] = &one; args[4] = &c;
  return cudaLaunchKernel(reinterpret_cast<const void*>(&step), dim3(n / 256), dim3(256), args, 0, 0);
}
int main() { float *x, *y; cudaMalloc(&x, 8192); cudaMalloc(&y, 8192); launch(x, y, 2048); }
)");
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(ElementsOf(*kernel, "v"), 2048);
  EXPECT_EQ(Launched(*kernel).grid.x, 8);
}

TEST(Objects, HaveTheMembersOfTheirBases) {
  auto kernel = Parse(std::string(kStep) + R"(
class Base {
 public:
  Base(int n) : n_(n) { cudaMalloc(&u_, n * 4); }
  void grow() { cudaMalloc(&v_, 2 * n_ * 4); }
 protected:
  int n_;
  float *u_, *v_;
};
class Derived final : public Base {
 public:
  Derived(int n) : Base(3 * n), rows_(2) {}
  void go() { step<<<dim3((n_ + 127) / 128, rows_), 128>>>(u_, v_, n_, rows_, 1); }
 private:
  int rows_;
};
int main() { Derived d(259); d.grow(); d.go(); }
)");
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(ElementsOf(*kernel, "u"), 777);
  EXPECT_EQ(ElementsOf(*kernel, "v"), 1554);
  EXPECT_EQ(Launched(*kernel).grid.x, 7);
}

TEST(Objects, MayBeVariablesOfTheFile) {
  auto kernel = Parse(std::string(kStep) + R"(
struct State { float* v; int ny; };
static float* d_u = NULL;
static State state;
int NX = 300, steps;
void init(int ny) {
  state.ny = ny;
  cudaMalloc((void**)&d_u, NX * ny * sizeof(float));
  cudaMalloc(&state.v, NX * ny * sizeof(float));
}
void go() { step<<<dim3((NX + 63) / 64, state.ny), 64>>>(d_u, state.v, NX, state.ny, 1); }
int main() { init(40); go(); }
)");
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(ElementsOf(*kernel, "u"), 12000);
  EXPECT_EQ(ElementsOf(*kernel, "v"), 12000);
  EXPECT_EQ(Launched(*kernel).grid.x, 5);
  EXPECT_EQ(Launched(*kernel).grid.y, 40);
}

TEST(Objects, AreChangedOnlyWhereConditionsHold) {
  const auto elements = [](const std::string& made) {
    auto kernel = Parse(std::string(kStep) + R"(
struct Buf {
  float* p = nullptr;
  int n;
  Buf(int count, bool wide = false) : n(count) {
    if (wide) n = 2 * count;
    cudaMalloc(&p, n * sizeof(float));
  }
};
int main() {
  int n = 512;
  if (n > 1000) n = 1;
  Buf u)" + made + R"(, v(n);
  step<<<1, 256>>>(u.p, v.p, u.n, 1, 1);
}
)");
    EXPECT_TRUE(kernel) << kernel.error().ToString();
    return kernel ? std::pair(ElementsOf(*kernel, "u"), ElementsOf(*kernel, "v"))
                  : std::pair<int64_t, int64_t>();
  };
  EXPECT_EQ(elements("(300)"), (std::pair<int64_t, int64_t>(300, 512)));
  EXPECT_EQ(elements("(300, true)"), (std::pair<int64_t, int64_t>(600, 512)));
}

TEST(Objects, ThatStatementsChangeAreAskedFor) {
  const std::string error = ErrorOf(std::string(kStep) + R"(
struct Sizes { int nx = 4; };
int main() {
  Sizes s; s.nx = 100;
  int ny = 30;
  s.nx *= 2;
  ny += 2;
  float *u, *v; cudaMalloc(&u, 99999); cudaMalloc(&v, 99999);
  step<<<dim3(2, ny), 64>>>(u, v, s.nx, ny, 1);
}
)");
  EXPECT_THAT(error, HasSubstr("// atunner: size ny = VALUE"));
  EXPECT_THAT(error, HasSubstr("// atunner: size s_nx = VALUE"));
}

TEST(Objects, TypesAndVariablesInNamespacesAreFound) {
  auto kernel = Parse(R"(
namespace lib {
using count_t = unsigned int;
template <int B> struct policy { static constexpr int block = B; };
enum class Mode : int { kFast };
namespace detail {
__constant__ float weights[4];
template <typename P, typename T> __global__ void fill(T* out) { out[blockIdx.x * P::block + threadIdx.x] = T(weights[0]); }
}
template <typename P = policy<64>, typename T> void run(const thrust::device_vector<T>& out) {
  float w[4] = {1, 2, 3, 4};
  cudaMemcpyToSymbol(detail::weights, w, sizeof(w));
  detail::fill<P><<<8, P::block>>>(thrust::raw_pointer_cast(out.data()));
}
}
int main() { thrust::device_vector<lib::count_t> v(512); lib::run(v); }
)");
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(Launched(*kernel).entry, "lib::detail::fill<lib::policy<64>, lib::count_t>");
  ASSERT_EQ(kernel->plan.symbols.size(), 1u);
  EXPECT_EQ(kernel->plan.symbols[0].symbol, "_ZN3lib6detail7weightsE");
}

TEST(Objects, OfTheHostAreNotForTheDevice) {
  const std::string source = std::string(kStep) + R"(
struct Stream { cudaStream_t s; void wait() { cudaStreamSynchronize(s); } };
class Pool { Stream streams[4]; };
struct Span {
  float* p;
  int n;
  __device__ float at(int i) const { return p[i]; }
  void fill() { cudaMemset(p, 0, 4 * n); }
};
struct Plain { int n; int twice() const { return 2 * n; } };
int main() { step<<<1, 32>>>(0, 0, 0, 0, 0); }
)";
  const std::string text = DeviceText(ParseCuda(source));
  for (const char* gone : {"Stream", "Pool", "cudaMemset", "fill"})
    EXPECT_THAT(text, Not(HasSubstr(gone)));
  for (const char* stays : {"float at(int i)", "twice"}) EXPECT_THAT(text, HasSubstr(stays));
}

}  // namespace
}  // namespace atunner
