// Memory of a task at its own size on the virtual GPU, which may be larger than the host's memory.
#pragma once

#include <cstdint>

#include "atunner/verify/launch/task_buffers.h"

namespace atunner {

/// Inputs repeat a tile of random values with a secret period, outputs a tile of random bytes.
/// Pages that nobody writes are shared, so that they cost no memory; fills whose elements depend on
/// their index (iota, files, expressions, offsets) are made in full.
class OwnSizeMemory {
 public:
  static Result<OwnSizeMemory> Allocate(Device& device, const KernelSpec& spec);

  const TaskBuffers& buffers() const { return buffers_; }
  /// Renews all inputs and poisons all outputs with bytes of the seed `poison`.
  Status Renew(JudgeKernels& kernels, const InputInstance& instance, uint64_t poison) const;

 private:
  OwnSizeMemory(Device& device, const KernelSpec& spec, TaskBuffers buffers)
      : device_(&device), spec_(&spec), buffers_(std::move(buffers)) {}
  Status RenewInput(JudgeKernels& kernels, const TaskBuffers::Tensor& tensor,
                    const InputInstance& instance) const;

  Device* device_;
  const KernelSpec* spec_;
  TaskBuffers buffers_;
};

}  // namespace atunner
