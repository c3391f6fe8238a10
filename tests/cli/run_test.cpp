// `run` as a user calls it: a kernel, its arguments, and the contents of its memory afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "atunner/base/files.h"
#include "atunner/model/json/json.h"
#include "tests/cli/process.h"

namespace atunner {
namespace {

using testing::HasSubstr;

// out[i] = in[i] * factor + bias, for i < n
constexpr const char* kScale = R"(.version 6.5
.target sm_50
.address_size 64
.visible .entry scale(.param .u64 in, .param .u64 out, .param .f32 factor, .param .u16 bias, .param .u32 n) {
  .reg .pred %outside;
  .reg .u16 %bias;
  .reg .u32 %i, %n;
  .reg .u64 %from, %to, %offset;
  .reg .f32 %x, %factor, %b;
  mov.u32 %i, %tid.x;
  ld.param.u32 %n, [n];
  setp.ge.u32 %outside, %i, %n;
  @%outside exit;
  ld.param.u64 %from, [in];
  ld.param.u64 %to, [out];
  ld.param.f32 %factor, [factor];
  ld.param.u16 %bias, [bias];
  cvt.rn.f32.s16 %b, %bias;
  mul.wide.u32 %offset, %i, 4;
  add.u64 %from, %from, %offset;
  add.u64 %to, %to, %offset;
  ld.f32 %x, [%from];
  fma.rn.f32 %x, %x, %factor, %b;
  st.f32 [%to], %x;
  ret;
}
.visible .entry nothing() { ret; }
)";

class RunCommand : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(WriteFileAtomic(dir_.path() / "scale.ptx", kScale).has_value());
  }
  Outcome Run(const std::string& shell) { return RunShell(dir_.path().string(), shell); }
  Outcome Scale(const std::string& flags) {
    return Run("$A run scale.ptx --kernel scale --target-gpu A100 --block 4 " + flags);
  }
  TemporaryDirectory dir_;
};

TEST_F(RunCommand, ShowsWhatThePtxWrote) {
  const Outcome outcome = Scale("--arg f32:1,2,-3,0.1 --arg 'f32[4]' --arg 0.5 --arg -7 --arg 4");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("argument 0, float32[4]: 1 2 -3 0.1\n"));
  EXPECT_THAT(outcome.out, HasSubstr("argument 1, float32[4]: -6.5 -6 -8.5 -6.95\n"));
  EXPECT_THAT(outcome.out, HasSubstr("scale: no hazards on 1 blocks, virtual A100"));
}

TEST_F(RunCommand, TypedValuesFilesAndRepeatedOnesAreArguments) {
  Run("printf '\\0\\0\\200\\077\\0\\0\\0\\100' > two.bin");  // 1 and 2
  const Outcome file = Scale(
      "--arg f32@two.bin --arg 'f32[3]:7,8' --arg f32=2 --arg i16=0x10 --arg 2 --json");
  EXPECT_EQ(file.exit_code, 0) << file.err << file.out;
  const Json memory = (*ParseJson(file.out))["memory"];
  EXPECT_EQ(memory[1]["values"], Json({18, 20, 7}));
  EXPECT_EQ(memory[1]["dtype"], "float32");
  const Outcome special = Scale(
      "--arg f32:nan,inf,1e30,0 --arg 'f32[4]' --arg 1e20 --arg 0 --arg 4 --json --show 3");
  EXPECT_EQ((*ParseJson(special.out))["memory"][1]["values"], Json({"nan", "inf", "inf"}))
      << special.out;
}

TEST_F(RunCommand, BareNumbersAreOfTheParametersType) {
  const Outcome whole = Scale("--arg f32:1,2,3,4 --arg 'f32[4]' --arg 2 --arg -1 --arg 4");
  EXPECT_THAT(whole.out, HasSubstr("argument 1, float32[4]: 1 3 5 7\n")) << whole.err;
  const Outcome bits = Scale("--arg f32:1,2,3,4 --arg 'f32[4]' --arg 0x40000000 --arg -1 --arg 4");
  EXPECT_THAT(bits.out, HasSubstr("argument 1, float32[4]: 1 3 5 7\n")) << bits.err;
  const Outcome fraction = Scale("--arg f32:1,2,3,4 --arg 'f32[4]' --arg 2 --arg -1 --arg 4.5");
  EXPECT_EQ(fraction.exit_code, 2);
  EXPECT_THAT(fraction.err, HasSubstr("--arg 4.5: the parameter is an integer of 4 bytes"));
}

TEST_F(RunCommand, HazardsNameTheArgumentAndTheLine) {
  const Outcome beyond = Scale("--arg f32:1,2,3 --arg 'f32[4]' --arg 1.0 --arg 0 --arg 4");
  EXPECT_EQ(beyond.exit_code, 1) << beyond.err << beyond.out;
  EXPECT_THAT(beyond.out,
              HasSubstr("out of bounds in scale\n  at         PTX line:22  ld.f32 %x, [%from];"));
  EXPECT_THAT(beyond.out,
              HasSubstr("0 bytes after the end of 'argument 0', an allocation of 12 bytes"));
  const Outcome unwritten = Scale("--arg 'f32[4]' --arg 'f32[4]' --arg 1.0 --arg 0 --arg 4 --json");
  EXPECT_EQ((*ParseJson(unwritten.out))["hazards"][0]["kind"], "uninitialised global memory")
      << unwritten.out;
  EXPECT_EQ(
      Scale("--arg 'f32[4]' --arg 'f32[4]' --arg 1.0 --arg 0 --arg 4 --check memory").exit_code, 0);
}

TEST_F(RunCommand, CompilesCudaSources) {
  if (Run("$A doctor --json").out.find("\"part\":\"NVRTC\",\"found\":true") == std::string::npos)
    GTEST_SKIP() << "NVRTC is not installed";
  ASSERT_TRUE(WriteFileAtomic(dir_.path() / "sum.cu", R"(
template <class T> __global__ void add(T* sum, const T* x, float4 unused) {
  extern __shared__ T copy[];
  copy[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) for (int i = 0; i < blockDim.x; ++i) atomicAdd(sum, copy[i]);
  if (threadIdx.x + blockIdx.x == 0) printf("sums\n");
}
)")
                  .has_value());
  const Outcome flat = Run(
      "$A run sum.cu --kernel 'add<int>' --target-gpu H100 --grid 2 --block 4 --shared 64 --arg "
      "i32:1000 "
      "--arg 'i32[8]:1,2' --arg f32=1,2,3,4");
  EXPECT_EQ(flat.exit_code, 0) << flat.err << flat.out;
  EXPECT_THAT(flat.out, HasSubstr("sums\nargument 0, int32[1]: 1012\n"));
}

TEST_F(RunCommand, StructuresMayBeLarge) {
  ASSERT_TRUE(WriteFileAtomic(dir_.path() / "large.ptx", R"(
.version 8.3
.target sm_80
.address_size 64
.visible .entry pick(.param .align 4 .b8 all[4000], .param .u64 out)
{
  .reg .b32 %r<4>;
  .reg .b64 %to;
  ld.param.u64 %to, [out];
  ld.param.u32 %r0, [all+3996];
  ld.param.u32 %r1, [all+128];
  st.global.v2.u32 [%to], {%r0, %r1};
  ret;
}
)")
                  .has_value());
  const std::string launch = "$A run large.ptx --target-gpu A100 --arg \"i32=$(seq -s, 1 ";
  const Outcome run = Run(launch + "1000)\" --arg 'i32[2]'");
  EXPECT_EQ(run.exit_code, 0) << run.err << run.out;
  EXPECT_THAT(run.out, HasSubstr("argument 1, int32[2]: 1000 33\n"));
  EXPECT_THAT(Run(launch + "999)\" --arg 'i32[2]'").err, HasSubstr("the values have 3996"));
}

TEST_F(RunCommand, TexturesAndSurfacesAreArguments) {
  if (Run("$A doctor --json").out.find("\"part\":\"NVRTC\",\"found\":true") == std::string::npos)
    GTEST_SKIP() << "NVRTC is not installed";
  ASSERT_TRUE(WriteFileAtomic(dir_.path() / "look.cu", R"(
__global__ void look(cudaTextureObject_t image, cudaSurfaceObject_t copy, float* same) {
  const float x = tex2D<float>(image, threadIdx.x + 0.5f, 1.5f);
  surf2Dwrite(x, copy, threadIdx.x * 4, 0);
  const float back = surf2Dread<float>(copy, threadIdx.x * 4, 0);
  same[threadIdx.x] = x >= 0 && x < 1 && back == x;
}
)")
                  .has_value());
  const std::string launch = "$A run look.cu --target-gpu H100 --block 4 ";
  const Outcome run = Run(launch +
                          "--arg 'texture:f32[8,2]' --arg 'surface:f32[8,1]' --arg 'f32[4]'");
  EXPECT_EQ(run.exit_code, 0) << run.err << run.out;
  EXPECT_THAT(run.out, HasSubstr("texture:f32[8,2]: its texels are random\n"));
  EXPECT_THAT(run.out, HasSubstr("argument 2, float32[4]: 1 1 1 1\n"));
  for (const char* wrong : {"texture:f32", "texture:f32[]", "texture:f32[0,1]", "texture:f32x3[4]",
                            "texture:f33[4]", "texture:f32[4", "texture:f32[1,2,3,4]",
                            "surface:f64[4]", "texture:f32[4,2x]", "texture:f32x4294967297[4]"})
    EXPECT_EQ(Run(launch + "--arg '" + wrong + "' --arg 1 --arg 1").exit_code, 2) << wrong;
}

TEST_F(RunCommand, WrongInputIsOneMessage) {
  const std::string right = " --arg f32:1 --arg f32:1 --arg 1.0 --arg 1 --arg 1";
  const std::pair<std::string, const char*> cases[] = {
      {"$A run missing.ptx", "missing.ptx: no such file"},
      {"$A run scale.ptx", "name one by --kernel: scale, nothing"},
      {"$A run scale.ptx --kernel scal", "there is no kernel 'scal'"},
      {"echo '__global__ void half_(float*) {}' > half.cu; $A run half.cu --kernel hal --arg 1",
       "there is no kernel 'hal'"},
      {"$A run scale.ptx --kernel scale --arg 1", "takes 5 arguments, given are 1"},
      {"$A run scale.ptx --kernel scale --block 4,0" + right, "'4,0' is no size"},
      {"$A run scale.ptx --kernel scale --block 4096" + right, "cannot be launched"},
      {"$A run scale.ptx --kernel scale --grid 1,65536" + right, "y and z are at most 65535"},
      {"$A run scale.ptx --kernel scale --grid 2147483648" + right, "x is at most 2147483647"},
      {"$A run scale.ptx --kernel scale --check bounds" + right, "there is no check 'bounds'"},
      {"$A run scale.ptx --kernel scale --arg f33:1 --arg 1 --arg 1 --arg 1 --arg 1",
       "there is no type 'f33'"},
      {"$A run scale.ptx --kernel scale --arg f32:1,x --arg 1 --arg 1 --arg 1 --arg 1",
       "'x' is no number"},
      {"$A run scale.ptx --kernel scale --arg f32[0] --arg 1 --arg 1 --arg 1 --arg 1",
       "how many elements"},
      {"$A run scale.ptx --kernel scale --arg f32: --arg 1 --arg 1 --arg 1 --arg 1",
       "there are no values"},
      {"$A run scale.ptx --kernel scale --arg f32@scale.ptx --arg 1 --arg 1 --arg 1 --arg 1",
       "no whole elements"},
      {"$A run scale.ptx --kernel scale --arg 1 --arg 1 --arg 1 --arg 70000 --arg 1",
       "the parameter has 2 bytes"},
      {"$A run scale.ptx --kernel scale --arg 1 --arg 1 --arg f64=1 --arg 1 --arg 1",
       "the values have 8"},
      {"$A run scale.ptx --kernel scale --arg 1 --arg 1 --arg f32:1 --arg 1 --arg 1",
       "is no address"},
      {"$A run scale.ptx --kernel scale --arg 1 --arg 1 --arg 'texture:f32[4]' --arg 1 --arg 1",
       "is no texture"},
      {"$A run scale.ptx --kernel scale --block 4x" + right, "'4x' is no size"},
  };
  for (const auto& [shell, says] : cases) {
    const Outcome outcome = Run(shell + " --target-gpu A100");
    EXPECT_EQ(outcome.exit_code, 2) << shell << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr(says)) << shell;
  }
}

}  // namespace
}  // namespace atunner
