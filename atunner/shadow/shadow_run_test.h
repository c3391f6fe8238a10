// Shared by the tests of this room: runs a kernel and its shadow. The same tests run on the virtual
// GPU and on a real one.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "atunner/compile/shared_compiler_test.h"
#include "atunner/shadow/shadow.h"
#include "atunner/shadow/shadow_space.h"

namespace atunner::shadow {

/// The device that this program tests on; nullptr without one.
std::unique_ptr<Device> OpenTestDevice();

/// A tensor of a test, packed.
struct TestTensor {
  DType type = DType::kFloat32;
  std::vector<std::byte> bytes;
  uint64_t count() const { return bytes.size() / SizeOf(type); }
  double operator[](size_t i) const { return LoadElement(type, bytes.data(), i); }
};

inline TestTensor Tensor(DType type, const std::vector<double>& values) {
  TestTensor tensor{type, std::vector<std::byte>(values.size() * SizeOf(type))};
  for (size_t i = 0; i < values.size(); ++i) StoreElement(type, tensor.bytes.data(), i, values[i]);
  return tensor;
}
inline TestTensor Floats(const std::vector<double>& values) {
  return Tensor(DType::kFloat32, values);
}
inline TestTensor Zeros(DType type, size_t count) {
  return Tensor(type, std::vector<double>(count, 0.0));
}
/// Normal numbers.
inline std::vector<double> Normal(size_t count, uint32_t seed, double mean = 0, double spread = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(mean, spread);
  std::vector<double> values(count);
  for (double& value : values) value = normal(random);
  return values;
}

struct TestLaunch {
  std::string entry = "k";
  uint32_t grid = 1, block = 32;
  uint32_t dynamic_shared = 0;
};

/// What a tensor holds after the launches.
struct TestResult {
  TestTensor original;        ///< by the original kernel
  TestTensor beside;          ///< by the shadow kernel: the same bits
  std::vector<double> twins;  ///< by the shadow kernel
};

class ShadowTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = MakeSharedCompiler();
    if (!made) GTEST_SKIP() << made.error().ToString();
    compiler_ = *std::move(made);
    device_ = OpenTestDevice();
    if (device_ != nullptr) return;
    std::puts("[atunner] every test skipped");
    GTEST_SKIP() << "there is no GPU";
  }

  CompiledModule Compile(const std::string& source, const std::vector<TestLaunch>& launches) {
    CompileRequest request;
    request.source.text = source;
    request.arch = device_->arch();
    for (const TestLaunch& launch : launches) request.entries.push_back(launch.entry);
    const CompileOutcome outcome = compiler_->Compile(request).value();
    EXPECT_TRUE(outcome.ok()) << outcome.error;
    return outcome.ok() ? *outcome.module : CompiledModule{};
  }

  /// Runs the launches with all tensors as arguments, in order, and then `scalar`.
  std::vector<TestResult> Run(const std::string& source, const std::vector<TestTensor>& tensors,
                              const std::vector<TestLaunch>& launches, int scalar = 0) {
    return RunModule(Compile(source, launches), tensors, launches, scalar);
  }

  std::vector<TestResult> RunModule(CompiledModule module, const std::vector<TestTensor>& tensors,
                                    const std::vector<TestLaunch>& launches, int scalar = 0) {
    std::vector<TestResult> results(tensors.size());
    const Arena arena = Place(tensors);
    Launch(module, nullptr, arena, launches, scalar);
    for (size_t i = 0; i < tensors.size(); ++i) results[i].original = Get(arena, tensors, i);
    const auto shadow = MakeShadow(module.ptx);
    EXPECT_TRUE(shadow.has_value()) << shadow.error().ToString();
    if (!shadow) return results;
    shadow_ = *shadow;
    module.ptx = shadow->ptx;
    module.cubin.clear();
    Refill(arena, tensors);
    uint64_t blocks = 1, shared = 1;
    for (const TestLaunch& launch : launches) {
      blocks = std::max<uint64_t>(blocks, launch.grid);
      shared = std::max<uint64_t>(shared, launch.dynamic_shared + 48 * 1024);
    }
    auto space = ShadowSpace::Make(*device_, {.arena = arena.memory->address(),
                                              .arena_bytes = arena.memory->bytes(),
                                              .blocks = blocks,
                                              .shared_bytes = shared});
    EXPECT_TRUE(space.has_value()) << space.error().ToString();
    Launch(module, &*space, arena, launches, scalar);
    for (size_t i = 0; i < tensors.size(); ++i) {
      results[i].beside = Get(arena, tensors, i);
      results[i].twins = space->Read(arena.addresses[i], tensors[i].type, tensors[i].count())
                             .value();
    }
    return results;
  }

  struct Arena {
    std::unique_ptr<Buffer> memory;
    std::vector<DeviceAddress> addresses;
  };

  Arena Place(const std::vector<TestTensor>& tensors) {
    uint64_t bytes = 0;
    std::vector<uint64_t> offsets;
    for (const TestTensor& tensor : tensors) {
      offsets.push_back(bytes);
      bytes = (bytes + tensor.bytes.size() + 255) / 256 * 256;
    }
    Arena arena{device_->Allocate(bytes).value(), {}};
    for (const uint64_t offset : offsets)
      arena.addresses.push_back(arena.memory->address() + offset);
    Refill(arena, tensors);
    return arena;
  }

  void Refill(const Arena& arena, const std::vector<TestTensor>& tensors) {
    for (size_t i = 0; i < tensors.size(); ++i)
      EXPECT_TRUE(device_->CopyIn(arena.addresses[i], tensors[i].bytes));
  }

  TestTensor Get(const Arena& arena, const std::vector<TestTensor>& tensors, size_t i) {
    TestTensor tensor = tensors[i];
    EXPECT_TRUE(device_->CopyOut(tensor.bytes, arena.addresses[i]));
    return tensor;
  }

  void Launch(const CompiledModule& module, ShadowSpace* space, const Arena& arena,
              const std::vector<TestLaunch>& launches, int scalar) {
    auto loaded = device_->Load(module);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().ToString();
    if (space != nullptr) {
      const Status attached = space->Attach(**loaded);
      ASSERT_TRUE(attached.has_value()) << attached.error().ToString();
    }
    for (const TestLaunch& launch : launches) {
      std::vector<KernelArg> args;
      for (const DeviceAddress address : arena.addresses)
        args.push_back(KernelArg::Address(address));
      args.push_back(KernelArg::Value(std::as_bytes(std::span(&scalar, 1))));
      LaunchOptions options;
      options.check_hazards = false;
      const auto outcome = device_->Launch(**loaded, launch.entry,
                                           {.grid = {launch.grid, 1, 1},
                                            .block = {launch.block, 1, 1},
                                            .dynamic_shared_bytes = launch.dynamic_shared},
                                           args, options);
      ASSERT_TRUE(outcome.has_value()) << outcome.error().ToString();
      ASSERT_TRUE(outcome->completed()) << outcome->message;
    }
  }

  /// The shadow kernel leaves the same bits as the original.
  static void ExpectSameBits(const std::vector<TestResult>& results) {
    for (size_t i = 0; i < results.size(); ++i)
      EXPECT_EQ(results[i].original.bytes, results[i].beside.bytes) << "tensor " << i;
  }

  /// Twins are within `relative` of the truth, or `absolute`.
  static void ExpectNear(const std::vector<double>& twins, const std::vector<double>& truth,
                         double relative, double absolute = 0) {
    ASSERT_EQ(twins.size(), truth.size());
    for (size_t i = 0; i < truth.size(); ++i)
      ASSERT_NEAR(twins[i], truth[i], relative * std::abs(truth[i]) + absolute) << "element " << i;
  }

  /// The original's largest relative error.
  static double WorstError(const TestTensor& original, const std::vector<double>& truth) {
    double worst = 0;
    for (size_t i = 0; i < truth.size(); ++i)
      worst = std::max(worst, std::abs(original[i] - truth[i]) / std::abs(truth[i]));
    return worst;
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Compiler> compiler_;
  ShadowKernel shadow_;
};

}  // namespace atunner::shadow
