// Shared by the tests of bare sources.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "atunner/intake/bare/bare_source.h"

namespace atunner {

inline Result<UserKernel> Parse(const std::string& source, SourceOptions options = {}) {
  return ParseBareSource(source, "k.cu", options);
}

inline std::string ErrorOf(const std::string& source) {
  auto kernel = Parse(source);
  if (!kernel) return kernel.error().ToString();
  auto made = MakeUserTemplate(*kernel);
  return made ? "" : made.error().ToString();
}

/// The launch of the initial configuration.
inline ConcreteStep Launched(UserKernel& kernel) {
  auto made = MakeUserTemplate(kernel);
  EXPECT_TRUE(made) << made.error().ToString();
  if (!made) return {};
  const auto rendered = (*made)->Render((*made)->Default());
  const auto plan = Resolve(rendered->plan, kernel.spec.dims, {});
  EXPECT_TRUE(plan) << plan.error().ToString();
  return plan ? plan->steps[0] : ConcreteStep{};
}

inline std::string Space(const UserKernel& kernel) { return kernel.space.Describe(kernel.initial); }

inline constexpr const char* kPlain = R"(
#include <cstdio>
#include <vector>
__global__ void scale(const float* x, float* y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}
int main() {
  const int n = 1 << 20;
  std::vector<float> h(n);
  float *dx, *dy;
  cudaMalloc(&dx, n * sizeof(float));
  cudaMalloc((void**)&dy, n * sizeof(float));
  int threads = 256;
  int blocks = (n + threads - 1) / threads;
  scale<<<blocks, threads>>>(dx, dy, 2.0f, n);
}
)";

}  // namespace atunner
