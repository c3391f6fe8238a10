#include "atunner/intake/cuda/cuda_syntax.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace atunner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> KernelNames(const CudaSyntax& syntax) {
  std::vector<std::string> names;
  for (const KernelDefinition& kernel : syntax.kernels) names.push_back(kernel.qualified);
  return names;
}

TEST(CudaLexer, SkipsCommentsAndTextsAndKeepsLines) {
  const LexedSource lexed = Lex(
      "int a; // b\n/* c\n d */ 'x' \"\\\"e\" R\"(f)\" 0x1F 1'000u 1e-5f .5\n  #define G 1 \\\n "
      "2\nh<<<");
  std::vector<std::string> texts;
  for (const Token& token : lexed.tokens) texts.emplace_back(token.text);
  EXPECT_THAT(texts, ElementsAre("int", "a", ";", "'x'", "\"\\\"e\"", "R\"(f)\"", "0x1F", "1'000u",
                                 "1e-5f", ".5", "#define G 1 \\\n 2", "h", "<", "<", "<"));
  EXPECT_EQ(lexed.tokens.back().line, 6);
}

TEST(CudaLexer, FindsAnnotations) {
  const LexedSource lexed = Lex(
      "// atunner: tune A = 1, 2\n/* atunner: size n = 4 */\n#define A 1  // atunner: tune A = "
      "3\n// atunnel: no");
  ASSERT_EQ(lexed.annotations.size(), 3u);
  EXPECT_EQ(lexed.annotations[0].text, "tune A = 1, 2");
  EXPECT_EQ(lexed.annotations[1].text, "size n = 4");
  EXPECT_EQ(lexed.annotations[2].line, 3);
}

// Realistic files, each with the kernels that must be found, in order.
struct Snippet {
  const char* source;
  std::vector<std::string> kernels;
};

TEST(CudaSyntax, FindsKernelsInAwkwardFiles) {
  const std::vector<Snippet> snippets = {
      {"__global__ void a(float* x) {}", {"a"}},
      {"extern \"C\" __global__ void a(float* x) { if (x) { x[0] = 1; } }", {"a"}},
      {"extern \"C\" {\n__global__ void a() {}\n__global__ void b() {}\n}", {"a", "b"}},
      {"template <typename T, int N = 4> __global__ void a(T* x) {}", {"a"}},
      {"template <int A>\ntemplate <int B>\n__global__ void a() {}", {"a"}},
      {"__global__ __launch_bounds__(256, 2) void a() {}", {"a"}},
      {"__global__ void __launch_bounds__(256) a() {}", {"a"}},
      {"void __global__ a() {}", {"a"}},
      {"static __global__ void a() {}", {"a"}},
      {"namespace x { namespace y { __global__ void a() {} } }", {"x::y::a"}},
      {"namespace x::y { __global__ void a() {} }", {"x::y::a"}},
      {"namespace { __global__ void a() {} }", {"a"}},
      {"inline namespace v1 { __global__ void a() {} }", {"v1::a"}},
      {"__global__ void a();  // only declared\n__global__ void a() {}", {"a"}},
      {"// __global__ void no() {}\n/* __global__ void no() {} */\nconst char* s = \"__global__ "
       "void no() "
       "{}\";\n__global__ void a() {}",
       {"a"}},
      {"const char* s = R\"(__global__ void no() {})\";\n__global__ void a() {}", {"a"}},
      {"#define QUOTE '\n__global__ void a() {}", {"a"}},
      {"#if 1\n__global__ void a() {\n#else\n#endif\n}", {"a"}},
      {"struct S { int v[2] = {1, 2}; void f() {} };\n__global__ void a(S s) {}", {"a"}},
      {"int table[] = {1, 2, 3};\n__global__ void a() {}", {"a"}},
      {"__device__ float f(float x) { return x; }\n__global__ void a() {}", {"a"}},
      {"__attribute__((noinline)) __global__ void a() {}", {"a"}},
      {"using F = void (*)(int);\n__global__ void a() {}", {"a"}},
      {"auto l = [](int x) { return x; };\n__global__ void a() {}", {"a"}},
      {"template <class T> struct V {};\ntemplate <> struct V<int> { static void f() {} "
       "};\n__global__ void a() {}",
       {"a"}},
      {"__global__ void a(const float* __restrict__ x, float (&y)[4]) {}", {"a"}},
      {"class C { public: __host__ __device__ C() : v(0) {} int v; };\n__global__ void a() {}",
       {"a"}},
      {"__global__ void a() {", {"a"}},
      {"", {}},
      {"}}}} __global__ void a() {}", {"a"}},
      {"enum { N = 4 };\n__global__ void a() {}", {"a"}},
  };
  for (const Snippet& snippet : snippets) {
    EXPECT_EQ(KernelNames(ParseCuda(snippet.source)), snippet.kernels) << snippet.source;
  }
}

TEST(CudaSyntax, ReadsParameters) {
  const std::string source =
      "template <typename T> __global__ void a(const float* __restrict__ x, T *y, unsigned long "
      "long n, float4 v[], "
      "const int k = 3, "
      "const std::size_t s, thrust::pair<int, float> p) {}";
  const CudaSyntax syntax = ParseCuda(source);
  ASSERT_EQ(syntax.kernels.size(), 1u);
  const auto& parameters = syntax.kernels[0].parameters;
  ASSERT_EQ(parameters.size(), 7u);
  EXPECT_TRUE(parameters[0].pointer && parameters[0].is_const);
  EXPECT_EQ(parameters[0].name, "x");
  EXPECT_EQ(parameters[1].type, "T");
  EXPECT_FALSE(parameters[1].is_const);
  EXPECT_EQ(parameters[2].type, "unsigned long long");
  EXPECT_TRUE(parameters[3].pointer);
  EXPECT_EQ(parameters[4].name, "k");
  EXPECT_FALSE(parameters[4].pointer);
  EXPECT_EQ(parameters[5].type, "std::size_t");
  EXPECT_EQ(parameters[6].name, "p");
}

TEST(CudaSyntax, ReadsLaunches) {
  const std::string source =
      "template <int N, class T> __global__ void k(T* x, int n) {}\n"
      "void f(float* d, int n) {\n  x::k<128, std::pair<int, int>><<<dim3(n / 2, 1), dim3{128}, 4 "
      "* sizeof(float), "
      "0>>>(d, max(n, 3));\n}\n"
      "void g() { a << 3; b >> 2; }";
  const CudaSyntax syntax = ParseCuda(source);
  ASSERT_EQ(syntax.launches.size(), 1u);
  const KernelLaunch& launch = syntax.launches[0];
  EXPECT_EQ(launch.kernel, "x::k");
  ASSERT_EQ(launch.template_args.size(), 2u);
  EXPECT_EQ(syntax.Text(launch.template_args[1]), "std::pair<int, int>");
  ASSERT_EQ(launch.configuration.size(), 4u);
  EXPECT_EQ(syntax.Text(launch.configuration[0]), "dim3(n / 2, 1)");
  ASSERT_EQ(launch.arguments.size(), 2u);
  EXPECT_EQ(syntax.Text(launch.arguments[1]), "max(n, 3)");
  EXPECT_EQ(syntax.functions[launch.function].name, "f");
}

TEST(CudaSyntax, ReadsConstants) {
  const std::string source =
      "#ifndef A\n#define A 4 // four\n#endif\n#define B(x) x\n#define C\nconstexpr int D = 8, E = "
      "A * 2;\nstatic "
      "const int F = 3;\nenum { G = 5 };\nint h = 6;\n";
  const CudaSyntax syntax = ParseCuda(source);
  ASSERT_NE(syntax.FindConstant("A"), nullptr);
  EXPECT_TRUE(syntax.FindConstant("A")->guarded);
  EXPECT_EQ(syntax.FindConstant("A")->value, "4");
  EXPECT_EQ(source.substr(syntax.FindConstant("A")->offset, 1), "4");
  EXPECT_EQ(syntax.FindConstant("B"), nullptr);
  EXPECT_EQ(syntax.FindConstant("C"), nullptr);
  EXPECT_EQ(syntax.FindConstant("E")->value, "A * 2");
  EXPECT_EQ(syntax.FindConstant("F")->value, "3");
  EXPECT_EQ(syntax.FindConstant("G")->value, "5");
  EXPECT_EQ(syntax.FindConstant("h"), nullptr);
}

TEST(CudaSyntax, DeviceTextBlanksWhatIsTheHosts) {
  const std::string source =
      "#include <vector>\nusing namespace std;\nstd::vector<int> v;\n__device__ int d;\n__device__ "
      "int g(int x) { "
      "return x; }\nconstexpr int c(int x) { return x; }\n"
      "__global__ void k(int* x) { x[0] = g(1) + c(2) + d; }\nint main() {\n#ifdef X\n  k<<<1, "
      "1>>>(0);\n#endif\n}\nstruct S { int a; };\n";
  const CudaSyntax syntax = ParseCuda(source);
  const std::string text = DeviceText(syntax);
  EXPECT_EQ(text.size(), source.size());
  EXPECT_EQ(std::ranges::count(text, '\n'), std::ranges::count(source, '\n'));
  for (const char* kept :
       {"#include <vector>", "__device__ int d;", "int g(int x)", "constexpr int c",
        "__global__ void k", "#ifdef X", "#endif", "struct S"}) {
    EXPECT_THAT(text, HasSubstr(kept));
  }
  for (const char* gone : {"main", "<<<", "std::vector", "namespace std"})
    EXPECT_THAT(text, Not(HasSubstr(gone)));
}

TEST(CudaSyntax, OnlyWholeProgramsLoseTheirHostFunctions) {
  const std::string helper =
      "int twice(int x) { return 2 * x; }\n__global__ void k(int* x) { x[0] = twice(1); }\n";
  EXPECT_EQ(CompilableText(ParseCuda(helper)), helper);  // jitify takes it, and so do we
  EXPECT_THAT(CompilableText(ParseCuda(helper + "int main() {}\n")), Not(HasSubstr("main")));
  EXPECT_THAT(CompilableText(ParseCuda(helper + "void run() { k<<<1, 1>>>(0); }\n")),
              Not(HasSubstr("run")));
}

}  // namespace
}  // namespace atunner
