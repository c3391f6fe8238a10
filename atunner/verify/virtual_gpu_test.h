// Shared by the tests of this room: the judge's kernels on a virtual GPU, and a device that does
// not check bounds.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "atunner/compile/shared_compiler_test.h"
#include "atunner/device/profiles.h"
#include "atunner/verify/verifier.h"
#include "atunner/vgpu/virtual_gpu.h"

namespace atunner {

/// A virtual GPU that reports no bounds checks, like a real GPU, so that guard zones are used.
class UncheckedGpu : public Device {
 public:
  explicit UncheckedGpu(Device& inner) : inner_(inner) {}
  uint64_t free_bytes = 0;       ///< 0 = as the inner device says
  int launches = 0;              ///< so far
  bool hides_unwritten = false;  ///< everything counts as written, as on a real GPU

  const DeviceProfile& profile() const override { return inner_.profile(); }
  Evidence evidence() const override { return inner_.evidence(); }
  std::string arch() const override { return inner_.arch(); }
  bool checks_bounds() const override { return false; }
  Result<std::unique_ptr<Buffer>> Allocate(uint64_t bytes) override {
    return inner_.Allocate(bytes);
  }
  Status CopyIn(DeviceAddress to, std::span<const std::byte> from) override {
    return inner_.CopyIn(to, from);
  }
  Status CopyOut(std::span<std::byte> to, DeviceAddress from) override {
    return inner_.CopyOut(to, from);
  }
  Status CopyWithin(DeviceAddress to, DeviceAddress from, uint64_t bytes) override {
    return inner_.CopyWithin(to, from, bytes);
  }
  Status Fill(DeviceAddress to, uint8_t byte, uint64_t bytes) override {
    return inner_.Fill(to, byte, bytes);
  }
  void MarkContents(DeviceAddress address, uint64_t bytes, bool written) override {
    inner_.MarkContents(address, bytes, written || hides_unwritten);
  }
  Result<uint64_t> FreeBytes() override {
    return free_bytes ? Result<uint64_t>(free_bytes) : inner_.FreeBytes();
  }
  Result<std::unique_ptr<LoadedModule>> Load(const CompiledModule& module) override {
    return inner_.Load(module);
  }
  Result<std::pair<DeviceAddress, uint64_t>> FindSymbol(LoadedModule& module,
                                                        const std::string& symbol) override {
    return inner_.FindSymbol(module, symbol);
  }
  Result<LaunchOutcome> Launch(LoadedModule& module, const std::string& entry,
                               const LaunchShape& shape, std::span<const KernelArg> args,
                               const LaunchOptions& options) override {
    ++launches;
    return inner_.Launch(module, entry, shape, args, options);
  }

 private:
  Device& inner_;
};

class VirtualGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = MakeSharedCompiler();
    if (!made) GTEST_SKIP() << made.error().ToString();
    compiler_ = *std::move(made);
    gpu_.TrackMemory();
    auto kernels = JudgeKernels::Make(gpu_, *compiler_);
    ASSERT_TRUE(kernels.has_value()) << kernels.error().ToString();
    kernels_ = *std::move(kernels);
  }

  std::unique_ptr<Buffer> Room(uint64_t bytes) { return gpu_.Allocate(bytes).value(); }
  template <class T>
  std::unique_ptr<Buffer> Put(const std::vector<T>& values) {
    auto buffer = Room(values.size() * sizeof(T));
    EXPECT_TRUE(gpu_.CopyIn(buffer->address(), std::as_bytes(std::span(values))));
    return buffer;
  }
  template <class T>
  std::vector<T> Get(DeviceAddress address, size_t count) {
    std::vector<T> values(count);
    EXPECT_TRUE(gpu_.CopyOut(std::as_writable_bytes(std::span(values)), address));
    return values;
  }

  CandidateKernel Compile(const std::string& text, LaunchPlan plan) {
    CompileRequest request;
    request.source.text = text;
    request.arch = gpu_.arch();
    for (const LaunchStep& step : plan.steps) request.entries.push_back(step.entry);
    const CompileOutcome outcome = compiler_->Compile(request).value();
    EXPECT_TRUE(outcome.ok()) << outcome.error;
    return {outcome.ok() ? *outcome.module : CompiledModule{}, std::move(plan), {}};
  }

  /// A kernel with one thread per row; `body` computes `row` of all tensors of the task.
  CandidateKernel KernelOfRows(const KernelSpec& spec, int rows, const std::string& body) {
    LaunchStep step{.entry = "k", .grid = {rows, 1, 1}, .block = {32, 1, 1}};
    std::string parameters;
    for (const ArgSpec& arg : spec.args) {
      step.args.push_back(ArgBinding::Tensor(arg.name));
      const std::string type = arg.dtype == DType::kInt64      ? "long long"
                               : arg.dtype == DType::kInt8     ? "signed char"
                               : arg.dtype == DType::kBFloat16 ? "__nv_bfloat16"
                                                               : "float";
      parameters += fmt::format("{}{}{}* {}", parameters.empty() ? "" : ", ",
                                arg.role == Role::kInput ? "const " : "", type, arg.name);
    }
    return Compile(fmt::format("#include <cuda_bf16.h>\nextern \"C\" __global__ void k({}) {{\n"
                               "  if (threadIdx.x) return;\n  const int row = blockIdx.x;\n{}}}\n",
                               parameters, body),
                   {.steps = {step}});
  }

  /// The verdict on the candidate for each of several seeds.
  std::vector<std::string> Refusals(const KernelSpec& spec, const CandidateKernel& candidate,
                                    uint64_t seeds) {
    std::vector<std::string> reasons;
    const auto shared = std::make_shared<const CandidateKernel>(candidate);
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      VerifyOptions options;
      options.seed = seed;
      auto verifier = Verifier::Make(gpu_, *compiler_, spec, options);
      EXPECT_TRUE(verifier.has_value()) << verifier.error().ToString();
      const auto verified = (*verifier)->Verify(shared);
      EXPECT_TRUE(verified.has_value()) << verified.error().ToString();
      if (const auto* verdict = std::get_if<Verdict>(&*verified))
        reasons.push_back(verdict->reason);
    }
    return reasons;
  }

  vgpu::VirtualGpu gpu_{FindProfile("A100").value(), 2};
  std::unique_ptr<Compiler> compiler_;
  std::unique_ptr<JudgeKernels> kernels_;
};

}  // namespace atunner
