// The vendor libraries compute the same as the operators: a baseline that solves another task would
// make a wrong comparison.
#include <gtest/gtest.h>

#include "atunner/compile/nvrtc_compiler.h"
#include "atunner/device/real_device.h"
#include "atunner/measure/vendor.h"
#include "atunner/operators/operator.h"

namespace atunner {
namespace {

struct Task {
  const char* op;
  std::vector<std::vector<int64_t>> shapes;
  Attributes attributes;
};

class Vendors : public testing::Test {
 protected:
  void SetUp() override {
    const auto devices = ListRealDevices();
    if (!devices) GTEST_SKIP() << "[atunner] every test skipped: " << devices.error().what;
    compiler_ = MakeNvrtcCompiler().value();
    device_ = OpenRealDevice(0).value();
    kernels_ = JudgeKernels::Make(*device_, *compiler_).value();
  }

  void Check(const Task& task, DType dtype) {
    SCOPED_TRACE(std::string(task.op) + " " + std::string(Name(dtype)));
    const KernelSpec spec =
        FindOperator(task.op)->Instantiate({task.shapes, dtype, task.attributes}).value();
    auto oracle = OracleStore::Make(*device_, *compiler_, *kernels_, spec).value();
    const TaskBuffers buffers = TaskBuffers::Allocate(*device_, spec, spec.dims, 0).value();
    const InputInstance instance{InputFamily::kNormal, 3, false};
    ASSERT_TRUE(buffers.DrawInputs(*kernels_, instance));
    ASSERT_TRUE(buffers.PoisonOutputs(*kernels_, Poison::Fresh()));
    const auto names = VendorNames(spec);
    ASSERT_EQ(names.size(), 1u);
    const auto kernel = MakeVendorKernel(names[0], *device_, spec);
    ASSERT_TRUE(kernel) << kernel.error().ToString();
    const LaunchOutcome outcome = (*kernel)->Enqueue(buffers);
    ASSERT_TRUE(outcome.completed()) << outcome.message;
    const Reference* reference = oracle->Get(buffers, instance).value();
    for (const Reference::Output& output : reference->outputs) {
      const CompareStats stats = kernels_
                                     ->Compare({buffers.Find(output.name)->address, output.dtype,
                                                output.masked->address(), output.elements,
                                                output.key, output.scale, output.budget.element})
                                     .value();
      const OutputJudgement judgement = JudgeOutput(output.name, stats, output.budget, false);
      EXPECT_EQ(Name(judgement.kind), Name(VerdictKind::kCorrect)) << judgement.reason;
    }
  }

  std::unique_ptr<Compiler> compiler_;
  std::unique_ptr<TimedDevice> device_;
  std::unique_ptr<JudgeKernels> kernels_;
};

TEST_F(Vendors, ComputeWhatTheOperatorsMean) {
  const Task tasks[] = {
      {"matmul", {{96, 160, 224}}, {}},
      {"conv2d", {{4, 15, 17, 16}, {24, 3, 5}}, {{"padding", int64_t{1}}, {"stride", int64_t{2}}}},
      {"conv2d", {{2, 20, 20, 8}, {8, 3, 3}}, {{"padding", int64_t{2}}, {"dilation", int64_t{2}}}},
      {"softmax", {{300, 1000}}, {}},
      {"softmax_backward", {{300, 1000}}, {}},
  };
  for (const Task& task : tasks) {
    for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) Check(task, dtype);
  }
}

}  // namespace
}  // namespace atunner
