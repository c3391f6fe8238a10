#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "atunner/compile/nvrtc_compiler.h"
#include "atunner/device/range_profiler.h"
#include "atunner/device/real_device.h"

namespace atunner {
namespace {

constexpr const char* kDouble =
    "extern \"C\" __global__ void twice(float* y, const float* x) {\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n  y[i] = 2 * x[i];\n}\n";

TEST(RangeProfiler, CountsALaunch) {
  const auto devices = ListRealDevices();
  if (!devices) GTEST_SKIP() << "[atunner] every test skipped: " << devices.error().what;
  auto compiler = MakeNvrtcCompiler();
  ASSERT_TRUE(compiler) << compiler.error().ToString();
  const auto device = OpenRealDevice(0);
  ASSERT_TRUE(device) << device.error().ToString();
  CompileRequest request;
  request.source.text = kDouble;
  request.entries = {"twice"};
  request.arch = (*device)->arch();
  const auto compiled = (*compiler)->Compile(request);
  ASSERT_TRUE(compiled && compiled->ok());
  const auto module = (*device)->Load(*compiled->module);
  ASSERT_TRUE(module) << module.error().ToString();
  constexpr uint32_t kBlocks = 1 << 17, kThreads = 256;  // 128 MiB each, more than L2 holds
  constexpr uint64_t kBytes = uint64_t{4} * kBlocks * kThreads;
  const auto x = (*device)->Allocate(kBytes), y = (*device)->Allocate(kBytes);
  ASSERT_TRUE(x && y);
  const std::vector<KernelArg> args = {KernelArg::Address((*y)->address()),
                                       KernelArg::Address((*x)->address())};
  CountedRun run;
  run.prepare = [&] { return (*device)->Fill((*x)->address(), 1, kBytes); };
  run.launch = [&]() -> Status {
    ATUNNER_TRY(
        const LaunchOutcome outcome,
        (*device)->Launch(**module, "twice", {{kBlocks, 1, 1}, {kThreads, 1, 1}, {}}, args, {}));
    return outcome.completed() ? Status() : Invalid(outcome.message);
  };
  const std::vector<std::string> metrics = {"smsp__inst_executed_op_global_ld.sum",
                                            "smsp__inst_executed_op_global_st.sum",
                                            "dram__bytes.sum", "gpu__time_duration.sum"};
  const auto values = CountMetrics(metrics, run);
  if (!values) GTEST_SKIP() << values.error().ToString();
  ASSERT_EQ(values->of_launch.size(), 1U);
  ASSERT_EQ(values->metrics, metrics);
  const std::vector<double>& counts = values->of_launch.front();
  constexpr double kWarps = kBlocks * (kThreads / 32);
  EXPECT_DOUBLE_EQ(counts[0], kWarps);
  EXPECT_DOUBLE_EQ(counts[1], kWarps);
  EXPECT_GT(counts[2], 0.9 * kBytes);
  EXPECT_LT(counts[2], 2.5 * kBytes);
  EXPECT_GT(counts[3], 1e4);  // ns
}

}  // namespace
}  // namespace atunner
