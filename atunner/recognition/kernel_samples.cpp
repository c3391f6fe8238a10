#include "atunner/recognition/kernel_samples.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "atunner/base/random.h"
#include "atunner/model/kernel/exact_fill.h"
#include "atunner/verify/launch/task_buffers.h"

namespace atunner::recognition {
namespace {

constexpr double kTimeoutSeconds = 10;
constexpr uint64_t kMostWarpInstructions = 8'000'000;  // of a run: about a second
constexpr uint64_t kSomeBlocks = 24, kFewBlocks = 2;

class Runner {
 public:
  static Result<Runner> Make(const RenderedKernel& kernel, const KernelSpec& spec, const Dims& dims,
                             Device& device, Compiler& compiler) {
    ATUNNER_TRY(CompileOutcome outcome,
                compiler.Compile({kernel.source, EntriesOf(kernel.plan), device.profile().Arch()}));
    if (!outcome.ok()) return Invalid("the kernel does not compile: " + outcome.error);
    Runner runner(device, kernel.plan, spec);
    ATUNNER_TRY(runner.module_, device.Load(*outcome.module));
    ATUNNER_TRY(TaskBuffers buffers, TaskBuffers::Allocate(device, spec, dims, 0));
    runner.buffers_ = std::make_unique<TaskBuffers>(std::move(buffers));
    ATUNNER_TRY(runner.kernels_, JudgeKernels::Make(device, compiler));
    return runner;
  }

  /// Inputs are multiplied by `scale`.
  Result<Sample> Run(const InputInstance& instance, double scale) {
    ATUNNER_RETURN_IF_ERROR(buffers_->DrawInputs(*kernels_, instance));
    Sample sample;
    for (const TaskBuffers::Tensor& tensor : buffers_->tensors())
      ATUNNER_RETURN_IF_ERROR(Prepare(tensor, scale));
    ATUNNER_TRY(sample.before, Read());
    ATUNNER_TRY(const BoundPlan plan, BindPlan(device_, plan_, spec_, *buffers_));
    ATUNNER_RETURN_IF_ERROR(CopySymbols(device_, *module_, plan));
    LaunchOptions options;
    options.timeout_seconds = kTimeoutSeconds;
    options.max_warp_instructions = kMostWarpInstructions;
    options.blocks = blocks_;
    ATUNNER_TRY(const LaunchOutcome outcome, RunPlan(device_, *module_, plan, options));
    if (outcome.kind == LaunchOutcome::Kind::kTimeout && ChooseBlocks(plan))
      return Run(instance, scale);
    if (!outcome.completed()) return Invalid("the kernel does not complete: " + outcome.message);
    ATUNNER_TRY(sample.after, Read());
    return sample;
  }
  bool whole() const { return blocks_.empty(); }

 private:
  Runner(Device& device, const LaunchPlan& plan, const KernelSpec& spec)
      : device_(device), plan_(plan), spec_(spec) {}

  /// Blocks in all parts of the grid, at irregular distances: some, and after that few. False if
  /// those were too many, or if there are several launches, of which later ones need all that
  /// earlier ones write.
  bool ChooseBlocks(const BoundPlan& plan) {
    const uint64_t all = plan.steps.front().shape.grid.Count();
    const uint64_t count = blocks_.empty() ? std::min(kSomeBlocks, all / 2) : kFewBlocks;
    if (plan.steps.size() != 1 || count < kFewBlocks || blocks_.size() == kFewBlocks) return false;
    blocks_.clear();
    Random random(count);
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t from = all * i / count, to = all * (i + 1) / count;
      blocks_.push_back(from + random.Below(to - from));
    }
    return true;
  }

  Result<std::vector<std::byte>> BytesOf(const TaskBuffers::Tensor& tensor) {
    std::vector<std::byte> bytes(static_cast<size_t>(tensor.shape.bytes));
    ATUNNER_RETURN_IF_ERROR(device_.CopyOut(bytes, tensor.address));
    return bytes;
  }

  Status Prepare(const TaskBuffers::Tensor& tensor, double scale) {
    const DType dtype = tensor.spec->dtype;
    if (!tensor.is_input()) {
      const std::vector<std::byte> unset(static_cast<size_t>(tensor.shape.bytes), std::byte{0xff});
      return device_.CopyIn(tensor.address, unset);
    }
    if (scale == 1 || !IsFloat(dtype) || tensor.spec->fill.kind != Fill::Kind::kFamilies) return {};
    ATUNNER_TRY(std::vector<std::byte> bytes, BytesOf(tensor));
    for (size_t i = 0; i < tensor.elements(); ++i)
      StoreElement(dtype, bytes.data(), i, scale * LoadElement(dtype, bytes.data(), i));
    return device_.CopyIn(tensor.address, bytes);
  }

  Result<Contents> Read() {
    Contents contents;
    for (const TaskBuffers::Tensor& tensor : buffers_->tensors()) {
      ATUNNER_TRY(const std::vector<std::byte> bytes, BytesOf(tensor));
      std::vector<double>& values = contents[tensor.spec->name];
      values.resize(tensor.elements());
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = LoadElement(tensor.spec->dtype, bytes.data(), i);
    }
    return contents;
  }

  Device& device_;
  const LaunchPlan& plan_;
  const KernelSpec& spec_;
  std::unique_ptr<LoadedModule> module_;
  std::unique_ptr<TaskBuffers> buffers_;
  std::unique_ptr<JudgeKernels> kernels_;
  std::vector<uint64_t> blocks_;  ///< that run; empty: all
};

/// The task with random floats in the place of captured ones and of constants, unless the program
/// promises their values: otherwise all runs would have the same.
KernelSpec WithRandomFloats(KernelSpec spec) {
  for (ArgSpec& arg : spec.args) {
    const bool same = arg.fill.kind == Fill::Kind::kBlob || StatesValues(arg.fill.kind);
    if (IsFloat(arg.dtype) && same && !IsExact(arg.fill)) arg.fill = {};
  }
  return spec;
}

}  // namespace

Result<Samples> RunSamples(const RenderedKernel& kernel, const KernelSpec& spec, const Dims& dims,
                           Device& device, Compiler& compiler) {
  // Small values show what is added to variances, positive ones what has another sign.
  constexpr double kSmall = 1.0 / 256;
  struct Draw {
    InputInstance instance;
    double scale;
  };
  const Draw draws[] = {{{InputFamily::kNormal, 11, false, {}}, 1},
                        {{InputFamily::kNormal, 12, false, {}}, kSmall},
                        {{InputFamily::kUniform, 13, false, {}}, 1}};
  const KernelSpec drawn = WithRandomFloats(spec);
  ATUNNER_TRY(Runner runner, Runner::Make(kernel, drawn, dims, device, compiler));
  Samples samples;
  for (const Draw& draw : draws) {
    ATUNNER_TRY(Sample sample, runner.Run(draw.instance, draw.scale));
    samples.runs.push_back(std::move(sample));
  }
  ATUNNER_TRY(samples.infinities, runner.Run({InputFamily::kInfinities, 14, false, {}}, 1));
  samples.whole = runner.whole();
  return samples;
}

}  // namespace atunner::recognition
