// Device memory of one task at one problem size, and plans bound to it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "atunner/device/device.h"
#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/verify/judge_kernels.h"

namespace atunner {

/// What outputs hold in every byte before a kernel writes them: -1.7e38 in float32, a NaN in
/// float16 that no operation results in. (All ones would be what a GPU makes of -NaN.) In 8-bit
/// floats that would be a number like others, and all ones are a NaN that no conversion gives. The
/// judge's kernels know it too.
constexpr uint8_t PoisonByte(DType dtype) {
  return dtype == DType::kFloat8E4M3 || dtype == DType::kFloat8E5M2 ? 0xff : 0xfe;
}

/// Every tensor of a spec in its own allocation, between guard zones where the device does not
/// check bounds itself.
class TaskBuffers {
 public:
  struct Tensor {
    const ArgSpec* spec = nullptr;  ///< of the task, but with a fill for these sizes
    size_t position = 0;            ///< index in KernelSpec::args
    TensorShape shape;
    std::unique_ptr<Buffer> memory;
    DeviceAddress address = 0;       ///< of the payload
    std::unique_ptr<ArgSpec> bound;  ///< `spec`, where its fill depends on the sizes

    bool is_input() const { return spec->role != Role::kOutput; }
    bool is_output() const { return spec->role != Role::kInput; }
  };

  /// `skew` moves every payload by skew × 256 bytes inside its allocation, so that two sets differ
  /// in their pointers' low bits.
  static Result<TaskBuffers> Allocate(Device& device, const KernelSpec& spec, const Dims& dims,
                                      uint32_t skew);

  const Dims& dims() const { return dims_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const Tensor* Find(std::string_view name) const;

  /// Draws every input (and in-out) of the instance.
  Status DrawInputs(JudgeKernels& kernels, const InputInstance& instance) const;
  /// PoisonByte in every byte of the pure outputs.
  Status PoisonOutputs() const;
  Status ArmGuards() const;
  /// Name of the tensor whose guard zone changed, and where.
  Result<std::optional<std::string>> BrokenGuard(JudgeKernels& kernels) const;

 private:
  explicit TaskBuffers(Device& device) : device_(&device) {}

  Device* device_;
  Dims dims_;
  uint64_t guard_bytes_ = 0;
  std::vector<Tensor> tensors_;
};

/// One kernel launch with all addresses known.
struct BoundStep {
  std::string entry;
  LaunchShape shape;
  std::vector<KernelArg> args;
};

struct BoundPlan {
  std::vector<BoundStep> steps;
  std::vector<std::unique_ptr<Buffer>> workspaces;
  std::vector<std::unique_ptr<Texture>> textures;
  struct Copy {
    std::string symbol;
    DeviceAddress from = 0;
    uint64_t bytes = 0;
  };
  std::vector<Copy> symbol_copies;
};

/// Tensors by name; return nullopt for an unknown name.
using AddressOf = std::function<std::optional<DeviceAddress>(const std::string&)>;

/// What workspaces hold at first: to be timed without a verdict they need not be written to, which
/// takes long where they are large.
enum class Workspaces { kPoisoned, kFresh };

/// Evaluates the plan for `buffers.dims()` and binds addresses; workspaces are allocated.
/// kInvalidInput when the plan names an unknown tensor or breaks a launch limit.
Result<BoundPlan> BindPlan(Device& device, const LaunchPlan& plan, const KernelSpec& spec,
                           const TaskBuffers& buffers,
                           Workspaces workspaces = Workspaces::kPoisoned);
/// As above with some tensors elsewhere (an oracle kernel writes its outputs in float64).
Result<BoundPlan> BindPlan(Device& device, const LaunchPlan& plan, const KernelSpec& spec,
                           const TaskBuffers& buffers, const AddressOf& elsewhere,
                           Workspaces workspaces = Workspaces::kPoisoned);

/// Copies tensors into the module's symbols (constant memory), as the plan asks.
Status CopySymbols(Device& device, LoadedModule& module, const BoundPlan& plan);

/// Runs all steps and waits. Stops at the first that does not complete.
Result<LaunchOutcome> RunPlan(Device& device, LoadedModule& module, const BoundPlan& plan,
                              const LaunchOptions& options);

}  // namespace atunner
