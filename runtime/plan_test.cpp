// Execution plans through the C header, on the virtual driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atunner.hpp>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "atunner/base/cuda_abi.h"
#include "atunner/model/plan/execution_plan.h"
#include "runtime/test_artifacts.h"
#include "runtime/testing/driver_client.h"

namespace atunner::loader {
namespace {

using testing::HasSubstr;
using testing::Not;
using Buffer = PlanBuffer::Kind;
using Step = PlanStep::Kind;

constexpr int64_t kN = 1000;

PlanBuffer Vector(const std::string& name, Buffer kind, int64_t extent = kN) {
  return {name, kind, DType::kFloat32, {extent}};
}

/// a = x · table[i % 4]; b = a / 2 + 1 with scratch memory; c = b · 2.5; y = c; z = copy of b.
ExecutionPlan Chain() {
  ExecutionPlan plan;
  plan.name = "chain";
  plan.kernels = {"kernels/1-table", "kernels/2-two_step", "kernels/3-scale"};
  plan.buffers = {Vector("x", Buffer::kInput),        Vector("table", Buffer::kWeight, 4),
                  Vector("a", Buffer::kIntermediate), Vector("b", Buffer::kIntermediate),
                  Vector("s", Buffer::kIntermediate), Vector("y", Buffer::kOutput),
                  Vector("z", Buffer::kOutput)};
  plan.buffers[4] = {"s", Buffer::kIntermediate, DType::kUInt8, {4352}};
  plan.buffers[1].qualified_name = "layer.table";
  plan.buffers[1].offset = 256;
  plan.weight_bytes = 256 + 16;
  plan.steps = {{Step::kLaunch, {{"x", 0}, {"table", 1}}, {{"y", 2}}, 0},
                {Step::kLaunch, {{"x", 2}}, {{"y", 3}}, 1, {4}},
                {Step::kLaunch, {{"x", 3}}, {{"y", 5}}, 2},
                {Step::kCopy, {{"", 3}}, {{"", 6}}}};
  return plan;
}

class Plans : public testing::Test {
 protected:
  void SetUp() override {
    cuda_.Play("A100");
    cuda_.AcceptCubins(false);
    cuda_.ResetLog();
  }
  void TearDown() override {
    atunner_plan_free(plan_);
    EXPECT_EQ(cuda_.context_depth(), 0) << "what was current before must be current after";
  }

  Path folder() const { return dir_.path() / "plan"; }
  void Save(ExecutionPlan plan) {
    EXPECT_TRUE(SaveTestArtifact(folder() / "kernels/1-table", TableArtifact()));
    EXPECT_TRUE(SaveTestArtifact(folder() / "kernels/2-two_step", TwoStepArtifact()));
    EXPECT_TRUE(SaveTestArtifact(folder() / "kernels/3-scale", ScaleArtifact()));
    std::string weights(plan.weight_bytes, '\0');
    const float table[] = {1, 2, 3, 4};
    if (!weights.empty())
      weights.replace(256, sizeof table, reinterpret_cast<const char*>(table), sizeof table);
    plan.weight_digest = DigestOf(weights);
    EXPECT_TRUE(WriteFileAtomic(folder() / kWeightsFile, weights));
    EXPECT_TRUE(PlaceIntermediates(plan));
    EXPECT_TRUE(WriteFileAtomic(folder() / kPlanFile, PlanText(plan)));
  }
  atunner_status Load() {
    return atunner_plan_load(folder().c_str(), ATUNNER_VIRTUAL_CUDA, 0, &plan_);
  }
  void MustLoad(const ExecutionPlan& plan) {
    Save(plan);
    ASSERT_EQ(Load(), ATUNNER_OK) << atunner_last_error();
  }

  static std::vector<float> Ramp() {
    std::vector<float> values(kN);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 3.0f;
    return values;
  }
  /// b of Chain.
  static float Halved(size_t i) {
    const float table[] = {1, 2, 3, 4};
    return Ramp()[i] * table[i % 4] / 2 + 1;
  }

  testing_driver::Client cuda_{ATUNNER_VIRTUAL_CUDA};
  TemporaryDirectory dir_;
  atunner_plan* plan_ = nullptr;
};

/// A run of a plan with memory on the virtual GPU.
struct DeviceRun {
  DeviceRun(const testing_driver::Client& cuda, const std::vector<float>& x)
      : inputs{cuda.Upload(x)},
        outputs{cuda.Upload(std::vector<float>(kN, -1)), cuda.Upload(std::vector<float>(kN, -1))} {
    info.inputs = inputs;
    info.input_count = 1;
    info.outputs = outputs;
    info.output_count = 2;
  }
  uint64_t inputs[1];
  uint64_t outputs[2];
  atunner_plan_run_info info = ATUNNER_PLAN_RUN_INIT;
};

TEST_F(Plans, AModelRunsOnTheUsersStream) {
  MustLoad(Chain());
  EXPECT_EQ(atunner_plan_weight_bytes(plan_), 272u);
  EXPECT_EQ(atunner_plan_extern_count(plan_), 0u);
  DeviceRun run(cuda_, Ramp());
  run.info.stream = reinterpret_cast<void*>(uintptr_t{0x57});
  cuda_.ResetLog();
  ASSERT_EQ(atunner_plan_run(plan_, &run.info), ATUNNER_OK) << atunner_last_error();
  EXPECT_THAT(cuda_.log(), HasSubstr("cuLaunchKernel halve"));
  EXPECT_THAT(cuda_.log(), HasSubstr("stream=0x57"));
  EXPECT_THAT(cuda_.log(), Not(HasSubstr("stream=0x0")));
  // a, b and the scratch memory do not fit into two buffers: a lives beside the scratch memory.
  EXPECT_EQ(atunner_plan_workspace_bytes(plan_), 4352u + 2 * 4096);
  EXPECT_THAT(cuda_.log(), HasSubstr("cuMemAllocAsync 12544"));
  const auto y = cuda_.Download(run.outputs[0], kN);
  const auto z = cuda_.Download(run.outputs[1], kN);
  for (size_t i = 0; i < kN; ++i) {
    ASSERT_EQ(z[i], Halved(i)) << i;
    ASSERT_EQ(y[i], 2.5f * Halved(i)) << i;
  }
}

TEST_F(Plans, AModelRunsFromCpp) {
  Save(Chain());
  runtime::Plan plan(folder().string(), 0, ATUNNER_VIRTUAL_CUDA);
  EXPECT_EQ(plan.workspace_bytes(), 12544u);
  const DeviceRun run(cuda_, Ramp());
  runtime::Plan moved = std::move(plan);
  moved.Run(nullptr, {run.inputs[0]}, {run.outputs[0], run.outputs[1]});
  EXPECT_EQ(cuda_.Download(run.outputs[0], kN)[10], 2.5f * Halved(10));
  EXPECT_THROW(moved.Run(nullptr, {}, {}), runtime::Error);
  EXPECT_THROW(runtime::Plan("/nonexistent", 0, ATUNNER_VIRTUAL_CUDA), runtime::Error);
}

TEST_F(Plans, RunsTakeTheCallersWorkspace) {
  MustLoad(Chain());
  DeviceRun run(cuda_, Ramp());
  run.info.workspace = cuda_.Upload(std::vector<float>(12544 / 4 + 64)) + 255;
  run.info.workspace -= run.info.workspace % 256;
  run.info.workspace_bytes = 12544;
  cuda_.ResetLog();
  ASSERT_EQ(atunner_plan_run(plan_, &run.info), ATUNNER_OK) << atunner_last_error();
  EXPECT_THAT(cuda_.log(), Not(HasSubstr("Async 12544")));
  EXPECT_THAT(cuda_.log(), Not(HasSubstr("cuMemcpyHtoD"))) << "weights are uploaded once";
  EXPECT_EQ(cuda_.Download(run.outputs[0], kN)[10], 2.5f * Halved(10));
  run.info.workspace_bytes = 12543;
  EXPECT_EQ(atunner_plan_run(plan_, &run.info), ATUNNER_INVALID);
  EXPECT_THAT(atunner_last_error(), HasSubstr("12544 are needed"));
  run.info.workspace_bytes = 12544;
  run.info.workspace += 16;
  EXPECT_EQ(atunner_plan_run(plan_, &run.info), ATUNNER_INVALID);
  EXPECT_THAT(atunner_last_error(), HasSubstr("not aligned to 256"));
}

TEST_F(Plans, TensorsAreDescribed) {
  MustLoad(Chain());
  ASSERT_EQ(atunner_plan_input_count(plan_), 1u);
  ASSERT_EQ(atunner_plan_output_count(plan_), 2u);
  atunner_argument argument = ATUNNER_ARGUMENT_INIT;
  ASSERT_EQ(atunner_plan_input(plan_, 0, &argument), ATUNNER_OK);
  EXPECT_STREQ(argument.name, "x");
  EXPECT_STREQ(argument.dtype, "float32");
  EXPECT_EQ(argument.role, ATUNNER_INPUT);
  ASSERT_EQ(argument.rank, 1u);
  EXPECT_EQ(argument.extents[0], kN);
  ASSERT_EQ(atunner_plan_output(plan_, 1, &argument), ATUNNER_OK);
  EXPECT_STREQ(argument.name, "z");
  EXPECT_EQ(argument.role, ATUNNER_OUTPUT);
  EXPECT_EQ(argument.bytes, 4000u);
  EXPECT_EQ(atunner_plan_output(plan_, 2, &argument), ATUNNER_INVALID);
  EXPECT_EQ(atunner_plan_input(nullptr, 0, &argument), ATUNNER_INVALID);
  EXPECT_EQ(atunner_plan_input(plan_, 0, nullptr), ATUNNER_INVALID);
  argument.struct_size = 8;
  EXPECT_EQ(atunner_plan_input(plan_, 0, &argument), ATUNNER_INVALID);
}

TEST_F(Plans, ARunOnTheHostsMemory) {
  MustLoad(Chain());
  std::vector<float> x = Ramp(), y(kN), z(kN);
  const uint64_t inputs[] = {reinterpret_cast<uintptr_t>(x.data())};
  const uint64_t outputs[] = {reinterpret_cast<uintptr_t>(y.data()),
                              reinterpret_cast<uintptr_t>(z.data())};
  atunner_plan_run_info run = ATUNNER_PLAN_RUN_INIT;
  run.inputs = inputs;
  run.input_count = 1;
  run.outputs = outputs;
  run.output_count = 2;
  run.on_host = 1;
  ASSERT_EQ(atunner_plan_run(plan_, &run), ATUNNER_OK) << atunner_last_error();
  for (size_t i = 0; i < kN; ++i) ASSERT_EQ(y[i], 2.5f * Halved(i)) << i;
  EXPECT_EQ(z[7], Halved(7));
}

/// Chain, in which the framework computes b = |a|; the plan writes b over x in the end.
ExecutionPlan WithExtern() {
  ExecutionPlan plan = Chain();
  plan.steps[1] = {Step::kExtern, {{"a", 2}}, {{"b", 3}}};
  plan.steps[1].target = "aten.abs.default";
  plan.steps[1].arguments = R"([{"name":"self","arg":{"as_tensor":{"name":"a"}}}])";
  plan.steps.push_back({Step::kCopy, {{"", 3}}, {{"", 0}}});
  plan.buffers.erase(plan.buffers.begin() + 4);
  for (PlanStep& step : plan.steps) {
    for (PlanTensor& tensor : step.writes) tensor.buffer -= tensor.buffer > 4 ? 1 : 0;
  }
  return plan;
}

/// What the caller's function got, and what it answers.
struct Framework {
  const testing_driver::Client* cuda = nullptr;
  std::string seen;
  int answer = 0;

  static int Run(void* user, const atunner_extern_call* call) {
    auto& self = *static_cast<Framework*>(user);
    const atunner_extern_tensor& in = call->inputs[0];
    const atunner_extern_tensor& out = call->outputs[0];
    self.seen = std::string(call->target) + " " + in.name + " " + out.name + " " + in.dtype + " " +
                call->arguments;
    std::vector<float> values(kN);
    if (call->on_host == 0) values = self.cuda->Download(in.address, kN);
    const auto* host = reinterpret_cast<const float*>(static_cast<uintptr_t>(in.address));
    if (call->on_host != 0) values.assign(host, host + kN);
    for (float& value : values) value = std::fabs(value);
    if (call->on_host != 0)
      std::copy(values.begin(), values.end(),
                reinterpret_cast<float*>(static_cast<uintptr_t>(out.address)));
    else
      self.cuda->Call<int(cuda::DevicePointer, const void*, size_t)>(
          "cuMemcpyHtoD_v2", cuda::DevicePointer{out.address},
          static_cast<const void*>(values.data()), size_t{4 * kN});
    return self.answer;
  }
};

TEST_F(Plans, TheFrameworkRunsUnknownOperators) {
  MustLoad(WithExtern());
  EXPECT_EQ(atunner_plan_extern_count(plan_), 1u);
  DeviceRun run(cuda_, Ramp());
  EXPECT_EQ(atunner_plan_run(plan_, &run.info), ATUNNER_INVALID);
  EXPECT_THAT(atunner_last_error(), HasSubstr("the framework must run"));
  Framework framework{&cuda_};
  run.info.run_extern = &Framework::Run;
  run.info.user = &framework;
  ASSERT_EQ(atunner_plan_run(plan_, &run.info), ATUNNER_OK) << atunner_last_error();
  EXPECT_EQ(framework.seen,
            "aten.abs.default a b float32 "
            R"([{"name":"self","arg":{"as_tensor":{"name":"a"}}}])");
  EXPECT_EQ(cuda_.Download(run.outputs[1], kN)[1], 4.0f);  // |-2 · 2|
  EXPECT_EQ(cuda_.Download(run.outputs[0], kN)[1], 10.0f);
  EXPECT_EQ(cuda_.Download(run.inputs[0], kN)[1], 4.0f) << "the plan changes its input";
  atunner_argument argument = ATUNNER_ARGUMENT_INIT;
  ASSERT_EQ(atunner_plan_input(plan_, 0, &argument), ATUNNER_OK);
  EXPECT_EQ(argument.role, ATUNNER_INOUT);
  framework.answer = 1;
  EXPECT_EQ(atunner_plan_run(plan_, &run.info), ATUNNER_UNAVAILABLE);
  EXPECT_THAT(atunner_last_error(), HasSubstr("could not run aten.abs.default"));
}

TEST_F(Plans, TheFrameworkRunsUnknownOperatorsOnTheHost) {
  MustLoad(WithExtern());
  std::vector<float> x = Ramp(), y(kN), z(kN);
  const uint64_t inputs[] = {reinterpret_cast<uintptr_t>(x.data())};
  const uint64_t outputs[] = {reinterpret_cast<uintptr_t>(y.data()),
                              reinterpret_cast<uintptr_t>(z.data())};
  Framework framework{&cuda_};
  atunner_plan_run_info run = ATUNNER_PLAN_RUN_INIT;
  run.inputs = inputs;
  run.input_count = 1;
  run.outputs = outputs;
  run.output_count = 2;
  run.on_host = 1;
  run.run_extern = &Framework::Run;
  run.user = &framework;
  ASSERT_EQ(atunner_plan_run(plan_, &run), ATUNNER_OK) << atunner_last_error();
  EXPECT_EQ(z[1], 4.0f);
  EXPECT_EQ(y[1], 10.0f);
  EXPECT_EQ(x[1], 4.0f);
}

TEST_F(Plans, WrongRunsAreRefused) {
  MustLoad(Chain());
  const auto error_of = [&](const std::function<void(DeviceRun&)>& change) {
    DeviceRun run(cuda_, Ramp());
    change(run);
    EXPECT_EQ(atunner_plan_run(plan_, &run.info), ATUNNER_INVALID);
    return std::string(atunner_last_error());
  };
  EXPECT_THAT(error_of([](DeviceRun& r) { r.info.input_count = 0; }), HasSubstr("takes 1 input,"));
  EXPECT_THAT(error_of([](DeviceRun& r) { r.info.output_count = 1; }), HasSubstr("has 2 outputs"));
  EXPECT_THAT(error_of([](DeviceRun& r) { r.inputs[0] = 0; }), HasSubstr("'x' is null"));
  EXPECT_THAT(error_of([](DeviceRun& r) { r.outputs[1] += 4; }), HasSubstr("'z' is not aligned"));
  EXPECT_THAT(error_of([](DeviceRun& r) { r.info.inputs = nullptr; }), HasSubstr("inputs is NULL"));
  EXPECT_THAT(error_of([](DeviceRun& r) { r.info.outputs = nullptr; }),
              HasSubstr("outputs is NULL"));
  EXPECT_THAT(error_of([](DeviceRun& r) { r.info.struct_size = 8; }), HasSubstr("struct_size"));
  EXPECT_EQ(atunner_plan_run(plan_, nullptr), ATUNNER_INVALID);
  EXPECT_EQ(atunner_plan_run(nullptr, nullptr), ATUNNER_INVALID);
}

TEST_F(Plans, DriverErrorsEndTheRun) {
  MustLoad(Chain());
  for (const char* function : {"cuLaunchKernel", "cuMemcpyDtoDAsync_v2", "cuMemAllocAsync"}) {
    DeviceRun run(cuda_, Ramp());
    cuda_.FailNext(function, cuda::kOutOfMemory);
    EXPECT_EQ(atunner_plan_run(plan_, &run.info), ATUNNER_UNAVAILABLE) << function;
  }
  Save(Chain());
  atunner_plan* other = nullptr;
  cuda_.FailNext("cuMemcpyHtoD_v2", cuda::kOutOfMemory);
  EXPECT_EQ(atunner_plan_load(folder().c_str(), ATUNNER_VIRTUAL_CUDA, 0, &other),
            ATUNNER_UNAVAILABLE);
  EXPECT_EQ(other, nullptr);
  EXPECT_THAT(atunner_last_error(), HasSubstr("copy the weights"));
}

TEST_F(Plans, DamagedFoldersAreRefused) {
  EXPECT_EQ(Load(), ATUNNER_NOT_FOUND);
  EXPECT_THAT(atunner_last_error(), HasSubstr("is no execution plan"));
  EXPECT_EQ(atunner_plan_load(nullptr, nullptr, 0, &plan_), ATUNNER_INVALID);
  EXPECT_EQ(atunner_plan_load("x", nullptr, -2, &plan_), ATUNNER_INVALID);
  EXPECT_EQ(atunner_plan_load("x", nullptr, 0, nullptr), ATUNNER_INVALID);
  const auto error_after = [&](const std::function<void(ExecutionPlan&)>& change) {
    ExecutionPlan plan = Chain();
    change(plan);
    Save(plan);
    EXPECT_NE(Load(), ATUNNER_OK);
    return std::string(atunner_last_error());
  };
  EXPECT_THAT(error_after([](ExecutionPlan& p) { p.steps[0].reads[0].argument = "q"; }),
              HasSubstr("gives no 'x' to kernels/1-table"));
  EXPECT_THAT(error_after([](ExecutionPlan& p) { p.buffers[0].extents = {999}; }),
              HasSubstr("another size than 'x'"));
  EXPECT_THAT(error_after([](ExecutionPlan& p) { p.buffers[4].extents = {4351}; }),
              HasSubstr("too little scratch memory"));
  Save(Chain());
  std::string weights = ReadFile(folder() / kWeightsFile).value();
  weights[0] = 1;
  ASSERT_TRUE(WriteFileAtomic(folder() / kWeightsFile, weights));
  EXPECT_EQ(Load(), ATUNNER_INVALID);
  EXPECT_THAT(atunner_last_error(), HasSubstr("weights are not those"));
  ASSERT_TRUE(WriteFileAtomic(folder() / kWeightsFile, weights + "x"));
  EXPECT_EQ(Load(), ATUNNER_INVALID);
  EXPECT_THAT(atunner_last_error(), HasSubstr("272 bytes"));
  std::filesystem::remove(folder() / kWeightsFile);
  EXPECT_EQ(Load(), ATUNNER_NOT_FOUND);
  std::filesystem::remove_all(folder() / "kernels/3-scale");
  EXPECT_EQ(Load(), ATUNNER_NOT_FOUND);
  EXPECT_THAT(atunner_last_error(), HasSubstr("3-scale"));
}

/// A run that may be replayed, in the stream that captures of the virtual driver do not use.
struct ReplayedRun : DeviceRun {
  ReplayedRun(const testing_driver::Client& cuda, const std::vector<float>& x)
      : DeviceRun(cuda, x) {
    info.workspace = cuda.Upload(std::vector<float>(12544 / 4 + 64)) + 255;
    info.workspace -= info.workspace % 256;
    info.workspace_bytes = 12544;
    info.stream = reinterpret_cast<void*>(uintptr_t{0x57});
    info.replay = 1;
  }
};

TEST_F(Plans, EqualRunsAreRecordedAndReplayed) {
  MustLoad(Chain());
  ReplayedRun run(cuda_, Ramp());
  const auto log_of_run = [&] {
    cuda_.ResetLog();
    EXPECT_EQ(atunner_plan_run(plan_, &run.info), ATUNNER_OK) << atunner_last_error();
    EXPECT_EQ(cuda_.Download(run.outputs[0], kN)[10], 2.5f * Halved(10));
    return cuda_.log();
  };
  EXPECT_THAT(log_of_run(), Not(HasSubstr("cuGraph"))) << "the first run loads the kernels";
  // A table is copied to its symbol, three kernels are launched as four, and a result is copied.
  const std::string recorded = log_of_run();
  EXPECT_THAT(recorded, HasSubstr("cuStreamBeginCapture_v2 1"));
  EXPECT_THAT(recorded, HasSubstr("cuGraphLaunch operations=6 stream=0x57"));
  const std::string replayed = log_of_run();
  EXPECT_THAT(replayed, Not(HasSubstr("cuLaunchKernel")));
  EXPECT_THAT(replayed, HasSubstr("cuGraphLaunch operations=6"));
  const uint64_t other = cuda_.Upload(Ramp());
  run.inputs[0] = other;
  EXPECT_THAT(log_of_run(), Not(HasSubstr("cuGraph"))) << "another address is another run";
  cuda_.ResetLog();
  atunner_plan_free(plan_);
  plan_ = nullptr;
  EXPECT_THAT(cuda_.log(), HasSubstr("cuGraphExecDestroy"));
}

TEST_F(Plans, ARunThatCannotBeRecordedIsEnqueued) {
  MustLoad(Chain());
  for (const char* function :
       {"cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphInstantiateWithFlags"}) {
    SCOPED_TRACE(function);
    ReplayedRun run(cuda_, Ramp());
    EXPECT_EQ(atunner_plan_run(plan_, &run.info), ATUNNER_OK) << atunner_last_error();
    cuda_.FailNext(function, cuda::kNotSupported);
    EXPECT_EQ(atunner_plan_run(plan_, &run.info), ATUNNER_OK) << atunner_last_error();
    cuda_.ResetLog();
    EXPECT_EQ(atunner_plan_run(plan_, &run.info), ATUNNER_OK) << "it is not tried again";
    EXPECT_THAT(cuda_.log(), Not(HasSubstr("Capture")));
    EXPECT_EQ(cuda_.Download(run.outputs[0], kN)[10], 2.5f * Halved(10));
  }
  ReplayedRun run(cuda_, Ramp());
  const auto stream = static_cast<cuda::Stream>(run.info.stream);
  EXPECT_EQ(atunner_plan_run(plan_, &run.info), ATUNNER_OK);
  cuda_.Call<int(cuda::Stream, int)>("cuStreamBeginCapture_v2", stream, 0);
  cuda_.ResetLog();
  EXPECT_EQ(atunner_plan_run(plan_, &run.info), ATUNNER_OK);
  EXPECT_THAT(cuda_.log(), Not(HasSubstr("cuGraph"))) << "the caller captures the stream itself";
  void* graph = nullptr;
  EXPECT_EQ(cuda_.Call<int(cuda::Stream, void**)>("cuStreamEndCapture", stream, &graph), 0);
  run.info.workspace = 0;
  EXPECT_EQ(atunner_plan_run(plan_, &run.info), ATUNNER_OK);
  EXPECT_THAT(cuda_.log(), HasSubstr("cuMemAllocAsync")) << "no replay without a workspace";
}

TEST_F(Plans, ThreadsRunOnePlan) {
  MustLoad(Chain());
  const uint64_t x = cuda_.Upload(Ramp());
  std::vector<std::thread> threads;
  std::vector<uint64_t> results;
  for (int i = 0; i < 8; ++i) results.push_back(cuda_.Upload(std::vector<float>(kN, -1)));
  for (size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      atunner_plan_run_info run = ATUNNER_PLAN_RUN_INIT;
      run.inputs = &x;
      run.input_count = 1;
      run.outputs = &results[2 * i];
      run.output_count = 2;
      EXPECT_EQ(atunner_plan_run(plan_, &run), ATUNNER_OK) << atunner_last_error();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(cuda_.Download(results[2 * i], kN)[999], 2.5f * Halved(999));
}

}  // namespace
}  // namespace atunner::loader
