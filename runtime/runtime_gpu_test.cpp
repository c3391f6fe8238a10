// The library on a real driver: what the virtual one cannot show. PTX compiled by the driver, the
// stream-ordered pool, symbols, capture into a CUDA graph.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atunner.hpp>

#include "runtime/test_artifacts.h"
#include "runtime/testing/driver_client.h"

namespace atunner::loader {
namespace {

constexpr const char* kDriver = "libcuda.so.1";
constexpr int64_t kCount = 1 << 20;

class RuntimeOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    std::string missing = testing_driver::Client::Missing(kDriver);
    if (missing.empty()) {
      driver_.emplace(kDriver);
      driver_->MakeCurrent();
      if (driver_->Attribute(cuda::kComputeCapabilityMajor) < 8)
        missing = "the test kernels need sm_80";
    }
    if (missing.empty()) return;
    std::printf("[atunner] every test skipped\n");
    GTEST_SKIP() << missing;
  }

  runtime::Kernel Load(const Artifact& artifact, int64_t n = kCount) {
    const Path folder = dir_.path() / artifact.name;
    const Status saved = SaveTestArtifact(folder, artifact);
    EXPECT_TRUE(saved.has_value()) << saved.error().ToString();
    runtime::Set set(kDriver);
    set.Add(folder.string());
    return set.Choose({"", "", {{"n", n}}, {}}, 0);
  }
  static std::vector<float> Ramp() {
    std::vector<float> values(kCount);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 3.0f;
    return values;
  }
  /// Launches on a stream of its own and waits for it.
  std::vector<float> Run(const runtime::Kernel& kernel, const std::vector<uint64_t>& inputs) {
    const uint64_t y = driver_->Upload(std::vector<float>(kCount, -1.0f));
    std::vector<uint64_t> tensors = inputs;
    tensors.push_back(y);
    void* const stream = driver_->NewStream();
    kernel.Launch(stream, tensors);
    driver_->Synchronize(stream);
    return driver_->Download(y, kCount);
  }

  TemporaryDirectory dir_;
  std::optional<testing_driver::Client> driver_;
};

TEST_F(RuntimeOnGpu, PtxIsCompiledByTheDriver) {
  const runtime::Kernel kernel = Load(ScaleArtifact());
  EXPECT_GE(kernel.match(), ATUNNER_MATCH_COMPATIBLE) << kernel.match_text();
  const std::vector<float> x = Ramp();
  const std::vector<float> y = Run(kernel, {driver_->Upload(x)});
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], 2.5f * x[i]) << i;
}

TEST_F(RuntimeOnGpu, StepsShareMemoryFromThePool) {
  const std::vector<float> x = Ramp();
  const std::vector<float> y = Run(Load(TwoStepArtifact()), {driver_->Upload(x)});
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], 0.5f * x[i] + 1.0f) << i;
}

TEST_F(RuntimeOnGpu, SymbolsReceiveTheirTensor) {
  const std::vector<float> table = {1, 10, 100, 1000};
  const std::vector<float> x = Ramp();
  const std::vector<float> y = Run(Load(TableArtifact()),
                                   {driver_->Upload(x), driver_->Upload(table)});
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], x[i] * table[i % 4]) << i;
}

TEST_F(RuntimeOnGpu, LaunchesAreCapturedIntoAGraph) {
  const runtime::Kernel kernel = Load(TwoStepArtifact());
  const uint64_t x = driver_->Upload(Ramp());
  const uint64_t y = driver_->Upload(std::vector<float>(kCount));
  auto* const stream = static_cast<cuda::Stream>(driver_->NewStream());
  void* graph = nullptr;
  void* executable = nullptr;
  ASSERT_EQ((driver_->Call<int(cuda::Stream, int)>("cuStreamBeginCapture_v2", stream, 0)), 0);
  kernel.Launch(stream, {x, y});
  ASSERT_EQ((driver_->Call<int(cuda::Stream, void**)>("cuStreamEndCapture", stream, &graph)), 0);
  EXPECT_EQ(driver_->Download(y, 1)[0], 0.0f) << "captured, not run";
  ASSERT_EQ((driver_->Call<int(void**, void*, unsigned long long)>("cuGraphInstantiateWithFlags",
                                                                   &executable, graph, 0ull)),
            0);
  for (int replay = 0; replay < 3; ++replay)
    ASSERT_EQ((driver_->Call<int(void*, cuda::Stream)>("cuGraphLaunch", executable, stream)), 0);
  driver_->Synchronize(stream);
  EXPECT_EQ(driver_->Download(y, kCount)[kCount - 1], 0.5f * static_cast<float>(kCount - 4) + 1.0f);
  EXPECT_EQ((driver_->Call<int(void*)>("cuGraphExecDestroy", executable)), 0);
  EXPECT_EQ((driver_->Call<int(void*)>("cuGraphDestroy", graph)), 0);
}

}  // namespace
}  // namespace atunner::loader
