// `sanitize -- PROGRAM`, `capture` and `apply`: programs whose CUDA calls run on the virtual GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "atunner/base/files.h"
#include "atunner/model/json/json.h"
#include "tests/cli/process.h"

namespace atunner {
namespace {

using testing::HasSubstr;
using testing::Not;

class Program : public testing::Test {
 protected:
  Outcome Run(const std::string& shell) { return RunShell(dir_.path().string(), shell); }
  Outcome Sanitize(const std::string& what, const std::string& flags = "") {
    return Run("$A sanitize --target-gpu H100 " + flags + " -- " + ATUNNER_TEST_PROGRAM + " '" +
               what + "'");
  }
  TemporaryDirectory dir_;
};

TEST_F(Program, RunsAsItIs) {
  EXPECT_EQ(Run(std::string(ATUNNER_TEST_PROGRAM)).exit_code, 35) << "there is a CUDA runtime";
  const Outcome outcome = Sanitize("twice");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("kernel: 0\nlast 40\nfree: 0\n"));
  EXPECT_THAT(
      outcome.out,
      HasSubstr("no hazards in 2 launches of 2 blocks, virtual H100, checks: memory,init,race"));
}

TEST_F(Program, HazardsAreReportedAndComeToLightWhereTheHostWaits) {
  const Outcome outcome = Sanitize("bounds");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("kernel: 700\n"));
  EXPECT_THAT(outcome.out, HasSubstr("out of bounds in add<float>\n"));
  EXPECT_THAT(outcome.out, HasSubstr("1 hazard in 1 launch"));
  const Outcome unwritten = Sanitize("unwritten");
  EXPECT_EQ(unwritten.exit_code, 1);
  EXPECT_THAT(unwritten.out, HasSubstr("kernel: 0\nlast 0.5\n"));
  EXPECT_THAT(unwritten.out, HasSubstr("uninitialised global memory in add<float>, 2 times"));
  EXPECT_EQ(Sanitize("unwritten", "--check memory").exit_code, 0);
}

TEST_F(Program, JsonKeepsStandardOutputToItself) {
  const Outcome outcome = Sanitize("bounds", "--json");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("kernel: 700\n"));
  const auto json = ParseJson(outcome.out);
  ASSERT_TRUE(json) << outcome.out;
  EXPECT_EQ(json->at("launches"), 1);
  EXPECT_EQ(json->at("exit_code"), 0);
  EXPECT_EQ(json->at("hazards").at(0).at("kind"), "out of bounds");
  EXPECT_EQ(json->at("hazards").at(0).at("kernel"), "add<float>");
}

TEST_F(Program, WrongCallsAreNamed) {
  const Outcome copy = Sanitize("long copy");
  EXPECT_EQ(copy.exit_code, 1);
  EXPECT_THAT(copy.out, HasSubstr("copy: 1\n"));
  EXPECT_THAT(copy.out, HasSubstr("error: cudaMemcpy: 164 bytes from"));
  const Outcome twice = Sanitize("free twice");
  EXPECT_EQ(twice.exit_code, 1);
  EXPECT_THAT(twice.out, HasSubstr("free: 0\nfree: 1\n"));
  const Outcome unknown = Sanitize("not answered");
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.out, HasSubstr("handle: 801\n"));
  EXPECT_THAT(unknown.out, HasSubstr("error: the virtual GPU does not answer cudaIpcGetMemHandle"));
}

TEST_F(Program, EndsOfProgramsAreTold) {
  const Outcome failed = Sanitize("fails");
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_THAT(failed.out, HasSubstr("the program ended with exit code 3"));
  const Outcome crashed = Sanitize("crash");
  EXPECT_EQ(crashed.exit_code, 1);
  EXPECT_THAT(crashed.out, HasSubstr("out of bounds in add<float>"));
  EXPECT_THAT(crashed.out, HasSubstr("ended by signal 6"));
}

TEST_F(Program, TheDriverIsFoundByItsName) {
  const Outcome outcome = Sanitize("driver");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("\n0 0 500\ntable 1 1\n"));
}

TEST_F(Program, WhatIsNoProgramOfCudaIsSaid) {
  EXPECT_EQ(Run("$A sanitize -- ./nowhere").exit_code, 2);
  const Outcome other = Run("$A sanitize -- /bin/true");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("called nothing of CUDA"));
  EXPECT_EQ(Run("$A sanitize --").exit_code, 2);
  const Outcome bare = Run("$A sanitize " ATUNNER_TEST_PROGRAM);
  EXPECT_EQ(bare.exit_code, 2);
  EXPECT_THAT(bare.err, HasSubstr("`atunner sanitize -- "));
  EXPECT_THAT(Run("$A sanitize a.cu -- /bin/true").err, HasSubstr("either a kernel or a program"));
}

/// Features of programs that nvcc compiles: structures by value, functors, textures, graphs,
/// managed and constant variables.
/// The program of this test has a kernel with a structure by value, and no source.
TEST_F(Program, IsCapturedTunedAndRunWithTheTunedKernel) {
  const std::string app = std::string(ATUNNER_TEST_PROGRAM) + " twice";
  const Outcome captured = Run("$A capture --target-gpu H100 --out app.capture -- " + app);
  ASSERT_EQ(captured.exit_code, 0) << captured.err << captured.out;
  EXPECT_THAT(captured.out, HasSubstr("last 40\n"));
  EXPECT_THAT(captured.out, HasSubstr("2 launches of 1 kernels, 1 with their memory"));
  const Outcome shown = Run("$A show app.capture");
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("100 %"));
  EXPECT_THAT(shown.out, HasSubstr("void add<float>"));
  const Outcome predicted = Run("$A predict --target-gpu A100 -- " + app);
  EXPECT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_THAT(predicted.out, HasSubstr("recorded on the virtual A100"));
  const Outcome tuned = Run("$A optimize app.capture --target-gpu H100 --budget 5 --out best");
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err << tuned.out;
  EXPECT_THAT(tuned.out, HasSubstr("all kernels of the program: "));
  const Outcome applied = Run("$A apply best --target-gpu H100 -- " + app);
  EXPECT_EQ(applied.exit_code, 0) << applied.err;
  EXPECT_THAT(applied.out, HasSubstr("last 40\n"));
  EXPECT_THAT(applied.err, HasSubstr("2 of 2 launches replaced, first result equal"));
}

/// Another program's kernel of the same name and shape gives other results.
TEST_F(Program, AWrongReplacementIsTakenBack) {
  const std::string app = std::string(ATUNNER_TEST_PROGRAM) + " twice";
  ASSERT_EQ(Run("$A capture --target-gpu H100 --out app.capture -- " + app).exit_code, 0);
  ASSERT_EQ(Run("$A optimize app.capture --target-gpu H100 --budget 5 --out best").exit_code, 0);
  const Outcome damaged = Run(
      "sed -i 's/add.f32/sub.f32/; s/add.rn.f32/sub.rn.f32/' "
      "best/*/kernel.ptx; grep -c 'sub.*f32' best/*/kernel.ptx");
  ASSERT_THAT(damaged.out, Not(HasSubstr("0\n"))) << damaged.out;
  const Outcome applied = Run("$A apply best --target-gpu H100 -- " + app);
  EXPECT_THAT(applied.out, HasSubstr("last 40\n"));
  EXPECT_THAT(applied.err, HasSubstr("0 of 2 launches replaced, first result different"));
}

TEST_F(Program, WhatCannotBeCapturedIsSaid) {
  const Outcome nothing = Run("$A capture --out app.capture -- /bin/true");
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("launched no kernel that could be recorded"));
  EXPECT_FALSE(Exists(dir_.path() / "app.capture"));
  EXPECT_THAT(Run("$A capture -- ./not_there").err, HasSubstr("cannot be run"));
  EXPECT_THAT(Run("$A capture").err, HasSubstr("nothing to run"));
  ASSERT_TRUE(WriteFileAtomic(dir_.path() / "mine" / "notes.txt", "precious"));
  EXPECT_THAT(Run(std::string("$A capture --out mine -- ") + ATUNNER_TEST_PROGRAM + " twice").err,
              HasSubstr("this is no capture"));
  EXPECT_THAT(Run("$A optimize mine").err, HasSubstr("this is no capture"));
  EXPECT_THAT(Run("$A apply mine -- /bin/true").err, HasSubstr("no tuned kernel of a program"));
}

/// One message each, and what was recorded before can be read.
TEST_F(Program, ThatEndsInAnyWayIsCapturedUntilThen) {
  struct Row {
    const char* what;
    int exit_code;
    const char* message;   ///< part of standard error
    const char* captured;  ///< part of what `show` says; "": there is no capture
  };
  const Row rows[] = {
      {"killed", 1, "ended by signal 9", "1 launches of 1 kernels"},
      {"crash", 1, "ended by signal 6", "1 launches of 1 kernels"},
      {"fails", 1, "ended with exit code 3", "1 launches of 1 kernels"},
      {"forks", 0, "", "1 launches of 1 kernels"},
      {"reads", 0, "", "2 launches of 1 kernels"},
      {"no launch", 2, "launched no kernel that could be recorded", ""},
  };
  for (const Row& row : rows) {
    const Outcome outcome = Run(
        "rm -rf a.capture; echo twice | timeout 60 $A capture --target-gpu "
        "H100 --out a.capture -- " ATUNNER_TEST_PROGRAM " '" +
        std::string(row.what) + "'");
    EXPECT_EQ(outcome.exit_code, row.exit_code) << row.what << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(row.message)) << row.what;
    const Outcome shown = Run("$A show a.capture --no-times");
    EXPECT_THAT(shown.out, HasSubstr(row.captured)) << row.what << shown.err;
    EXPECT_EQ(shown.exit_code == 0, *row.captured != '\0') << row.what;
  }
}

/// Two kernels, sizes by an argument: built, run, tuned and patched in two commands.
TEST_F(Program, ASourceWithSeveralKernelsIsTunedAndPatched) {
  if (Run("nvcc --version").exit_code != 0) GTEST_SKIP() << "no nvcc";
  ASSERT_TRUE(WriteFileAtomic(dir_.path() / "two.cu", R"(#include <cstdlib>
#define TILE 256
__constant__ float factor;
struct Span { float* data; int size; };
__global__ void scale(Span s) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < s.size) s.data[i] *= factor;
}
__global__ void sums(const float* x, float* out) {
  __shared__ float part[TILE];
  part[threadIdx.x] = x[blockIdx.x * TILE + threadIdx.x];
  __syncthreads();
  for (int k = TILE / 2; k > 0; k /= 2) {
    if (threadIdx.x < k) part[threadIdx.x] += part[threadIdx.x + k];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}
int main(int, char** argv) {
  const int n = atoi(argv[1]) * TILE;
  float *x, *y, f = 2;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n / TILE * sizeof(float));
  cudaMemset(x, 0x3e, n * sizeof(float));
  cudaMemcpyToSymbol(factor, &f, sizeof f);
  scale<<<(n + 127) / 128, 128>>>({x, n});
  sums<<<n / TILE, TILE>>>(x, y);
  return cudaDeviceSynchronize();
}
)"));
  const Outcome tuned = Run(
      "$A hardware-optimize --source two.cu --auto-tune --target-gpu A100 "
      "--budget 20 --out best -- 64");
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err << tuned.out;
  EXPECT_THAT(tuned.out, HasSubstr("sums(float const*, float*)"));
  EXPECT_THAT(tuned.out, HasSubstr("scale(Span)"));
  EXPECT_TRUE(Exists(dir_.path() / "best" / "two.capture"));
  const Outcome patched = Run(
      "$A apply best --patch > faster.diff; patch -p1 < faster.diff; "
      "nvcc -o two two.cu && echo built");
  EXPECT_THAT(patched.out, HasSubstr("built")) << patched.err;
}

TEST_F(Program, OfNvccRunsUnchanged) {
  if (Run("nvcc --version").exit_code != 0) GTEST_SKIP() << "no nvcc";
  const std::string source = ATUNNER_SOURCE_DIR "/tests/program/whole_program.cu";
  for (const std::string flags : {"", "--compress-mode=speed -cudart shared", "-rdc=true"}) {
    const Outcome built = Run("nvcc -std=c++17 --extended-lambda -arch=sm_90 -lineinfo " + flags +
                              " -o whole " + source);
    ASSERT_EQ(built.exit_code, 0) << built.err;
    const Outcome outcome = Run("$A sanitize --target-gpu H100 -- ./whole");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("all right\n"));
    EXPECT_THAT(outcome.out, HasSubstr("no hazards in"));
  }
  const Outcome race = Run("$A sanitize --target-gpu H100 -- ./whole race");
  EXPECT_EQ(race.exit_code, 1);
  EXPECT_THAT(race.out, Not(HasSubstr("launch failure")));
  EXPECT_THAT(race.out, HasSubstr("race in Reverse<"));
  EXPECT_THAT(race.out, HasSubstr("tile[threadIdx.x] = "));
  EXPECT_EQ(Run("PATH=$PWD:$PATH; $A sanitize -- whole").exit_code, 0)
      << "a GPU that has what it was built for";
  const Outcome older = Run("$A sanitize --target-gpu A100 -- ./whole");
  EXPECT_EQ(older.exit_code, 1);
  EXPECT_THAT(older.out, HasSubstr("no PTX for compute capability 8.0"));
}

}  // namespace
}  // namespace atunner
