// Device memory of one task at one problem size, and plans bound to it.
//
// Every tensor has its own allocation. Where the device cannot check bounds itself (a real GPU),
// the payload lies between two guard zones of 16 KiB:
//
//     allocation   | guard 0xa5… (16 KiB) | skew | payload (poisoned) | guard 0xa5… |
//                                                ^ address, multiple of 256
//
// Before a launch ArmGuards writes 0xa5 into the zones and PoisonOutputs poison into the outputs.
// After it BrokenGuard reports the first byte that changed, e.g. "y, 4 bytes after its end" for a
// float32 kernel that writes y[n + 1], and the compare kernel counts elements that still hold the
// poison as unwritten. A zone is as wide as 1024 threads can overshoot with one 16-byte store
// each. Buffers of different `skew` differ in the low bits of every
// pointer, so that a kernel that remembers results by pointer is caught.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "atunner/capture/placed_addresses.h"
#include "atunner/device/device.h"
#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/verify/launch/judge_kernels.h"

namespace atunner {

/// The tensors whose memory a set of buffers lends to another one.
enum class Lent : uint8_t {
  kInputs,  ///< those that no kernel may write
  kAll,     ///< all: what is written to one set changes the other
};

/// The tensors of a spec, each in its own allocation.
class TaskBuffers {
 public:
  struct Tensor {
    const ArgSpec* spec = nullptr;  ///< the task's argument, or `bound`
    size_t position = 0;            ///< index in KernelSpec::args
    TensorShape shape;
    std::unique_ptr<Buffer> memory;  ///< null if another set lends it
    DeviceAddress address = 0;       ///< of the payload, behind the guard zone
    /// The task's argument with a fill for these sizes, if its fill depends on them
    std::unique_ptr<ArgSpec> bound;
    /// Addresses of other tensors that its captured contents hold
    std::vector<capture::PlacedAddress> addresses;

    bool is_input() const { return spec->role != Role::kOutput; }
    bool is_output() const { return spec->role != Role::kInput; }
    /// An output that holds no input, and poison before a launch.
    bool is_poisoned() const { return spec->role == Role::kOutput; }
    uint64_t elements() const { return static_cast<uint64_t>(shape.elements); }
  };

  /// `skew` moves every payload by skew × 256 bytes inside its allocation, so that two sets differ
  /// in their pointers' low bits.
  static Result<TaskBuffers> Allocate(Device& device, const KernelSpec& spec, const Dims& dims,
                                      uint32_t skew);
  /// The same beside another set of the same size, skew 0: what is lent is in its memory, further
  /// up by the skew, so that one set's inputs must be drawn anew after the other's. `lender` must
  /// outlive the result.
  static Result<TaskBuffers> AllocateBeside(const TaskBuffers& lender, const KernelSpec& spec,
                                            uint32_t skew, Lent lent);
  /// Bytes of the tensors that kernels write.
  uint64_t WrittenBytes() const;

  const Dims& dims() const { return dims_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const Tensor* Find(std::string_view name) const;

  /// The tensor that is this argument of the spec.
  const Tensor* At(uint64_t position) const;

  /// Fills every input and in-out tensor with the instance's values.
  Status DrawInputs(JudgeKernels& kernels, const InputInstance& instance) const;
  /// Fills the outputs with poison, in-out tensors excepted. Each has a stream of its own: see
  /// PoisonOf. On the virtual GPU they count as unwritten then.
  Status PoisonOutputs(JudgeKernels& kernels, const Poison& poison) const;
  /// What PoisonOutputs fills a tensor with; nullopt for in-out tensors.
  static std::optional<Poison> PoisonOf(const Tensor& tensor, const Poison& poison);
  /// Puts the addresses into captured contents, where those are filled by other means than
  /// DrawInputs.
  Status PutAddresses() const;
  Status ArmGuards() const;
  /// The tensor whose guard zone changed and the distance, e.g. "y, 4 bytes after its end"; nullopt
  /// if all are intact.
  Result<std::optional<std::string>> BrokenGuard(JudgeKernels& kernels) const;

 private:
  explicit TaskBuffers(Device& device) : device_(&device) {}
  Result<Tensor> AllocateTensor(const KernelSpec& spec, size_t position, uint32_t skew) const;

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

/// Addresses that memory holds while a plan runs, see capture/placed_addresses.h.
struct AddressTable {
  DeviceAddress at = 0;  ///< of the memory
  /// Offset in the memory, ascending, and the address that is put there
  std::vector<std::pair<uint64_t, DeviceAddress>> values;
  /// The plan may change the memory. Afterwards addresses that are still there become zeros, so
  /// that results do not depend on where tensors are.
  bool is_output = false;

  Status Put(Device& device) const;
  Status TakeOut(Device& device) const;
};

struct BoundPlan {
  std::vector<BoundStep> steps;
  std::vector<AddressTable> tables;
  std::vector<std::unique_ptr<Buffer>> workspaces;
  std::vector<std::unique_ptr<Texture>> textures;
  struct Copy {
    std::string symbol;
    DeviceAddress from = 0;
    uint64_t bytes = 0;
    bool is_output = false;  ///< kernels change the symbol
  };
  std::vector<Copy> symbol_copies;
};

/// Address of a tensor by its name; nullopt for an unknown name.
using AddressOf = std::function<std::optional<DeviceAddress>(const std::string&)>;

/// Initial contents of workspaces: NaN in every float (so that a read before the first write shows
/// in the result), or whatever the allocation holds, which is enough for timing and saves the time
/// of filling large ones.
enum class Workspaces { kPoisoned, kFresh };

/// Evaluates the plan for `buffers.dims()` and binds addresses; workspaces are allocated.
/// kInvalidInput when the plan names an unknown tensor or breaks a launch limit.
Result<BoundPlan> BindPlan(Device& device, const LaunchPlan& plan, const KernelSpec& spec,
                           const TaskBuffers& buffers,
                           Workspaces workspaces = Workspaces::kPoisoned);
/// The same with some tensors elsewhere: the float64 reference kernel writes its outputs into
/// buffers of its own. `workspace_at` gives the memory of workspaces that shall not be allocated.
Result<BoundPlan> BindPlan(Device& device, const LaunchPlan& plan, const KernelSpec& spec,
                           const TaskBuffers& buffers, const AddressOf& elsewhere,
                           Workspaces workspaces = Workspaces::kPoisoned,
                           const AddressOf& workspace_at = {});

/// Fills the plan's workspaces with poison. On the virtual GPU they count as unwritten then.
Status PoisonWorkspaces(Device& device, JudgeKernels& kernels, const BoundPlan& plan,
                        const Poison& poison);

/// Copies tensors into the module's symbols (constant memory), as the plan asks.
Status CopySymbols(Device& device, LoadedModule& module, const BoundPlan& plan);

/// Puts addresses where memory holds some, runs all steps and waits. Stops at the first that does
/// not complete. Otherwise the results in symbols are put into their tensors, and the symbols get
/// the contents back that they had before.
Result<LaunchOutcome> RunPlan(Device& device, LoadedModule& module, const BoundPlan& plan,
                              const LaunchOptions& options);

}  // namespace atunner
