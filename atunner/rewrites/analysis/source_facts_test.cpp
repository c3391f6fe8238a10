#include "atunner/rewrites/analysis/source_facts.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace atunner::rewrites {
namespace {

/// "x[row * n + j]: load, strided 100, loop 1" for each access.
std::string Text(const SourceFacts& facts) {
  std::string text;
  const auto number = [](const std::optional<int64_t>& value) {
    return value ? std::to_string(*value) : std::string("?");
  };
  for (const AccessFact& one : facts.accesses)
    text += std::to_string(one.line) + ": " + one.array + "[" + one.subscript + "] " +
            (one.store ? "store" : "load") + (one.shared ? " shared" : "") + " " +
            std::string(PatternOf(one)) + " " + number(one.thread_stride) + ", loop " +
            number(one.loop_stride) + "\n";
  return text;
}

SourceFacts Facts(const std::string& body, Dim3 block = {256, 1, 1}) {
  RenderedKernel kernel;
  kernel.source.text = "__global__ void k(float* y, const float* x, int n) {\n" + body + "}\n";
  LaunchStep step;
  step.entry = "k";
  step.block = {Expr(int64_t{block.x}), Expr(int64_t{block.y}), Expr(int64_t{block.z})};
  step.args = {ArgBinding::Tensor("y"), ArgBinding::Tensor("x"),
               ArgBinding::Scalar(DType::kInt32, Expr(100))};
  kernel.plan.steps = {step};
  const auto subject = Subject::Read(kernel, {});
  return FactsOf(**subject, kernel, {});
}

TEST(SourceFacts, FindStridesOverThreadsAndIterations) {
  const SourceFacts facts = Facts(
      "int row = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "for (int j = 0; j < n; ++j) y[row] += x[row * n + j] * x[j];\n"
      "y[(row / 2u) % 7] = x[y[row]];\n");
  EXPECT_EQ(Text(facts),
            "3: y[row] store coalesced 1, loop 0\n"
            "3: x[row * n + j] load strided 100, loop 1\n"
            "3: x[j] load broadcast 0, loop 1\n"
            "4: y[(row / 2u) % 7] store coalesced 1, loop ?\n"
            "4: x[y[row]] load unknown ?, loop ?\n"
            "4: y[row] load coalesced 1, loop ?\n");
  ASSERT_EQ(facts.loops.size(), 1U);
  EXPECT_EQ(facts.loops[0].head, "int j = 0; j < n; ++j");
  EXPECT_EQ(facts.loops[0].trips, 100);
}

TEST(SourceFacts, FindWhatCostsTimeByItself) {
  const SourceFacts facts = Facts(
      "__shared__ float t[32];\nt[threadIdx.x] = 0.5 * x[0];\n__syncthreads();\n"
      "atomicAdd(y, t[0]);\nwhile (n > 0) { y[0] = 1.0f; }\n");
  EXPECT_EQ(facts.barriers, std::vector<int>{4});
  EXPECT_EQ(facts.atomics, std::vector<int>{5});
  EXPECT_EQ(facts.doubles, std::vector<int>{3});
  EXPECT_TRUE(facts.accesses.front().shared);
  ASSERT_EQ(facts.loops.size(), 1U);
  EXPECT_FALSE(facts.loops[0].trips);
}

}  // namespace
}  // namespace atunner::rewrites
