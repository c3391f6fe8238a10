#include "atunner/intake/captured/source_patch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner {
namespace {

using testing::HasSubstr;

constexpr const char* kSource = R"(#include <cstdio>
#define TILE 16
__global__ void scale(float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] *= TILE;
}
int main() {
  int threads = 256;
  scale<<<(n + 255) / 256, 256>>>(y, n);
  scale<<<(n + threads - 1) / threads, threads>>>(y, n);
}
)";

/// A kernel as UseSource makes it, with a macro, a block and a register limit.
UserKernel Kernel() {
  const std::string text = kSource;
  UserKernel kernel;
  kernel.source.text = CompilableText(ParseCuda(text));
  kernel.source.name = "scale.cu";
  kernel.space.parameters = {{"TILE", {int64_t{16}, int64_t{32}}, ""},
                             {"block_x", {int64_t{128}, int64_t{256}}, ""},
                             {"max_registers", {int64_t{0}, int64_t{64}}, ""}};
  kernel.injections = {{Injection::Kind::kReplace, text.find("16"), 2, ""},
                       {Injection::Kind::kLaunch, 0, 0, ""},
                       {Injection::Kind::kOption, 0, 0, "--maxrregcount="}};
  kernel.initial.values = {int64_t{16}, int64_t{256}, int64_t{0}};
  LaunchStep step;
  step.block[0] = Expr::MustParse("block_x");
  kernel.plan.steps = {step};
  return kernel;
}

TEST(SourcePatch, ChangesConstantsLaunchesAndTellsTheRest) {
  Configuration tuned;
  tuned.values = {int64_t{32}, int64_t{128}, int64_t{64}};
  const std::string patched = PatchedSource(kSource, "scale(float*, int)", Kernel(), tuned).value();
  EXPECT_THAT(patched, HasSubstr("#define TILE 32\n"));
  EXPECT_THAT(patched, HasSubstr("  scale<<<(n + 127) / 128, 128>>>(y, n);\n"));
  EXPECT_THAT(patched, HasSubstr("  // atunner: launch it with blocks of 128 threads\n"
                                 "  scale<<<(n + threads - 1) / threads, threads>>>(y, n);\n"));
  EXPECT_THAT(patched, HasSubstr("// atunner: compile this kernel with --maxrregcount=64\n"
                                 "__global__ void scale"));
}

TEST(SourcePatch, OtherAxesAndGridsAreTold) {
  UserKernel kernel = Kernel();
  kernel.space.parameters[1] = {"block_y", {int64_t{1}, int64_t{4}}, ""};
  kernel.initial.values[1] = int64_t{1};
  kernel.plan.steps[0].grid[0] = Expr(int64_t{10});
  kernel.plan.steps[0].block[0] = Expr(int64_t{256});
  kernel.plan.steps[0].block[1] = Expr::MustParse("block_y");
  Configuration tuned = kernel.initial;
  tuned.values[1] = int64_t{4};
  const std::string patched = PatchedSource(kSource, "scale(float*, int)", kernel, tuned).value();
  EXPECT_THAT(patched, HasSubstr("// atunner: launch it with a grid of 10 x 1 x 1 and blocks of "
                                 "256 x 4 x 1\n  scale<<<"));
}

TEST(SourcePatch, TheSourcesOwnValuesChangeNothing) {
  const UserKernel kernel = Kernel();
  EXPECT_EQ(PatchedSource(kSource, "scale(float*, int)", kernel, kernel.initial).value(), kSource);
  const std::string other = std::string(kSource) + "__device__ int more;\n";
  EXPECT_EQ(PatchedSource(other, "scale(float*, int)", kernel, kernel.initial).error().code,
            ErrorCode::kUnsupported);
}

TEST(SourcePatch, AnOverloadWithOtherParametersIsNotTheKernel) {
  const UserKernel kernel = Kernel();
  EXPECT_EQ(PatchedSource(kSource, "scale(float*, int, int)", kernel, kernel.initial).error().code,
            ErrorCode::kInvalidInput);
}

TEST(UnifiedDiffs, ShowHunksWithContext) {
  std::string before, after;
  for (int i = 1; i <= 30; ++i) {
    before += "line " + std::to_string(i) + "\n";
    after += i == 25 ? "line 25!\n" : "line " + std::to_string(i) + "\n";
    if (i == 5) after += "new\n";
  }
  EXPECT_EQ(UnifiedDiff(before, after, "a.cu"),
            "--- a/a.cu\n+++ b/a.cu\n"
            "@@ -3,6 +3,7 @@\n line 3\n line 4\n line 5\n+new\n line 6\n line 7\n line 8\n"
            "@@ -22,7 +23,7 @@\n line 22\n line 23\n line 24\n-line 25\n+line 25!\n line 26\n"
            " line 27\n line 28\n");
  EXPECT_EQ(UnifiedDiff(before, before, "a.cu"), "");
  EXPECT_EQ(UnifiedDiff("a", "b", "a.cu"),
            "--- a/a.cu\n+++ b/a.cu\n@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+b\n"
            "\\ No newline at end of file\n");
}

}  // namespace
}  // namespace atunner
