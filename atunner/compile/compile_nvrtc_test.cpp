#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "atunner/base/dylib.h"
#include "atunner/base/files.h"
#include "atunner/base/mutation_test.h"
#include "atunner/base/random.h"
#include "atunner/compile/cached_compiler.h"
#include "atunner/compile/cubin.h"
#include "atunner/compile/machine_code.h"
#include "atunner/compile/nvrtc_compiler.h"

namespace atunner {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class NvrtcTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = MakeNvrtcCompiler();
    if (!made) GTEST_SKIP() << made.error().ToString();
    compiler_ = *std::move(made);
  }
  CompileOutcome Compile(std::string text, std::vector<std::string> entries,
                         std::string arch = "sm_80") {
    CompileRequest request;
    request.source.name = "mine.cu";
    request.source.text = std::move(text);
    request.entries = std::move(entries);
    request.arch = std::move(arch);
    return compiler_->Compile(request).value();
  }
  std::unique_ptr<Compiler> compiler_;
};

TEST_F(NvrtcTest, GivesPtxCubinAndResources) {
  const auto outcome = Compile(
      "extern \"C\" __global__ void __launch_bounds__(256) f(float* x) { __shared__ float s[64]; "
      "s[threadIdx.x % 64] = x[threadIdx.x]; __syncthreads(); x[threadIdx.x] = s[0]; }",
      {"f"});
  ASSERT_TRUE(outcome.ok()) << outcome.error;
  EXPECT_THAT(outcome.module->ptx, HasSubstr(".entry f"));
  ASSERT_EQ(outcome.module->kernels.size(), 1u);
  const KernelResources& kernel = outcome.module->kernels[0];
  EXPECT_GT(kernel.registers, 4u);
  EXPECT_EQ(kernel.static_shared_bytes, 256u);
  EXPECT_EQ(kernel.max_threads, 256u);
}

TEST_F(NvrtcTest, TemplatesAreNamedByExpression) {
  const auto outcome = Compile("template <int N> __global__ void f(float* x) { x[0] = N; }",
                               {"f<3>", "f<4>"});
  ASSERT_TRUE(outcome.ok()) << outcome.error;
  EXPECT_NE(outcome.module->Find("f<3>"), nullptr);
  EXPECT_NE(outcome.module->Find("f<3>")->mangled, outcome.module->Find("f<4>")->mangled);
}

TEST_F(NvrtcTest, ErrorsPointIntoTheUsersFile) {
  const auto outcome = Compile("__global__ void f() {\n  undeclared = 1;\n}", {"f"});
  EXPECT_FALSE(outcome.ok());
  EXPECT_THAT(outcome.error, HasSubstr("mine.cu(2)"));
  EXPECT_THAT(Compile("__global__ void f() {}", {"g"}).error, HasSubstr("g"));
}

TEST_F(NvrtcTest, ErrorsNameTheLineWhateverStandsInFront) {
  CompileRequest request;
  request.source.name = "folder/kernels.cu";
  request.source.text =
      "// one\n\ntemplate <int N> __global__ void f(float* x) {\n  x[0] = SCALE * N;\n  x[1] = "
      "missing;\n}\n";
  request.source.defines = {{"SCALE", "2.0f"}};
  request.source.options = {"-use_fast_math", "-O3", "-Xcompiler=-Wall"};
  request.entries = {"f<3>"};
  request.arch = "sm_80";
  const auto outcome = compiler_->Compile(request).value();
  EXPECT_FALSE(outcome.ok());
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_THAT(outcome.error, HasSubstr("folder/kernels.cu(5)"));
  EXPECT_THAT(outcome.error, HasSubstr("missing"));
  EXPECT_THAT(outcome.error, testing::Not(HasSubstr("SCALE")));
}

TEST_F(NvrtcTest, ErrorsPointIntoTheUsersHeader) {
  TemporaryDirectory folder;
  ASSERT_TRUE(WriteFileAtomic(folder.path() / "mine.cuh",
                              "#pragma once\n\n__device__ float g() { return absent; }\n"));
  CompileRequest request;
  request.source.name = "user.cu";
  request.source
      .text = "#include \"mine.cuh\"\nextern \"C\" __global__ void f(float* x) { x[0] = g(); }";
  request.source.include_folders = {folder.path().string()};
  request.entries = {"f"};
  request.arch = "sm_80";
  EXPECT_THAT(compiler_->Compile(request).value().error, HasSubstr("mine.cuh(3)"));
  request.source.include_folders.clear();
  EXPECT_THAT(compiler_->Compile(request).value().error, HasSubstr("user.cu(1)"));
}

TEST_F(NvrtcTest, AnArchitectureThatItDoesNotKnowIsNotTheCandidatesFault) {
  CompileRequest request;
  request.source.text = "__global__ void f() {}";
  request.arch = "sm_999a";
  const auto outcome = compiler_->Compile(request);
  ASSERT_FALSE(outcome) << "every candidate would fail to compile";
  EXPECT_THAT(outcome.error().ToString(),
              AllOf(HasSubstr("sm_999a"), HasSubstr(compiler_->Version()),
                    HasSubstr("install a newer CUDA")));
}

TEST_F(NvrtcTest, AKernelThatIsNotThereIsNamed) {
  const auto outcome = Compile("extern \"C\" __global__ void f() {}", {"f", "ghost"});
  EXPECT_FALSE(outcome.ok());
  EXPECT_THAT(outcome.error, HasSubstr("ghost"));
}

TEST_F(NvrtcTest, RegistersBoundTheBlock) {
  // The driver checks whole warps in four partitions of 16 384 registers, allocated in units of
  // 256.
  EXPECT_EQ(MaxThreadsForRegisters(0), 1024u);
  EXPECT_EQ(MaxThreadsForRegisters(64), 1024u);
  EXPECT_EQ(MaxThreadsForRegisters(65), 896u);
  EXPECT_EQ(MaxThreadsForRegisters(128), 512u);
  EXPECT_EQ(MaxThreadsForRegisters(200), 256u)
      << "2 warps of 6400 per partition, not 10 of them in 65 536";
  EXPECT_EQ(MaxThreadsForRegisters(255), 256u);
}

TEST_F(NvrtcTest, HostHeadersDoNotHurt) {
  std::string includes;
  for (const char* name :
       {"stdio.h", "cuda_runtime.h", "cstdint", "cmath", "cfloat", "map", "memory", "iomanip",
        "unistd.h", "cublas_v2.h", "cusolverDn.h", "cuda_profiler_api.h", "nvtx3/nvToolsExt.h",
        "thrust/device_vector.h", "thrust/reduce.h", "cub/device/device_reduce.cuh", "inttypes.h",
        "stddef.h"})
    includes += std::string("#include <") + name + ">\n";
  const auto outcome = Compile(includes +
                                   "extern \"C\" __global__ void f(uint32_t* x) { x[0] = "
                                   "(uint32_t)sqrtf(FLT_MAX); x[1] = INT8_MAX; }",
                               {"f"});
  EXPECT_TRUE(outcome.ok()) << outcome.error;
}

TEST_F(NvrtcTest, NamesThatNvccGivesWithoutAnIncludeAreThere) {
  for (const char* value : {"-INFINITY",
                            "NAN",
                            "HUGE_VALF",
                            "HUGE_VAL",
                            "M_PI",
                            "M_SQRT2",
                            "M_LN2",
                            "CHAR_BIT",
                            "INT_MAX",
                            "LLONG_MIN",
                            "UINT_MAX",
                            "FLT_MAX",
                            "FLT_EPSILON",
                            "DBL_EPSILON",
                            "DBL_MAX",
                            "(double)SIZE_MAX",
                            "UINT64_MAX",
                            "INT8_MIN",
                            "(uint32_t)n",
                            "(int64_t)n",
                            "(size_t)n",
                            "(std::size_t)n",
                            "(uintptr_t)y",
                            "(ptrdiff_t)n",
                            "y == NULL",
                            "std::sqrt(2.0f)",
                            "std::abs(-2.0f)",
                            "RAND_MAX"}) {
    const auto outcome = Compile(fmt::format("extern \"C\" __global__ void f(double* y, int n) {{ "
                                             "y[0] = {}; }}",
                                             value),
                                 {"f"});
    EXPECT_TRUE(outcome.ok()) << value << ": " << outcome.error;
  }
}

TEST_F(NvrtcTest, PrintfAssertAndRegisterCompileWithoutAnInclude) {
  const auto outcome = Compile(
      "extern \"C\" __global__ void f(float* y, int n) { register int i = threadIdx.x; assert(i < "
      "n); if (y[i] > INFINITY) printf(\"%d\\n\", i); y[i] = 0; }",
      {"f"});
  EXPECT_TRUE(outcome.ok()) << outcome.error;
}

TEST_F(NvrtcTest, NamesOfTheProgramGoBeforeThoseOfTheHost) {
  const auto own = Compile(
      "__device__ const float M_PI = 3.0f;\nextern \"C\" __global__ void f(float* y) { y[0] = "
      "M_PI; }",
      {"f"});
  EXPECT_TRUE(own.ok()) << own.error;
  const auto unknown = Compile("extern \"C\" __global__ void f(float* y) { y[0] = INFINITE; }",
                               {"f"});
  EXPECT_FALSE(unknown.ok());
}

TEST_F(NvrtcTest, WhatDeviceCodeUsesOfTheLibraryIsThere) {
  const auto outcome = Compile(
      R"(#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <type_traits>
#include <utility>
static_assert(std::numeric_limits<int>::min() == -2147483647 - 1 && std::numeric_limits<long long>::digits10 == 18);
static_assert(std::numeric_limits<unsigned char>::max() == 255 && std::numeric_limits<signed char>::lowest() == -128);
static_assert(std::numeric_limits<double>::has_infinity && std::numeric_limits<float>::max() > 3.4e38f);
static_assert(std::is_same_v<std::decay_t<const float&>, float> && std::is_signed_v<int> && !std::is_signed_v<unsigned>);
static_assert(std::is_same_v<std::common_type_t<int, double>, double> && std::is_integral_v<const long>);
static_assert(std::is_same_v<std::make_unsigned_t<short>, unsigned short> && std::is_convertible_v<int, float>);
static_assert(std::is_same_v<std::make_index_sequence<3>, std::index_sequence<0, 1, 2>>);
static_assert(std::max(2, 3) == 3 && std::min(2.5, 1.5) == 1.5 && std::clamp(7, 0, 5) == 5);
static_assert(sizeof(std::array<float, 5>) == 20 && sizeof(size_t) == 8 && sizeof(std::ptrdiff_t) == 8);
template <class T, std::enable_if_t<std::is_floating_point<T>::value, int> = 0>
__device__ T body(T a, T b) {
  std::array<T, 2> both = {a, b};
  std::swap(both[0], both[1]);
  const auto pair = std::make_pair(std::sqrt(both[0]), std::isnan(b) ? std::numeric_limits<T>::infinity() : std::exp(a));
  return std::plus<T>()(pair.first, std::move(pair.second)) + std::fabs(a) + std::pow(a, b) + std::fma(a, b, a);
}
extern "C" __global__ void f(float* x, double* y) { x[0] = body(x[1], x[2]); y[0] = body(y[1], y[2]); }
)",
      {"f"});
  EXPECT_TRUE(outcome.ok()) << outcome.error;
}

TEST_F(NvrtcTest, KernelsOfTorchExtensionsCompile) {
  const auto outcome = Compile(
      "#include <torch/extension.h>\n#include <ATen/cuda/CUDAContext.h>\ntemplate <class T>\n"
      "__global__ void C10_LAUNCH_BOUNDS_1(256) f(T* x, int n) { CUDA_KERNEL_LOOP(i, n) x[i] = "
      "at::opmath_type<T>(x[i]) * 2; }",
      {"f<__half>", "f<at::BFloat16>", "f<double>"});
  EXPECT_TRUE(outcome.ok()) << outcome.error;
}

TEST_F(NvrtcTest, ARefusalNamesErrorsAlone) {
  const auto outcome = Compile(
      "extern \"C\" __global__ void f(float* x) {\n  int unused = 1;\n  x[0] = lost(x[1]);\n}",
      {"f"});
  EXPECT_THAT(outcome.error,
              testing::StartsWith("mine.cu(3): error: identifier \"lost\" is undefined"));
  EXPECT_EQ(outcome.error.find("unused"), std::string::npos) << outcome.error;
  EXPECT_EQ(outcome.error.find('\0'), std::string::npos) << "NVRTC counts the end of its text";
}

TEST_F(NvrtcTest, AHeaderInAngleBracketsThatIsNowhereIsTakenAsEmpty) {
  const std::string kernel = "extern \"C\" __global__ void f(float* x) { x[0] = 1; }";
  const auto outcome = Compile("#include <boost/any.hpp>\n#include <opencv2/opencv.hpp>\n" + kernel,
                               {"f"});
  ASSERT_TRUE(outcome.ok()) << outcome.error;
  EXPECT_THAT(
      outcome.module->log,
      testing::StartsWith("compiled without <boost/any.hpp>, <opencv2/opencv.hpp>, not found\n"));
  const auto needed = Compile(
      "#include <mine/ops.h>\nextern \"C\" __global__ void f(float* x) { ops(x); }", {"f"});
  EXPECT_THAT(needed.error, testing::StartsWith("without <mine/ops.h>, not found:\n"));
  EXPECT_THAT(needed.error, testing::HasSubstr("identifier \"ops\" is undefined"));
  const auto own = Compile("#include \"mine.h\"\n" + kernel, {"f"});
  EXPECT_THAT(own.error, testing::HasSubstr("cannot open source file \"mine.h\""));
}

TEST_F(NvrtcTest, WhatNvccGivesWithoutBeingAskedCompiles) {
  const auto names = Compile(
      "__device__ ushort low(ulong x) { return x; }\n"
      "extern \"C\" __global__ void f(uint* x) { uint i = threadIdx.x; x[i] = low(i); }",
      {"f"});
  EXPECT_TRUE(names.ok()) << names.error;
  const auto own = Compile(
      "typedef unsigned int uint;\nextern \"C\" __global__ void f(uint* x) { ushort i = 1; x[i] = "
      "i; }",
      {"f"});
  EXPECT_TRUE(own.ok()) << own.error;
  const auto sized = Compile("extern \"C\" __global__ void f(int64_t* x, uint8_t y) { x[0] = y; }",
                             {"f"});
  EXPECT_TRUE(sized.ok()) << sized.error;
  const auto lambda = Compile(
      "template <class F> __global__ void f(float* x, F f) { x[0] = f(x[1]); }\n"
      "extern \"C\" __global__ void g(float* x) { auto twice = [=] __device__(float v) { return v "
      "* 2; "
      "}; x[0] = twice(x[1]); }",
      {"g"});
  EXPECT_TRUE(lambda.ok()) << lambda.error;
}

TEST_F(NvrtcTest, TexturesAndRuntimeTypesCompile) {
  const auto compiles = [&](const std::string& text) { return Compile(text, {"k"}).ok(); };
  EXPECT_TRUE(
      compiles("extern \"C\" __global__ void k(cudaTextureObject_t t, float* y) { *y = "
               "tex1D<float>(t, 0.5f); }"));
  // This text does not show that it needs more than the minimal declarations.
  EXPECT_TRUE(compiles(
      "#define A cu\n#define B daStream_t\n#define G2(a, b) a##b\n#define G(a, b) G2(a, b)\n"
      "extern \"C\" __global__ void k(G(A, B) s, float* y) { *y = s == nullptr; }"));
  EXPECT_TRUE(compiles(
      "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
      "extern \"C\" __global__ void k(__half* y) { *y = __hadd(y[1], y[2]); printf(\"%d\", 1); }"));
}

TEST_F(NvrtcTest, TheCoreLibrariesNeedNoOption) {
  if (std::ranges::none_of(CudaIncludeFolders(),
                           [](const std::string& folder) { return folder.ends_with("/cccl"); }))
    GTEST_SKIP() << "the CUDA C++ core libraries have no folder of their own here";
  const auto outcome = Compile(
      "#include <cuda/std/array>\n#include <cooperative_groups.h>\n"
      "extern \"C\" __global__ void k(int* y) { cuda::std::array<int, 2> a = {1, 2}; *y = a[1]; }",
      {"k"});
  EXPECT_TRUE(outcome.ok()) << outcome.error;
  const auto cub = Compile(
      "#include <cub/cub.cuh>\nextern \"C\" __global__ void k(int* y) {\n"
      "__shared__ cub::BlockReduce<int, 64>::TempStorage s; *y = cub::BlockReduce<int, "
      "64>(s).Sum(threadIdx.x); }",
      {"k"});
  EXPECT_TRUE(cub.ok()) << cub.error;
}

TEST_F(NvrtcTest, Compute75GivesPtxOnly) {
  const auto outcome = Compile("extern \"C\" __global__ void f(float* x) { x[0] = 1; }", {"f"},
                               "compute_75");
  ASSERT_TRUE(outcome.ok()) << outcome.error;
  EXPECT_TRUE(outcome.module->cubin.empty());
  EXPECT_NE(outcome.module->Find("f"), nullptr);
}

TEST_F(NvrtcTest, PtxAndCubinAreCandidatesToo) {
  const auto cuda = Compile("extern \"C\" __global__ void f(float* x) { x[0] = 1; }", {"f"});
  CompileRequest request;
  request.source.language = Language::kPtx;
  request.source.text = cuda.module->ptx;
  request.entries = {"f"};
  request.arch = "sm_80";
  const auto assembled = compiler_->Compile(request).value();
  ASSERT_TRUE(assembled.ok()) << assembled.error;
  EXPECT_EQ(assembled.module->Find("f")->registers, cuda.module->Find("f")->registers);
  request.source.text = "this is no PTX";
  EXPECT_FALSE(compiler_->Compile(request).value().ok());
  request.source.language = Language::kCubin;
  request.source.text = cuda.module->cubin;
  EXPECT_TRUE(compiler_->Compile(request).value().ok());
}

TEST_F(NvrtcTest, CacheKeepsSuccessAndFailure) {
  TemporaryDirectory dir;
  CachedCompiler cached(std::move(compiler_), dir.path());
  CompileRequest request;
  request.source.text = "extern \"C\" __global__ void f(float* x) { x[0] = 1; }";
  request.entries = {"f"};
  request.arch = "sm_80";
  const auto first = cached.Compile(request).value();
  const auto second = cached.Compile(request).value();
  EXPECT_FALSE(first.module->from_cache);
  EXPECT_TRUE(second.module->from_cache);
  EXPECT_EQ(first.module->cubin, second.module->cubin);
  request.source.text = "nonsense";
  const auto bad = cached.Compile(request).value();
  EXPECT_EQ(cached.Compile(request).value().error, bad.error);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir.path())) {
    if (!entry.is_regular_file()) continue;
    ASSERT_TRUE(WriteFileAtomic(entry.path(), "{damaged"));
  }
  EXPECT_EQ(cached.Compile(request).value().error, bad.error);
}

TEST_F(NvrtcTest, CubinReaderSurvivesDamage) {
  const std::string cubin = Compile("extern \"C\" __global__ void f(float* x) { x[0] = 1; }", {"f"})
                                .module->cubin;
  const auto whole = ReadCubin(cubin);
  ASSERT_TRUE(whole.has_value());
  Random random(1);
  int refused = 0;
  for (int i = 0; i < 5000; ++i) {
    auto kernels = ReadCubin(Mutated(cubin, random));
    if (!kernels) {
      ++refused;
      continue;
    }
    for (const KernelResources& kernel : *kernels) EXPECT_LE(kernel.max_threads, 1024u);
    EXPECT_LT(ReadMachineCode(Mutated(cubin, random), "f", "sm_80").value_or(MachineCode{}).size(),
              cubin.size());
  }
  EXPECT_GT(refused, 0);
  std::vector<KernelResources> kernels = *whole;
  const std::string log =
      "Function properties for f\n    8 bytes stack frame, 12 bytes spill stores, 16 bytes spill "
      "loads\n";
  ApplySpills(log, kernels);
  EXPECT_EQ(kernels[0].spill_store_bytes, 12u);
  EXPECT_EQ(kernels[0].spill_load_bytes, 16u);
  for (int i = 0; i < 5000; ++i) ApplySpills(Mutated(log, random), kernels);
  EXPECT_FALSE(ReadCubin("").has_value());
}

std::string LineOf(const std::string& text, uint32_t line) {
  size_t at = 0;
  for (uint32_t i = 1; i < line; ++i) at = text.find('\n', at) + 1;
  return text.substr(at, text.find('\n', at) - at);
}

TEST_F(NvrtcTest, MachineCodeKnowsItsPtxAndItsLoops) {
  constexpr uint16_t kLoad = 0x181, kBranch = 0x147;
  for (const char* arch : {"sm_75", "sm_80", "sm_90a", "sm_100a"}) {
    const CompileOutcome outcome = Compile(
        "extern \"C\" __global__ void other(float* x) { x[0] = 1; }\n"
        "extern \"C\" __global__ void f(const float* x, float* y, int n) { float s = 0;\n"
        "#pragma unroll 1\nfor (int i = 0; i < n; ++i) s = s * 0.5f + x[i]; y[0] = s; }",
        {"other", "f"}, arch);
    ASSERT_TRUE(outcome.ok()) << outcome.error;
    const auto code = ReadMachineCode(outcome.module->cubin, "f", arch);
    ASSERT_TRUE(code && !code->empty()) << arch;
    int loads = 0, back = 0;
    for (size_t i = 0; i < code->size(); ++i) {
      const MachineInstruction& instruction = (*code)[i];
      EXPECT_LT(instruction.stall, 16);
      if (instruction.opcode == kLoad && ++loads > 0) {
        EXPECT_THAT(LineOf(outcome.module->ptx, instruction.line), HasSubstr("ld.global")) << arch;
        EXPECT_NE(instruction.result_barrier, MachineInstruction::kNoBarrier) << arch;
      }
      if (instruction.opcode == kBranch && instruction.target < i) ++back;
    }
    EXPECT_GE(loads, 1) << arch;
    EXPECT_GE(back, 1) << arch;
    EXPECT_TRUE(ReadMachineCode(outcome.module->cubin, "none", arch)->empty());
  }
  EXPECT_FALSE(ReadMachineCode("", "f", "sm_90a").has_value());
}

// The assembler emits loads with an always false predicate before copies to shared memory.
TEST_F(NvrtcTest, InstructionsThatNeverRunDoNothing) {
  constexpr uint16_t kLoadShared = 0x184, kNop = 0x118, kCopy = 0x1ae;
  const CompileOutcome outcome = Compile(
      "extern \"C\" __global__ void f(const float4* x, float* y) { __shared__ float4 s[32];\n"
      "asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16;\\ncp.async.wait_all;\" :: "
      "\"r\"((unsigned)__cvta_generic_to_shared(s + threadIdx.x)), \"l\"(x + threadIdx.x) : "
      "\"memory\");\n"
      "y[threadIdx.x] = 1; }",
      {"f"}, "sm_90a");
  ASSERT_TRUE(outcome.ok()) << outcome.error;
  const MachineCode code = ReadMachineCode(outcome.module->cubin, "f", "sm_90a").value();
  const auto copy = std::ranges::find(code, kCopy, &MachineInstruction::opcode);
  ASSERT_NE(copy, code.end());
  EXPECT_GE(std::ranges::count(code.begin(), copy, kNop, &MachineInstruction::opcode), 3);
  EXPECT_EQ(std::ranges::count(code, kLoadShared, &MachineInstruction::opcode), 0);
}

// The shared memory that the system reserves from sm_90 on does not count as the kernel's.
TEST_F(NvrtcTest, ReservedSharedMemoryIsNotCounted) {
  for (const char* arch : {"sm_80", "sm_90a"}) {
    CompileRequest request;
    request.source.text =
        "extern \"C\" __global__ void none(float* x) { x[1] = 5; }\n"
        "extern \"C\" __global__ void some(float* x) { __shared__ float s[64]; s[threadIdx.x] = "
        "x[0]; __syncthreads(); "
        "x[1] = s[5]; }\n";
    request.entries = {"none", "some"};
    request.arch = arch;
    const CompileOutcome outcome = compiler_->Compile(request).value();
    ASSERT_TRUE(outcome.ok()) << outcome.error;
    EXPECT_EQ(outcome.module->Find("none")->static_shared_bytes, 0u) << arch;
    EXPECT_EQ(outcome.module->Find("some")->static_shared_bytes, 256u) << arch;
  }
}

}  // namespace
}  // namespace atunner
